(ask) => {
  "use strict";
  const { parse, stringify } = JSON;
  const { keys, entries } = Object;
  const { isArray } = Array;
  const dictionary = () => Object.create(null);

  // The first value of each name, and all of them.
  const first = (pairs) => {
    const made = dictionary();
    for (const [name, value] of pairs) if (!(name in made)) made[name] = value;
    return made;
  };
  const all = (pairs) => {
    const made = dictionary();
    for (const [name, value] of pairs) (made[name] ??= []).push(value);
    return made;
  };

  class Request {
    #input;
    #json;
    #isParsed = false;
    constructor(input) {
      this.#input = input;
      this.method = input.method;
      this.path = input.path;
      this.url = input.url;
      this.host = input.host;
      this.peer = input.peer;
      this.secure = input.secure;
      this.headers = input.headers;
      this.params = input.params;
      this.body = input.body;
      this.query = first(input.query);
      this.cookies = first(input.cookies);
      this.form = first(input.form);
    }
    get queryAll() {
      return all(this.#input.query);
    }
    get formAll() {
      return all(this.#input.form);
    }
    get json() {
      if (!this.#isParsed) {
        this.#isParsed = true;
        try {
          this.#json = parse(this.#input.body);
        } catch {
          this.#json = undefined;
        }
      }
      return this.#json;
    }
  }

  const store = Object.freeze({
    get: (key) => ask("get", String(key))[0],
    set: (key, value) => {
      ask("set", String(key), value);
    },
    add: (key, by = 1) => ask("add", String(key), by),
    delete: (key) => ask("delete", String(key)),
    keys: (beginning = "") => ask("keys", String(beginning)),
  });

  Math.random = () => ask("random");

  class Context {
    constructor(state) {
      this.state = state ?? undefined;
      this.store = store;
    }
    get now() {
      return ask("now");
    }
    integer(least, most) {
      return Math.floor(ask("random") * (most - least + 1)) + least;
    }
    uuid() {
      return ask("uuid");
    }
    fake(name) {
      return ask("fake", String(name));
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

  return (handler, input) => {
    const answered = handler(new Request(input), new Context(input.state));
    return typeof answered?.then === "function"
      ? Promise.resolve(answered).then(answer)
      : answer(answered);
  };
}
