import http from "k6/http";

export const options = {
  systemTags: ["name", "method", "url", "status"],
  thresholds: { "http_reqs{name:http://host/${}}": ["count<1"], "http_reqs{name:fixed}": ["count==2"], "http_reqs{scenario:default}": ["count<1"], "http_reqs{method:POST}": ["count==1"] },
};

export default function () {
  http.get(`${__ENV.BASE}/echo?1`, { tags: { name: "fixed" } });
  http.post(`${__ENV.BASE}/echo?2`, null, { tags: { name: "fixed" } });
}
