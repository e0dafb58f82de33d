// exit: 99
// about: iterations http_reqs http_req_failed
import http from "k6/http";
import { sleep } from "k6";

export const options = { duration: "30s", thresholds: { http_req_failed: [{ threshold: "rate<0.1", abortOnFail: true }] } };

export default function () {
  http.get(`${__ENV.BASE}/status/500`);
  sleep(0.2);
}
