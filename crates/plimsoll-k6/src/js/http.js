const native = globalThis[Symbol.for("plimsoll.native")].of("http");

class Response {
  #json;
  #page;
  // By index and with object literals: destructuring would run the array's iterator.
  constructor(parts) {
    this.remote_ip = parts[0];
    this.remote_port = parts[1];
    this.url = parts[2];
    this.status = parts[3];
    this.status_text = parts[4];
    this.proto = parts[5];
    this.headers = parts[6];
    this.cookies = parts[7];
    this.body = parts[8];
    this.timings = {
      duration: parts[9],
      blocked: parts[10],
      looking_up: 0,
      connecting: parts[11],
      tls_handshaking: parts[12],
      sending: parts[13],
      waiting: parts[14],
      receiving: parts[15],
    };
    this.tls_version = parts[16];
    this.tls_cipher_suite = parts[17];
    this.error = parts[18];
    this.error_code = parts[19];
    // Absent if there was none.
    this.request =
      parts[20] === undefined ? null : { method: parts[20], url: parts[24], headers: parts[21], body: parts[22], cookies: parts[23] };
    this.ocsp = { produced_at: 0, this_update: 0, next_update: 0, revoked_at: 0, revocation_reason: "", status: "" };
  }
  #text(form) {
    const body = this.body;
    if (typeof body === "string") return body;
    if (body === null || body === undefined) native.fail(`the body is null so we can't transform it to ${form} - this likely was because of a request error getting the response`);
    return native.of("codec").decodeText(body);
  }
  json(path) {
    if (this.#json === undefined) {
      const text = this.#text("JSON");
      try {
        this.#json = { value: JSON.parse(text) };
      } catch (error) {
        if (path !== undefined) return undefined;
        native.fail(`cannot parse json due to an error: ${error.message}`);
      }
    }
    if (path === undefined) return this.#json.value;
    return native.use("json_path")(this.#json.value, String(path));
  }
  html(selector) {
    const text = this.#text("HTML");
    this.#page ??= native.use("dom").parse(text, this.url);
    return selector === undefined ? this.#page : this.#page.find(selector);
  }
  submitForm(given) {
    return native.use("pages").submitForm(this, given ?? {}, send);
  }
  clickLink(given) {
    return native.use("pages").clickLink(this, given ?? {}, send);
  }
}

export let file = (data, filename, contentType) => native.use("bodies").file(data, filename, contentType);

// A body, with the content type that it brings.
const encoded = (body) => {
  if (body === undefined || body === null) return [undefined, undefined];
  return typeof body === "string" ? [body, undefined] : native.use("bodies").encoded(body);
};

class ExpectedStatuses {
  #ranges;
  constructor(ranges) {
    this.#ranges = ranges;
  }
  static rangesOf(expected) {
    return expected.#ranges;
  }
}

export let expectedStatuses = (...statuses) => {
  const ranges = [];
  for (const status of statuses) {
    if (Number.isInteger(status)) ranges.push(status, status);
    else if (Number.isInteger(status?.min) && Number.isInteger(status?.max)) ranges.push(status.min, status.max);
    else native.fail("expectedStatuses() takes numbers and objects with min and max");
  }
  if (ranges.length === 0) native.fail("expectedStatuses() needs at least one status");
  return new ExpectedStatuses(ranges);
};

const callbackOf = (callback) => {
  if (callback === undefined) return undefined;
  if (callback === null) return null;
  if (callback instanceof ExpectedStatuses) return ExpectedStatuses.rangesOf(callback);
  return "unsupported responseCallback";
};

let defaultCallback = [200, 399];

export let setResponseCallback = (callback) => {
  const found = callbackOf(callback ?? null);
  if (typeof found === "string") native.fail("a response callback must be http.expectedStatuses() or null");
  defaultCallback = found;
};

class HTTPURL {
  constructor(url, name) {
    this.url = url;
    this.name = name;
  }
  toString() {
    return this.url;
  }
}

export let url = (texts, ...values) => {
  let address = texts[0];
  let name = texts[0];
  values.forEach((value, index) => {
    address += String(value) + texts[index + 1];
    name += "${}" + texts[index + 1];
  });
  return new HTTPURL(address, name);
};

const Jar = native.callable(
  class CookieJar {
    #id;
    constructor(id) {
      if (id === undefined) {
        this.#id = native.newJar();
        native.use("jars").register(this, this.#id);
      } else this.#id = id;
    }
    static idOf(jar) {
      if (!(jar instanceof Jar)) native.fail("params.jar must be a http.CookieJar");
      return jar.#id;
    }
    set(address, name, value, options) {
      native.setCookie(this.#id, String(address), String(name), String(value), options ?? {});
      return true;
    }
    cookiesForURL(address) {
      const made = {};
      const pairs = native.cookiesFor(this.#id, String(address));
      for (let i = 0; i < pairs.length; i += 2) (made[pairs[i]] ??= []).push(pairs[i + 1]);
      return made;
    }
    clear(address) {
      native.clearCookies(this.#id, String(address));
    }
    delete(address, name) {
      native.deleteCookie(this.#id, String(address), String(name));
    }
  },
);

export let CookieJar = Jar;

// For other modules that take a jar.
native.idOfJar = Jar.idOf;

export let cookieJar = () => {
  native.forbidInit("http.cookieJar()");
  return new Jar(0);
};

// What the native side takes: method, url, name, body, content type, params, callback, jar.
const prepared = (method, target, body, params) => {
  const [content, kind] = encoded(body);
  const given = params ?? {};
  const callback = "responseCallback" in given ? callbackOf(given.responseCallback) : defaultCallback;
  const jar = given.jar instanceof Jar ? Jar.idOf(given.jar) : 0;
  const name = target instanceof HTTPURL && target.name !== target.url ? target.name : undefined;
  const address = target instanceof HTTPURL ? target.url : target;
  return [String(method), address, name, content, kind, given, callback, jar];
};

const send = (method, target, body, params) => {
  return new Response(native.request(...prepared(method, target, body, params)));
};

export let request = send;

export let asyncRequest = (method, target, body, params) => {
  let parts;
  try {
    parts = native.requestAsync(...prepared(method, target, body, params));
  } catch (error) {
    return Promise.reject(error);
  }
  return Promise.resolve(parts).then((it) => new Response(it));
};

export let get = (target, params) => send("GET", target, undefined, params);
export let head = (target, params) => send("HEAD", target, undefined, params);
export let post = (target, body, params) => send("POST", target, body, params);
export let put = (target, body, params) => send("PUT", target, body, params);
export let patch = (target, body, params) => send("PATCH", target, body, params);
export let del = (target, body, params) => send("DELETE", target, body, params);
export let options = (target, body, params) => send("OPTIONS", target, body, params);

export let batch = (requests) => {
  if (typeof requests !== "object" || requests === null) native.fail("batch() needs an array or an object");
  const keys = Object.keys(requests);
  const all = keys.map((key) => {
    const one = requests[key];
    if (Array.isArray(one)) return prepared(...one);
    if (typeof one === "object" && one !== null && !(one instanceof HTTPURL)) {
      return prepared(one.method ?? "GET", one.url, one.body, one.params);
    }
    return prepared("GET", one);
  });
  const responses = native.batch(all);
  const made = Array.isArray(requests) ? [] : {};
  keys.forEach((key, index) => (made[key] = responses[index] === undefined ? null : new Response(responses[index])));
  return made;
};

const constants = {
  TLS_1_0: "tls1.0",
  TLS_1_1: "tls1.1",
  TLS_1_2: "tls1.2",
  TLS_1_3: "tls1.3",
  OCSP_STATUS_GOOD: "good",
  OCSP_STATUS_REVOKED: "revoked",
  OCSP_STATUS_SERVER_FAILED: "server_failed",
  OCSP_STATUS_UNKNOWN: "unknown",
  OCSP_REASON_UNSPECIFIED: "unspecified",
  OCSP_REASON_KEY_COMPROMISE: "key_compromise",
  OCSP_REASON_CA_COMPROMISE: "ca_compromise",
  OCSP_REASON_AFFILIATION_CHANGED: "affiliation_changed",
  OCSP_REASON_SUPERSEDED: "superseded",
  OCSP_REASON_CESSATION_OF_OPERATION: "cessation_of_operation",
  OCSP_REASON_CERTIFICATE_HOLD: "certificate_hold",
  OCSP_REASON_REMOVE_FROM_CRL: "remove_from_crl",
  OCSP_REASON_PRIVILEGE_WITHDRAWN: "privilege_withdrawn",
  OCSP_REASON_AA_COMPROMISE: "aa_compromise",
};

export const {
  TLS_1_0,
  TLS_1_1,
  TLS_1_2,
  TLS_1_3,
  OCSP_STATUS_GOOD,
  OCSP_STATUS_REVOKED,
  OCSP_STATUS_SERVER_FAILED,
  OCSP_STATUS_UNKNOWN,
  OCSP_REASON_UNSPECIFIED,
  OCSP_REASON_KEY_COMPROMISE,
  OCSP_REASON_CA_COMPROMISE,
  OCSP_REASON_AFFILIATION_CHANGED,
  OCSP_REASON_SUPERSEDED,
  OCSP_REASON_CESSATION_OF_OPERATION,
  OCSP_REASON_CERTIFICATE_HOLD,
  OCSP_REASON_REMOVE_FROM_CRL,
  OCSP_REASON_PRIVILEGE_WITHDRAWN,
  OCSP_REASON_AA_COMPROMISE,
} = constants;

// Names that scripts import are properties of this object in k6: what a script assigns to one, its imports see.
export default {
  ...constants,
  get get() {
    return get;
  },
  set get(it) {
    get = it;
  },
  get head() {
    return head;
  },
  set head(it) {
    head = it;
  },
  get post() {
    return post;
  },
  set post(it) {
    post = it;
  },
  get put() {
    return put;
  },
  set put(it) {
    put = it;
  },
  get patch() {
    return patch;
  },
  set patch(it) {
    patch = it;
  },
  get del() {
    return del;
  },
  set del(it) {
    del = it;
  },
  get options() {
    return options;
  },
  set options(it) {
    options = it;
  },
  get request() {
    return request;
  },
  set request(it) {
    request = it;
  },
  get asyncRequest() {
    return asyncRequest;
  },
  set asyncRequest(it) {
    asyncRequest = it;
  },
  get batch() {
    return batch;
  },
  set batch(it) {
    batch = it;
  },
  get url() {
    return url;
  },
  set url(it) {
    url = it;
  },
  get file() {
    return file;
  },
  set file(it) {
    file = it;
  },
  get cookieJar() {
    return cookieJar;
  },
  set cookieJar(it) {
    cookieJar = it;
  },
  get CookieJar() {
    return CookieJar;
  },
  set CookieJar(it) {
    CookieJar = it;
  },
  get expectedStatuses() {
    return expectedStatuses;
  },
  set expectedStatuses(it) {
    expectedStatuses = it;
  },
  get setResponseCallback() {
    return setResponseCallback;
  },
  set setResponseCallback(it) {
    setResponseCallback = it;
  },
};
