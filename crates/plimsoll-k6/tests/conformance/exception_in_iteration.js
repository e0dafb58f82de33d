import { check } from "k6";

export const options = { iterations: 3 };

export default function () {
  check(1, { first: true });
  if (__ITER === 1) throw new Error("in an iteration");
  check(1, { second: true });
}
