import { sleep } from "k6";

export const options = {
  scenarios: {
    cut: { executor: "per-vu-iterations", vus: 2, iterations: 1, maxDuration: "1s", gracefulStop: "200ms", exec: "long" },
    whole: { executor: "per-vu-iterations", vus: 2, iterations: 1, maxDuration: "1s", gracefulStop: "3s", exec: "short" },
  },
};

export function long() {
  sleep(5);
}

export function short() {
  sleep(1.5);
  console.log("finished");
}
