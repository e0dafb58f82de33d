import http from "k6/http";
import exec from "k6/execution";

export const options = { scenarios: { one: { executor: "shared-iterations", vus: 3, iterations: 10 } } };

export default function () {
  http.get(`${__ENV.BASE}/`);
  console.log("iteration", exec.scenario.iterationInTest, exec.scenario.executor, exec.scenario.name);
}
