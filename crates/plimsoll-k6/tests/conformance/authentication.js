import http from "k6/http";

export default function () {
  const base = __ENV.BASE.replace("http://", "http://user:pass@");
  const basic = http.get(`${base}/basic`);
  console.log(basic.status, basic.body, basic.url.includes("pass"));
  console.log(http.get(`${__ENV.BASE}/basic`).status);
  const digest = http.get(`${base}/digest`, { auth: "digest" });
  console.log(digest.status, digest.body);
  const ntlm = http.post(`${base}/ntlm`, "body", { auth: "ntlm" });
  console.log(ntlm.status, ntlm.body);
}
