import http from "k6/http";
import { check, group, sleep } from "k6";
import { Trend } from "k6/metrics";

const lengths = new Trend("lengths");

export default function () {
  group("front page", () => {
    const response = http.get(`${__ENV.BASE}/`, { tags: { kind: `${__ITER % 10}` } });
    check(response, { "status is 200": (r) => r.status === 200 });
    lengths.add(response.body.length);
  });
  sleep(0.01);
}
