// flags: -u 2 -d 1s
// about: iterations
import { sleep } from "k6";

export const options = { scenarios: { one: { executor: "shared-iterations", iterations: 100 } } };

export default function () {
  sleep(0.2);
}
