import { Counter, Trend } from "k6/metrics";

for (const bad of [() => new Counter("bad name"), () => new Counter("1"), () => new Trend("iterations"), () => new Counter("")]) {
  try {
    bad();
    console.log("no exception");
  } catch (error) {
    console.log("exception");
  }
}

export default function () {
  try {
    new Counter("late");
    console.log("no exception");
  } catch (error) {
    console.log("exception");
  }
}
