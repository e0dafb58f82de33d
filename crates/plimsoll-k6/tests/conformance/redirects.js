import http from "k6/http";

export default function () {
  const base = __ENV.BASE;
  const followed = http.get(`${base}/redirect/3`);
  console.log(followed.status, followed.body, followed.url.replace(base, ""));
  const kept = http.get(`${base}/redirect/3`, { redirects: 0 });
  console.log(kept.status, kept.headers.Location, kept.url.replace(base, ""));
  const two = http.get(`${base}/redirect/5`, { redirects: 2 });
  console.log(two.status, two.url.replace(base, ""));
  const endless = http.get(`${base}/endless`);
  console.log(endless.status, endless.error_code);
  for (const status of [301, 302, 303, 307, 308]) {
    const moved = http.post(`${base}/move/${status}`, "content", { headers: { "X-Custom": "c" } });
    console.log(status, moved.json("method"), moved.json("body"), moved.json("custom"), moved.request.method);
  }
}
