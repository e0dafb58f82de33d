(host) => {
  "use strict";
  const { parse, stringify } = JSON;
  const { keys, entries } = Object;
  const { isArray } = Array;
  const dictionary = () => Object.create(null);

  // The first value of each name, and all of them; names and values take turns in `pairs`.
  const first = (pairs) => {
    const made = dictionary();
    for (let i = 0; i < pairs.length; i += 2) if (!(pairs[i] in made)) made[pairs[i]] = pairs[i + 1];
    return made;
  };
  const all = (pairs) => {
    const made = dictionary();
    for (let i = 0; i < pairs.length; i += 2) (made[pairs[i]] ??= []).push(pairs[i + 1]);
    return made;
  };

  class Request {
    #query;
    #form;
    #json;
    #isParsed = false;
    constructor(method, path, url, host, peer, secure, headers, params, body, query, cookies, form) {
      this.#query = query;
      this.#form = form;
      this.method = method;
      this.path = path;
      this.url = url;
      this.host = host;
      this.peer = peer;
      this.secure = secure;
      this.headers = headers;
      this.params = params;
      this.body = body;
      this.query = first(query);
      this.cookies = first(cookies);
      this.form = first(form);
    }
    get queryAll() {
      return all(this.#query);
    }
    get formAll() {
      return all(this.#form);
    }
    get json() {
      if (!this.#isParsed) {
        this.#isParsed = true;
        try {
          this.#json = parse(this.body);
        } catch {
          this.#json = undefined;
        }
      }
      return this.#json;
    }
  }

  const store = Object.freeze({
    get: (key) => host.get(String(key)),
    set: (key, value) => {
      host.set(String(key), value);
    },
    add: (key, by = 1) => host.add(String(key), by),
    delete: (key) => host.delete(String(key)),
    keys: (beginning = "") => host.keys(String(beginning)),
  });

  Math.random = host.random;

  class Context {
    constructor(state) {
      this.state = state ?? undefined;
      this.store = store;
    }
    get now() {
      return host.now();
    }
    integer(least, most) {
      return Math.floor(host.random() * (most - least + 1)) + least;
    }
    uuid() {
      return host.uuid();
    }
    fake(name) {
      return host.fake(String(name));
    }
  }

  const known = { status: "number", headers: "object", body: null, base64: "string", state: "string" };
  const isResponse = (value) => {
    if (typeof value !== "object" || value === null || isArray(value)) return false;
    const given = keys(value).filter((key) => value[key] !== undefined);
    return (
      given.length > 0 &&
      given.every((key) => key in known && (known[key] === null || typeof value[key] === known[key]))
    );
  };

  const content = (value) => {
    if (value === undefined || value === null) return ["none", ""];
    if (typeof value === "string") return ["text", value];
    return ["json", stringify(value) ?? ""];
  };

  const answer = (value) => {
    if (!isResponse(value)) {
      const [kind, text] = value === null ? ["json", "null"] : content(value);
      return { headers: [], kind, text };
    }
    const headers = [];
    for (const [name, given] of entries(value.headers ?? {})) {
      for (const one of isArray(given) ? given : [given]) headers.push([name, String(one)]);
    }
    const [kind, text] = value.base64 === undefined ? content(value.body) : ["base64", value.base64];
    return { status: value.status, headers, kind, text, state: value.state };
  };

  return (handler, state, ...request) => {
    const answered = handler(new Request(...request), new Context(state));
    return typeof answered?.then === "function"
      ? Promise.resolve(answered).then(answer)
      : answer(answered);
  };
}
