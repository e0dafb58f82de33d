// about: iterations
import { sleep } from "k6";

export const options = {
  scenarios: {
    one: { executor: "ramping-vus", startVUs: 1, stages: [{ duration: "1s", target: 4 }, { duration: "1s", target: 0 }], gracefulRampDown: "0s" },
  },
};

export default function () {
  sleep(0.25);
}
