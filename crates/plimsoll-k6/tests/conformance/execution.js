import exec from "k6/execution";

export const options = {
  scenarios: { one: { executor: "per-vu-iterations", vus: 1, iterations: 2, tags: { t: "v" }, env: { OWN: "o" }, exec: "work" } },
  summaryTrendStats: ["avg"],
};

try {
  console.log(exec.scenario.name);
} catch {
  console.log("exception");
}

export function work() {
  console.log(exec.instance.iterationsCompleted, exec.instance.iterationsInterrupted, exec.instance.vusActive, exec.instance.vusInitialized);
  console.log(exec.scenario.iterationInInstance, exec.scenario.iterationInTest, exec.scenario.startTime > 1e12, exec.vu.idInInstance);
  console.log(exec.vu.tags.t, exec.vu.metrics.tags.scenario, __ENV.OWN, exec.test.options.summaryTrendStats.join(), Object.keys(exec.test.options.scenarios).join());
  exec.vu.metrics.tags.mine = 5;
  console.log(exec.vu.metrics.tags.mine, typeof exec.vu.metrics.tags.mine, Object.keys(exec.vu.metrics.tags).sort().join());
  console.log(exec.scenario.progress > 0, JSON.stringify(exec.test.options.scenarios.one.tags), exec.test.options.setupTimeout);
}
