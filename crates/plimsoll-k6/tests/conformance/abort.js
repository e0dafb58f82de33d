// exit: 108
import exec from "k6/execution";

export const options = { iterations: 5 };

export default function () {
  console.log("iteration", exec.scenario.iterationInTest);
  if (exec.scenario.iterationInTest === 2) exec.test.abort("enough");
}

export function teardown() {
  console.log("teardown");
}
