// about: iterations iteration_duration
import { sleep } from "k6";

export const options = { scenarios: { one: { executor: "constant-vus", vus: 3, duration: "2s", gracefulStop: "1s" } } };

export default function () {
  sleep(0.4);
}
