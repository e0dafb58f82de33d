import http from "k6/http";

export const options = { throw: true, iterations: 2 };

export default function () {
  console.log("before");
  http.get("http://127.0.0.1:1/");
  console.log("after");
}
