import http from "k6/http";
import { setTimeout as later } from "k6/timers";

export const options = { iterations: 2, thresholds: { iteration_duration: ["min>100"] } };

export default async function () {
  const order = [];
  later(() => order.push("timer"), 30);
  Promise.resolve().then(() => order.push("job"));
  order.push("first");
  const responses = await Promise.all([http.asyncRequest("GET", `${__ENV.BASE}/soon`), http.asyncRequest("POST", `${__ENV.BASE}/echo`, "b")]);
  order.push(responses.map((response) => response.status).join());
  console.log(order.join(" "));
  const id = setInterval(() => order.push("tick"), 10);
  await new Promise((done) => setTimeout(done, 35));
  clearInterval(id);
  console.log(order.filter((it) => it === "tick").length >= 2);
  try {
    await http.asyncRequest("GET", "http://127.0.0.1:1/", null, { throw: true });
  } catch (error) {
    console.log("exception");
  }
}
