// about: iterations
import exec from "k6/execution";

export const options = {
  scenarios: {
    one: { executor: "ramping-arrival-rate", startRate: 6, timeUnit: "1s", stages: [{ duration: "1s", target: 6 }, { duration: "1s", target: 0 }], preAllocatedVUs: 5 },
  },
};

export default function () {
  // In some runs k6 has one more, at the end of the last stage.
  if (exec.scenario.iterationInTest < 8) {
    console.log(`at ${exec.scenario.iterationInTest} ${exec.instance.currentTestRunDuration.toFixed(0)}`);
  }
}
