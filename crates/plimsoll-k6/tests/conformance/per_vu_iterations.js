import exec from "k6/execution";

export const options = { scenarios: { one: { executor: "per-vu-iterations", vus: 3, iterations: 4, exec: "work" } } };

export function work() {
  console.log(__VU, __ITER, exec.vu.idInTest, exec.vu.iterationInInstance, exec.vu.iterationInScenario);
}
