// URL and URLSearchParams of the URL Standard, as jslib url has them.

const native = globalThis[Symbol.for("plimsoll.native")].of("url");

export class URLSearchParams {
  #pairs;
  #changed = () => {};
  constructor(init = "") {
    if (typeof init === "object" && init !== null) {
      const entries = typeof init[Symbol.iterator] === "function" ? [...init] : Object.entries(init);
      this.#pairs = entries.map((pair) => {
        const [name, value, ...rest] = pair;
        if (value === undefined || rest.length > 0) throw new TypeError("each pair of URLSearchParams has a name and a value");
        return [String(name), String(value)];
      });
    } else this.#pairs = URLSearchParams.#parsed(String(init));
  }
  static #parsed(text) {
    const flat = native.formDecode(text.startsWith("?") ? text.slice(1) : text);
    const pairs = [];
    for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i], flat[i + 1]]);
    return pairs;
  }
  // Parameters that a URL follows.
  static of(query, changed) {
    const made = new URLSearchParams(query);
    made.#changed = changed;
    return made;
  }
  static reset(params, query) {
    params.#pairs = URLSearchParams.#parsed(query);
  }
  get size() {
    return this.#pairs.length;
  }
  append(name, value) {
    this.#pairs.push([String(name), String(value)]);
    this.#changed();
  }
  delete(name, value) {
    this.#pairs = this.#pairs.filter((pair) => pair[0] !== String(name) || (value !== undefined && pair[1] !== String(value)));
    this.#changed();
  }
  get(name) {
    return this.#pairs.find((pair) => pair[0] === String(name))?.[1] ?? null;
  }
  getAll(name) {
    return this.#pairs.filter((pair) => pair[0] === String(name)).map((pair) => pair[1]);
  }
  has(name, value) {
    return this.#pairs.some((pair) => pair[0] === String(name) && (value === undefined || pair[1] === String(value)));
  }
  set(name, value) {
    const position = this.#pairs.findIndex((pair) => pair[0] === String(name));
    if (position < 0) this.#pairs.push([String(name), String(value)]);
    else {
      this.#pairs[position][1] = String(value);
      this.#pairs = this.#pairs.filter((pair, index) => index <= position || pair[0] !== String(name));
    }
    this.#changed();
  }
  sort() {
    this.#pairs.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
    this.#changed();
  }
  forEach(call, self) {
    for (const [name, value] of [...this.#pairs]) call.call(self, value, name, this);
  }
  *entries() {
    for (const [name, value] of this.#pairs) yield [name, value];
  }
  *keys() {
    for (const [name] of this.#pairs) yield name;
  }
  *values() {
    for (const [, value] of this.#pairs) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
  toString() {
    return native.formEncode(this.#pairs.flat());
  }
  get [Symbol.toStringTag]() {
    return "URLSearchParams";
  }
}

const PARTS = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];

export class URL {
  #parts;
  #params;
  constructor(address, base) {
    this.#parts = native.parseUrl(String(address), base === undefined ? undefined : String(base));
    this.#params = URLSearchParams.of(this.search, () => {
      const query = this.#params.toString();
      this.#parts = native.setUrlPart(this.href, "search", query === "" ? "" : `?${query}`);
    });
  }
  static canParse(address, base) {
    try {
      return new URL(address, base) !== null;
    } catch {
      return false;
    }
  }
  static {
    for (const [index, name] of PARTS.entries()) {
      Object.defineProperty(URL.prototype, name, {
        enumerable: true,
        configurable: true,
        get() {
          return this.#parts[index];
        },
        set:
          name === "origin"
            ? undefined
            : function (value) {
                this.#parts = name === "href" ? native.parseUrl(String(value)) : native.setUrlPart(this.href, name, String(value));
                URLSearchParams.reset(this.#params, this.search);
              },
      });
    }
  }
  get searchParams() {
    return this.#params;
  }
  toString() {
    return this.href;
  }
  toJSON() {
    return this.href;
  }
  get [Symbol.toStringTag]() {
    return "URL";
  }
}

export default { URL, URLSearchParams };
