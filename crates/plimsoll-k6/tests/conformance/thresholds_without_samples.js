// exit: 99
import { Counter, Gauge, Rate, Trend } from "k6/metrics";

new Counter("counted");
new Gauge("measured");
new Rate("shared");
new Trend("timed");

export const options = {
  thresholds: {
    counted: ["count>1", "count<1", "rate>1"],
    "counted{a:b}": ["count>1"],
    measured: ["value>1", "value<1"],
    shared: ["rate>0.5", "rate<0.5"],
    timed: ["avg>1", "p(95)<1"],
    "http_reqs{expected_response:true}": ["rate>10"],
  },
};

export default function () {}
