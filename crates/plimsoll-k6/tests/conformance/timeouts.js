import http from "k6/http";

export default function () {
  const late = http.get(`${__ENV.BASE}/slow`, { timeout: 100 });
  console.log(late.status, late.error, late.error_code, late.body, late.timings.duration > 50, late.timings.duration < 600);
  const text = http.get(`${__ENV.BASE}/slow`, { timeout: "100ms" });
  console.log(text.status, text.error_code);
  const soon = http.get(`${__ENV.BASE}/soon`, { timeout: "5s" });
  console.log(soon.status, soon.timings.waiting >= 95);
}
