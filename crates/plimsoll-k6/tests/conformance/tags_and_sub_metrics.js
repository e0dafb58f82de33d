import http from "k6/http";
import exec from "k6/execution";
import { check } from "k6";
import { Counter } from "k6/metrics";

const counter = new Counter("mine");

export const options = {
  iterations: 2,
  tags: { run: "r" },
  thresholds: {
    "http_reqs{kind:a}": ["count==2"],
    "http_reqs{run:r}": ["count==4"],
    "http_reqs{status:404}": ["count==2"],
    "http_reqs{expected_response:false}": ["count==2"],
    "http_reqs{name:named}": ["count==2"],
    "http_reqs{method:GET,kind:a}": ["count==2"],
    "http_req_failed{kind:a}": ["rate==0"],
    "checks{check:is ok}": ["rate==1"],
    "checks{extra:x}": ["rate==1"],
    "mine{kind:b}": ["count==4"],
    "mine{vu_tag:v}": ["count==6"],
    "http_reqs{scenario:default}": ["count==4"],
    "http_reqs{none:none}": ["count<1"],
  },
};

export default function () {
  exec.vu.metrics.tags.vu_tag = "v";
  const response = http.get(`${__ENV.BASE}/`, { tags: { kind: "a" } });
  check(response, { "is ok": (r) => r.status === 200 }, { extra: "x" });
  http.get(`${__ENV.BASE}/status/404?n=${__ITER}`, { tags: { name: "named" } });
  counter.add(2, { kind: "b" });
  counter.add(1);
}
