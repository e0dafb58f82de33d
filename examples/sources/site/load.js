// The load of a blog's article on its server: every path and every short link at once, again and again, by 10 virtual
// users for 30 seconds. Caches are cold on purpose: no request has a condition.
//
//   cd examples/sources/site && plimsoll load -e K6_HOST=http://localhost:8080 - < load.js

import http from "k6/http";
import { check } from "k6";
import { htmlReport } from "https://raw.githubusercontent.com/benc-uk/k6-reporter/main/dist/bundle.js";
import { textSummary } from "https://jslib.k6.io/k6-summary/0.0.1/index.js";

const host = (__ENV.K6_HOST || "http://localhost:8080").replace(/\/$/, "");
const paths = JSON.parse(open("./paths.json"));
const redirects = JSON.parse(open("./redirects.json"));

export const options = {
  vus: 10,
  duration: "30s",
  summaryTrendStats: ["avg", "min", "med", "max", "p(90)", "p(95)", "p(99)"],
};

export default function () {
  const urls = [...paths, ...redirects.map((alias) => `/${alias}`)];
  const responses = http.batch(urls.map((path) => ["GET", `${host}${path}`, null, { redirects: 0 }]));
  for (const response of responses) {
    check(response, { "status is 200, 301 or 308": (it) => [200, 301, 308].includes(it.status) });
  }
}

export function handleSummary(data) {
  return {
    stdout: textSummary(data, { indent: " ", enableColors: !__ENV.NO_COLOR }),
    "summary.txt": textSummary(data, { indent: " ", enableColors: false }),
    "summary.json": JSON.stringify(data, null, 2),
    "summary.html": htmlReport(data),
  };
}
