import http from "k6/http";

export const options = { maxRedirects: 1 };

export default function () {
  const response = http.get(`${__ENV.BASE}/redirect/3`);
  console.log(response.status, response.url.replace(__ENV.BASE, ""), response.error === "");
}
