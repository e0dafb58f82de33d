import http from "k6/http";
import { check, group, sleep } from "k6";

export const options = {
  vus: 5,
  iterations: 100,
  thresholds: {
    http_req_failed: ["rate<0.01"],
    checks: ["rate>0.99"],
  },
};

export default function () {
  group("front page", () => {
    const response = http.get(`${__ENV.BASE}/`);
    check(response, {
      "status is 200": (r) => r.status === 200,
      "has content": (r) => r.body.length > 0,
    });
  });
  sleep(0.02);
}
