import { Counter, Gauge, Rate, Trend } from "k6/metrics";

const counter = new Counter("a_counter");
const gauge = new Gauge("a_gauge");
const rate = new Rate("a_rate");
const trend = new Trend("a_trend");
const times = new Trend("a_time", true);
new Counter("never_used");

export const options = {
  iterations: 4,
  summaryTrendStats: ["avg", "min", "med", "max", "p(90)", "p(99.9)", "count"],
  thresholds: { a_counter: ["count==10"], a_gauge: ["value==3"], a_rate: ["rate==0.5"], a_trend: ["avg==25", "p(50)==25", "max<=40"], never_used: ["count<1"] },
};

export default function () {
  counter.add(__ITER + 1);
  gauge.add(__ITER);
  rate.add(__ITER % 2 === 0);
  trend.add((__ITER + 1) * 10);
  times.add((__ITER + 1) * 100, { a: "b" });
  trend.add(NaN);
  console.log(counter.name, typeof trend.add);
}
