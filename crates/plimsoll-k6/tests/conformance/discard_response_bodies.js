import http from "k6/http";

export const options = { discardResponseBodies: true };

export default function () {
  console.log(http.get(`${__ENV.BASE}/json`).body);
  console.log(http.get(`${__ENV.BASE}/json`, { responseType: "text" }).json("name"));
}
