// about: iterations dropped_iterations
import { sleep } from "k6";

export const options = {
  scenarios: { one: { executor: "constant-arrival-rate", rate: 10, timeUnit: "1s", duration: "2s", preAllocatedVUs: 1, maxVUs: 1 } },
};

export default function () {
  sleep(0.5);
}
