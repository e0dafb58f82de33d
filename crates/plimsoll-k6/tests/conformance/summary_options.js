// flags: --summary-trend-stats avg,p(99)
import http from "k6/http";

export default function () {
  http.get(`${__ENV.BASE}/`);
}
