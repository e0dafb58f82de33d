import http from "k6/http";

export default function () {
  const r = http.get(`${__ENV.BASE}/json`, { headers: { "x-custom": "c" } });
  console.log(r.status, r.status_text, r.proto, r.headers["Content-Type"], r.remote_ip, r.remote_port > 0, r.error === "", r.error_code);
  console.log(Object.keys(r.timings).sort().join(), r.timings.duration > 0);
  console.log(Object.keys(r).filter((key) => typeof r[key] !== "function").sort().join());
  console.log(r.tls_version, r.tls_cipher_suite, r.ocsp.status, JSON.stringify(r.cookies), r.url.replace(__ENV.BASE, ""));
  console.log(r.request.method, r.request.url.replace(__ENV.BASE, ""), JSON.stringify(r.request.headers["X-Custom"]), r.request.body, JSON.stringify(r.request.cookies));
  console.log(JSON.stringify(Object.keys(http).sort()));
}
