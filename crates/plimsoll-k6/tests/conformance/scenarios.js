import exec from "k6/execution";
import http from "k6/http";

export const options = {
  scenarios: {
    one: { executor: "shared-iterations", iterations: 2, exec: "first", tags: { kind: "a" }, env: { NAME: "one" } },
    two: { executor: "per-vu-iterations", vus: 1, iterations: 1, exec: "second", env: { NAME: "two" }, startTime: "500ms" },
  },
  thresholds: { "http_reqs{scenario:one}": ["count==2"], "http_reqs{kind:a}": ["count==2"], "iterations{scenario:two}": ["count==1"] },
};

export function first() {
  http.get(`${__ENV.BASE}/`);
  console.log(__ENV.NAME, exec.scenario.name);
}

export function second() {
  console.log(__ENV.NAME, exec.scenario.name, exec.instance.currentTestRunDuration >= 490);
}
