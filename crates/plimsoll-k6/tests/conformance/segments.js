// flags: --execution-segment 1/4:1/2 --execution-segment-sequence 0,1/4,1/2,1
import exec from "k6/execution";

export const options = {
  scenarios: {
    shared: { executor: "shared-iterations", vus: 1, iterations: 1 },
    larger: { executor: "per-vu-iterations", vus: 6, iterations: 2 },
    arrivals: { executor: "constant-arrival-rate", rate: 10, duration: "2s", preAllocatedVUs: 4 },
  },
};

export default function () {
  console.log(exec.scenario.name, exec.scenario.iterationInTest);
}
