// exit: 100
import { sleep } from "k6";

export const options = { setupTimeout: "300ms" };

export function setup() {
  sleep(5);
}

export default function () {}
