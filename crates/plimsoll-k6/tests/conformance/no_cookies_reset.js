import http from "k6/http";

export const options = { iterations: 2, noCookiesReset: true };

export default function () {
  console.log(http.get(`${__ENV.BASE}/cookies`).body);
  http.get(`${__ENV.BASE}/set`);
}
