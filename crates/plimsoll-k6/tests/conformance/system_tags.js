// flags: -i 2
import http from "k6/http";
import exec from "k6/execution";
import { check } from "k6";

export const options = {
  systemTags: ["url", "ip", "vu", "iter", "status", "group", "check", "unknown"],
  thresholds: { "http_reqs{ip:127.0.0.1}": ["count>0"], "http_reqs{status:200}": ["count>0"], "checks{status:200}": ["rate>0"] },
};

export default function () {
  exec.vu.metrics.metadata.trace = "t";
  check(http.get(`${__ENV.BASE}/status/200`), { "is 200": (r) => r.status === 200 });
  console.log(exec.vu.metrics.metadata.trace, Object.keys(exec.vu.metrics.metadata).includes("trace"));
}
