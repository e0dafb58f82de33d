// exit: 108
import exec from "k6/execution";

exec.test.abort("early");

export default function () {}
