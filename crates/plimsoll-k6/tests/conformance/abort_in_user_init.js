// exit: 108
import exec from "k6/execution";

if (__VU === 1) exec.test.abort("late");

export default function () {}
