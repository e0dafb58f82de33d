const native = globalThis[Symbol.for("plimsoll.native")].of("http");

// What was made of a response's body: a private field of the response, which it can have although it is native.
class Given {
  constructor(response) {
    return response;
  }
}
class Kept extends Given {
  #made = {};
  static of(response) {
    if (!(#made in response)) new Kept(response);
    return response.#made;
  }
}

const textOf = (response, form) => {
  const body = response.body;
  if (typeof body === "string") return body;
  if (body === null || body === undefined) native.fail(`the body is null so we can't transform it to ${form} - this likely was because of a request error getting the response`);
  return native.of("codec").decodeText(body);
};

class Response {
  json(path) {
    const kept = Kept.of(this);
    // What a script gets whole it may change; selectors look into the body as it came.
    const form = path === undefined ? "json" : "selected";
    if (!(form in kept)) {
      const text = textOf(this, "JSON");
      try {
        kept[form] = JSON.parse(text);
      } catch (error) {
        if (path !== undefined) return undefined;
        native.fail(`cannot parse json due to an error: ${error.message}`);
      }
    }
    return path === undefined ? kept.json : native.use("json_path")(kept.selected, String(path));
  }
  html(selector) {
    const text = textOf(this, "HTML");
    const page = (Kept.of(this).page ??= native.use("dom").parse(text, this.url));
    return selector === undefined ? page : page.find(selector);
  }
  submitForm(given) {
    return native.use("pages").submitForm(this, given ?? {}, send);
  }
  clickLink(given) {
    return native.use("pages").clickLink(this, given ?? {}, send);
  }
}

const layout = native.layout(Response.prototype);

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
  if (callback === undefined || callback === null) return null;
  if (callback instanceof ExpectedStatuses) return ExpectedStatuses.rangesOf(callback);
  return "unsupported responseCallback";
};

// Undefined: those from 200 to 399.
let defaultCallback;

export let setResponseCallback = (callback) => {
  const found = callbackOf(callback);
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
  if (body === undefined && params === undefined && defaultCallback === undefined && typeof target === "string")
    return native.requestPlain(layout, method, target);
  return native.request(layout, ...prepared(method, target, body, params));
};

export let request = send;

export let asyncRequest = (method, target, body, params) => {
  try {
    return Promise.resolve(native.requestAsync(layout, ...prepared(method, target, body, params)));
  } catch (error) {
    return Promise.reject(error);
  }
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
  const responses = native.batch(layout, all);
  const made = Array.isArray(requests) ? [] : {};
  keys.forEach((key, index) => (made[key] = responses[index] ?? null));
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
