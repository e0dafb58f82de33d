// about: iterations
import exec from "k6/execution";

export const options = {
  scenarios: { one: { executor: "constant-arrival-rate", rate: 20, timeUnit: "1s", duration: "2s", preAllocatedVUs: 5 } },
};

export default function () {
  if (exec.scenario.iterationInTest < 12) {
    console.log(`at ${exec.scenario.iterationInTest} ${exec.instance.currentTestRunDuration.toFixed(0)}`);
  }
}
