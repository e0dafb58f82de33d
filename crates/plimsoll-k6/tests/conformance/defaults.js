import http from "k6/http";

export default function () {
  const response = http.get(`${__ENV.BASE}/`);
  console.log(__VU, __ITER, response.status, response.body, typeof __ENV.BASE, __ENV.NOT_SET === undefined);
}
