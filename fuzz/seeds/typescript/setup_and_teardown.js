import http from "k6/http";

export const options = { iterations: 3, vus: 2, thresholds: { "http_reqs{group:::setup}": ["count==1"], "http_reqs{group:::teardown}": ["count==1"] } };

export function setup() {
  http.get(`${__ENV.BASE}/`);
  console.log("setup", __VU);
  return { value: [1, "two", null], name: "n" };
}

export default function (data) {
  console.log(JSON.stringify(data, ["name", "value"]));
}

export function teardown(data) {
  http.get(`${__ENV.BASE}/`);
  console.log("teardown", __VU, JSON.stringify(data, ["name", "value"]));
}
