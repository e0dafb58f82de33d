// exit: 108
import exec from "k6/execution";

export function setup() {
  exec.test.abort("no");
}

export default function () {
  console.log("not run");
}

export function teardown() {
  console.log("teardown");
}
