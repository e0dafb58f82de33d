import * as k6 from "k6";
import * as crypto from "k6/crypto";
import * as x509 from "k6/crypto/x509";
import * as data from "k6/data";
import * as encoding from "k6/encoding";
import * as execution from "k6/execution";
import * as csv from "k6/experimental/csv";
import * as fs from "k6/experimental/fs";
import * as streams from "k6/experimental/streams";
import * as html from "k6/html";
import * as http from "k6/http";
import * as metrics from "k6/metrics";
import * as grpc from "k6/net/grpc";
import * as secrets from "k6/secrets";
import * as timers from "k6/timers";
import * as websockets from "k6/websockets";
import * as ws from "k6/ws";

const modules = { k6, crypto, x509, data, encoding, execution, csv, fs, streams, html, http, metrics, grpc, secrets, timers, websockets, ws };

// Left out, as docs/conformance.md says: default exports, which no namespace of k6 lists; the kinds of gRPC's constants, which are
// objects of Go there; and of a WebSocket, constants and handlers, which are the Web's here.

// Names with the kind of each value, sorted. Those of prototypes too, which in one program are own and in the other inherited.
const members = (object) => {
  const found = {};
  for (let at = object; at !== null && at !== Object.prototype && at !== Function.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) {
      // Go's embedded structs.
      if (name === "constructor" || name.startsWith("__") || name === "element" || name.endsWith("_element")) continue;
      let kind;
      try {
        kind = typeof object[name];
      } catch (error) {
        kind = "throws";
      }
      found[name] ??= kind;
    }
  }
  return Object.keys(found).sort().map((name) => `${name}:${found[name]}`);
};

const show = (what, object) => {
  for (const member of members(object)) console.log(`${what} ${member}`);
};

const made = {
  counter: new metrics.Counter("a_counter"),
  gauge: new metrics.Gauge("a_gauge"),
  rate: new metrics.Rate("a_rate"),
  trend: new metrics.Trend("a_trend"),
  shared: new data.SharedArray("an_array", () => [{ a: 1 }]),
};

const client = new grpc.Client();

export default function () {
  for (const [name, module] of Object.entries(modules)) {
    for (const member of Object.keys(module).sort()) {
      if (member !== "default") console.log(`module ${name} ${member}:${name === "grpc" ? "" : typeof module[member]}`);
    }
  }
  for (const [name, object] of Object.entries(made)) show(`metric ${name}`, object);
  show("client", client);
  const response = http.get(`${__ENV.BASE}/html`);
  show("response", response);
  for (const part of ["timings", "request", "ocsp"]) show(`response.${part}`, response[part]);
  const isField = (name) => typeof response[name] !== "function";
  console.log(`response keys ${Object.keys(response).filter(isField).sort()}`);
  console.log(`response json ${Object.keys(JSON.parse(JSON.stringify(response))).sort()}`);
  console.log(`response spread ${Object.keys({ ...response }).filter(isField).sort()}`);
  console.log(`response own ${response.hasOwnProperty("status")} ${response.hasOwnProperty("headers")} ${"json" in response}`);
  const page = html.parseHTML("<form><a href='/x'>a</a><input name='n' value='v'></form>");
  show("selection", page);
  show("element", page.find("a").get(0));
  const jar = http.cookieJar();
  show("jar", jar);
  show("expected", http.expectedStatuses(200));
  show("file", http.file("content", "name.txt"));
  show("scenario", execution.scenario);
  show("instance", execution.instance);
  show("test", execution.test);
  show("vu", execution.vu);
  show("vu.metrics", execution.vu.metrics);
  show("hash", crypto.createHash("sha256"));
  const socket = new websockets.WebSocket("ws://127.0.0.1:1/");
  for (const member of members(socket)) {
    const [name] = member.split(":");
    if (!/^[A-Z]+$/.test(name)) console.log(`socket ${/^on|^extensions/.test(name) ? name : member}`);
  }
}
