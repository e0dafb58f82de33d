// flags: -s 1s:2 -s 500ms:0
// about: iterations
import { sleep } from "k6";

export default function () {
  sleep(0.2);
}
