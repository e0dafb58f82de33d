import http from "k6/http";

export const options = {
  thresholds: { "http_req_failed": ["rate<1"], "http_req_duration{expected_response:true}": ["max<10000"], "http_reqs{expected_response:true}": ["count==4"] },
};

http.setResponseCallback(http.expectedStatuses(200, { min: 400, max: 404 }));

export default function () {
  const base = __ENV.BASE;
  http.get(`${base}/status/200`);
  http.get(`${base}/status/403`);
  http.get(`${base}/status/201`);
  http.get(`${base}/status/500`);
  http.get(`${base}/status/500`, { responseCallback: http.expectedStatuses(500) });
  http.get(`${base}/status/500`, { responseCallback: null });
  http.setResponseCallback(http.expectedStatuses(503));
  http.get(`${base}/status/503`);
  http.setResponseCallback(null);
  http.get(`${base}/status/200`);
}
