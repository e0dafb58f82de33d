// flags: --no-thresholds
import http from "k6/http";

export const options = { thresholds: { http_req_failed: ["rate<0.1"] } };

export default function () {
  http.get(`${__ENV.BASE}/status/500`);
}
