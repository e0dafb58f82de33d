import http from "k6/http";

export default function () {
  const base = __ENV.BASE;
  const binary = http.get(`${base}/bytes`, { responseType: "binary" });
  console.log(binary.body instanceof ArrayBuffer, Array.from(new Uint8Array(binary.body)).join());
  const text = http.get(`${base}/json`, { responseType: "text" });
  console.log(typeof text.body, text.json("text"));
  const none = http.get(`${base}/json`, { responseType: "none" });
  console.log(none.body, none.status);
  console.log(http.get(`${base}/gzip`).body, http.head(`${base}/json`).body === "" || http.head(`${base}/json`).body === null);
  const broken = http.get(`${base}/broken-gzip`);
  console.log(broken.error_code);
}
