// exit: 99
import http from "k6/http";
import { check } from "k6";

export const options = {
  iterations: 3,
  thresholds: { http_req_failed: ["rate<0.1"], checks: ["rate>0.5"], http_reqs: ["count>=3", "rate>0"], iteration_duration: ["p(95)<10000", "med<10000", "avg<10000"] },
};

export default function () {
  check(http.get(`${__ENV.BASE}/status/500`), { "is 200": (r) => r.status === 200, "is 500": (r) => r.status === 500, always: true });
}
