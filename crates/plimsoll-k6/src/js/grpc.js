const native = globalThis[Symbol.for("plimsoll.native")].of("grpc");

export const StatusOK = 0;
export const StatusCanceled = 1;
export const StatusUnknown = 2;
export const StatusInvalidArgument = 3;
export const StatusDeadlineExceeded = 4;
export const StatusNotFound = 5;
export const StatusAlreadyExists = 6;
export const StatusPermissionDenied = 7;
export const StatusResourceExhausted = 8;
export const StatusFailedPrecondition = 9;
export const StatusAborted = 10;
export const StatusOutOfRange = 11;
export const StatusUnimplemented = 12;
export const StatusInternal = 13;
export const StatusUnavailable = 14;
export const StatusDataLoss = 15;
export const StatusUnauthenticated = 16;

export const HealthCheckUnknown = 0;
export const HealthCheckServing = 1;
export const HealthCheckNotServing = 2;
// k6 spells it so.
export const HealthCheckServiceUnkown = 3;

const HEALTH = { UNKNOWN: HealthCheckUnknown, SERVING: HealthCheckServing, NOT_SERVING: HealthCheckNotServing, SERVICE_UNKNOWN: HealthCheckServiceUnkown };

// Lists of values by name, in one list of names and values.
const collected = (pairs) => {
  const found = {};
  for (const [name, value] of pairs) (found[name] ??= []).push(value);
  return found;
};

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Binary metadata is sent as base64 (gRPC over HTTP2, "Custom-Metadata").
const encoded = (data) => {
  const bytes = new Uint8Array(data instanceof ArrayBuffer ? data : data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const left = Math.min(3, bytes.length - at);
    const bits = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    for (let digit = 0; digit <= left; digit++) text += BASE64[(bits >> (18 - 6 * digit)) & 63];
  }
  return text;
};

const metadataOf = (given, what) => {
  const list = [];
  if (given === undefined || given === null) return list;
  if (typeof given !== "object") native.fail(`${what} must be an object with key-value pairs`);
  for (const [name, value] of Object.entries(given)) {
    const isBinary = value instanceof ArrayBuffer || ArrayBuffer.isView(value);
    if (isBinary && !name.toLowerCase().endsWith("-bin")) native.fail(`${what}: "${name}" is binary, so its name must end with -bin`);
    if (!isBinary && typeof value !== "string") native.fail(`${what}: the value of "${name}" must be a string or, with -bin, an ArrayBuffer`);
    list.push([name, isBinary ? encoded(value) : value]);
  }
  return list;
};

const known = (params, names, what) => {
  for (const name of Object.keys(params)) if (!names.includes(name)) native.fail(`${what}: unknown param "${name}"; known are ${names.join(", ")}`);
};

// Roots as one text, certificate, key and its password.
const tlsOf = (given) => {
  if (typeof given !== "object") native.fail("connect params: tls must be an object with cacerts, cert and key");
  known(given, ["cacerts", "cert", "key", "password"], "connect params: tls");
  const roots = [given.cacerts ?? []].flat();
  if (!roots.every((it) => typeof it === "string")) native.fail("connect params: tls.cacerts must be a text in PEM, or a list of them");
  for (const name of ["cert", "key", "password"]) {
    const isText = given[name] === undefined || typeof given[name] === "string";
    if (!isText) native.fail(`connect params: tls.${name} must be a text${name === "password" ? "" : " in PEM"}`);
  }
  if ((given.cert === undefined) !== (given.key === undefined)) native.fail("connect params: tls needs cert and key together");
  return [roots.join("\n"), given.cert, given.key, given.password];
};

const callOf = (method, message, params, timeout) => {
  if (typeof method !== "string" || method === "") native.fail("the method must be a text such as \"package.Service/Method\"");
  const given = params ?? {};
  known(given, ["metadata", "tags", "timeout", "discardResponseMessage"], "params");
  return [method, JSON.stringify(message), metadataOf(given.metadata, "metadata"), given.tags, given.timeout ?? timeout, given.discardResponseMessage === true];
};

const responseOf = ({ status, message, headers, trailers, error }) => ({
  status,
  message: message === undefined ? null : JSON.parse(message),
  headers: collected(headers),
  trailers: collected(trailers),
  error: status === StatusOK ? null : { code: status, message: error, details: [] },
});

const numbers = new WeakMap();

const numberOf = (client) => {
  const number = numbers.get(client);
  if (number === undefined) native.fail("the first argument of a Stream must be a grpc.Client");
  return number;
};

export const Client = native.callable(
  class Client {
    constructor() {
      numbers.set(this, native.newClient());
    }
    load(importPaths, ...files) {
      if (files.length === 0) native.fail("load() needs the name of a .proto file");
      return native.load(numberOf(this), importPaths ?? [], files);
    }
    loadProtoset(path) {
      return native.loadSet(numberOf(this), String(path));
    }
    connect(address, params) {
      const given = params ?? {};
      known(given, ["plaintext", "reflect", "reflectMetadata", "timeout", "maxReceiveSize", "maxSendSize", "authority", "tls"], "connect params");
      const tls = given.tls === undefined || given.tls === null ? [] : tlsOf(given.tls);
      const reflects = given.reflect === true ? metadataOf(given.reflectMetadata, "reflectMetadata") : undefined;
      native.connect(numberOf(this), String(address), given.plaintext === true, given.timeout ?? "60s", reflects, given.authority, given.maxReceiveSize, given.maxSendSize, ...tls);
      return true;
    }
    invoke(method, message, params) {
      return responseOf(native.invoke(numberOf(this), ...callOf(method, message ?? {}, params, "2m")));
    }
    async asyncInvoke(method, message, params) {
      return responseOf(await native.invokeLater(numberOf(this), ...callOf(method, message ?? {}, params, "2m")));
    }
    healthCheck(service = "", params) {
      const response = this.invoke("grpc.health.v1.Health/Check", { service }, params);
      if (response.message) response.message.status = HEALTH[response.message.status];
      return response;
    }
    close() {
      native.close(numberOf(this));
    }
  },
);

const EVENTS = ["data", "error", "end"];

export const Stream = native.callable(
  class Stream {
    #id;
    #handlers = { data: [], error: [], end: [] };
    constructor(client, method, params) {
      this.#id = native.openStream(numberOf(client), ...callOf(method, {}, params, 0));
      this.#run();
    }
    async #run() {
      for (;;) {
        const [name, value, error] = await native.nextLater(this.#id);
        if (name === "data") this.#emit("data", JSON.parse(value), { ts: Date.now() });
        else if (name === "error") this.#emit("error", { code: value, message: error, details: [] });
        else {
          this.#emit("end");
          return;
        }
      }
    }
    #emit(name, ...values) {
      for (const handler of this.#handlers[name]) handler(...values);
    }
    on(name, handler) {
      if (!EVENTS.includes(name)) native.fail(`a Stream has no event ${name}; known are ${EVENTS.join(", ")}`);
      if (typeof handler !== "function") native.fail("the listener must be a function");
      this.#handlers[name].push(handler);
    }
    write(message) {
      native.write(this.#id, JSON.stringify(message));
    }
    end() {
      native.end(this.#id);
    }
  },
);

export default {
  Client, Stream,
  StatusOK, StatusCanceled, StatusUnknown, StatusInvalidArgument, StatusDeadlineExceeded, StatusNotFound, StatusAlreadyExists, StatusPermissionDenied, StatusResourceExhausted,
  StatusFailedPrecondition, StatusAborted, StatusOutOfRange, StatusUnimplemented, StatusInternal, StatusUnavailable, StatusDataLoss, StatusUnauthenticated,
  HealthCheckUnknown, HealthCheckServing, HealthCheckNotServing, HealthCheckServiceUnkown,
};
