import http from "k6/http";
import exec from "k6/execution";
import { check, fail, group, sleep } from "k6";

// Run with: plimsoll load -e BASE=http://127.0.0.1:8080 FILE
const base = __ENV.BASE || "http://127.0.0.1:8080";

export const options = {
  scenarios: {
    // As many requests a second as there are, however long responses take.
    arrivals: {
      executor: "constant-arrival-rate",
      exec: "read",
      rate: 50,
      timeUnit: "1s",
      duration: "30s",
      preAllocatedVUs: 20,
      maxVUs: 100,
    },
    // Users who come, stay and leave.
    users: {
      executor: "ramping-vus",
      exec: "visit",
      startTime: "5s",
      stages: [
        { duration: "10s", target: 10 },
        { duration: "10s", target: 10 },
        { duration: "5s", target: 0 },
      ],
    },
  },
  thresholds: {
    checks: ["rate>0.99"],
    "http_req_duration{scenario:arrivals}": ["p(95)<300", "p(99)<500"],
    http_req_failed: [{ threshold: "rate<0.05", abortOnFail: true, delayAbortEval: "5s" }],
  },
};

// Runs once; every iteration gets its result.
export function setup() {
  const response = http.get(`${base}/`);
  if (response.status !== 200) fail(`${base} responds with ${response.status}`);
  return { started: Date.now() };
}

export function read() {
  const response = http.get(`${base}/`);
  check(response, {
    "status is 200": (r) => r.status === 200,
    "has content": (r) => r.body.length > 0,
  });
}

export function visit() {
  group("front page", () => {
    const responses = http.batch([
      ["GET", `${base}/`],
      ["GET", `${base}/?visitor=${exec.vu.idInTest}`],
    ]);
    check(responses, { "all are 200": (all) => all.every((r) => r.status === 200) });
  });
  sleep(1);
}

export function teardown(data) {
  console.log(`the test took ${Math.round((Date.now() - data.started) / 1000)} s`);
}
