import { check, group } from "k6";
import http from "k6/http";

export const options = {
  iterations: 2,
  thresholds: { "http_reqs{group:::outer::inner}": ["count==2"], "group_duration{group:::outer}": ["max<5000"] },
};

export default function () {
  check(1, { "at the root": true });
  const result = group("outer", () => {
    check(1, { "in outer": (n) => n === 1, "fails": (n) => n === 2 });
    return group("inner", () => {
      http.get(`${__ENV.BASE}/`);
      check(2, { "in inner": true });
      return "value";
    });
  });
  console.log(result);
  try {
    group("throws", () => {
      throw new Error("inside");
    });
  } catch (error) {
    console.log(error.message);
  }
  for (const bad of [() => group("a::b", () => {}), () => check(1, { "a::b": true })]) {
    try {
      bad();
      console.log("no exception");
    } catch {
      console.log("exception");
    }
  }
}
