// exit: 105
// signal: 1500ms
// about: iterations
import { sleep } from "k6";

export const options = { duration: "30s" };

export default function () {
  sleep(0.1);
}

export function teardown() {
  console.log("teardown");
}
