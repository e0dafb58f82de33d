import http from "k6/http";

export default function () {
  const refused = http.get("http://127.0.0.1:1/");
  console.log(refused.status, refused.error, refused.error_code, refused.body, refused.headers["X"] === undefined);
  const unknown = http.get("http://name.invalid/");
  console.log(unknown.status, unknown.error_code);
  const closed = http.get(`${__ENV.BASE}/close`);
  console.log(closed.status, closed.error !== "");
  const missing = http.get(`${__ENV.BASE}/status/404`);
  console.log(missing.status, missing.error, missing.error_code);
  const failed = http.get(`${__ENV.BASE}/status/503`);
  console.log(failed.status, failed.error, failed.error_code);
  try {
    http.get("http://127.0.0.1:1/", { throw: true });
    console.log("no exception");
  } catch (error) {
    console.log("exception");
  }
}
