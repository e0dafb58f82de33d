import http from "k6/http";
import { check, sleep } from "k6";

// Run with: plimsoll load -e BASE=http://127.0.0.1:8080 FILE
const base = __ENV.BASE || "http://127.0.0.1:8080";

export const options = {
  vus: 10,
  duration: "30s",
  thresholds: {
    http_req_failed: ["rate<0.01"],
    http_req_duration: ["p(99)<500"],
  },
};

export default function () {
  const response = http.get(`${base}/`);
  check(response, { "status is 200": (r) => r.status === 200 });
  sleep(1);
}
