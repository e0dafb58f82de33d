// about: iterations
import exec from "k6/execution";

export const options = {
  scenarios: {
    one: { executor: "ramping-arrival-rate", startRate: 0, timeUnit: "1s", stages: [{ duration: "2s", target: 10 }, { duration: "500ms", target: 10 }], preAllocatedVUs: 5 },
  },
};

export default function () {
  if (exec.scenario.iterationInTest < 9) {
    console.log(`at ${exec.scenario.iterationInTest} ${exec.instance.currentTestRunDuration.toFixed(0)}`);
  }
}
