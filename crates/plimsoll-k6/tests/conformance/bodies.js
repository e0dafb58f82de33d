import http from "k6/http";

export default function () {
  const url = `${__ENV.BASE}/echo`;
  const show = (response) => console.log(response.json("method"), response.json("type"), response.json("length"), response.json("body"));
  show(http.post(url, "text"));
  show(http.post(url, { a: "x y", list: [1, 2], "é&": "=" }));
  show(http.put(url, JSON.stringify({ a: 1 }), { headers: { "Content-Type": "application/json" } }));
  show(http.patch(url, new Uint8Array([104, 105]).buffer));
  show(http.del(url));
  show(http.del(url, null, {}));
  show(http.request("GET", url));
  show(http.request("post", url, "x"));
  show(http.post(url, { a: "b" }, { headers: { "content-type": "text/plain" } }));
  console.log(http.post(url).json("length"), http.options(url).headers["X-Method"]);
  const upload = http.post(url, { file: http.file("data", "a.txt", "text/plain"), field: "v" });
  console.log(upload.json("type"), upload.json("body").includes('name="file"; filename="a.txt"'), upload.json("body").includes("\r\n\r\nv\r\n"));
  const response = http.get(http.url`${__ENV.BASE}/echo?n=${7}`, { headers: { "X-Custom": "c" } });
  console.log(response.json("query.n"), response.json("custom"), response.request.body, Object.keys(response.request.headers).includes("X-Custom"));
}
