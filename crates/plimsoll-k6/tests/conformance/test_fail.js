// exit: 110
import exec from "k6/execution";

export const options = { iterations: 3 };

export default function () {
  if (exec.scenario.iterationInTest === 1) exec.test.fail("a reason");
  console.log("iteration", exec.scenario.iterationInTest);
}
