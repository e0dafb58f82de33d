const native = globalThis[Symbol.for("plimsoll.native")].of("data");

const frozen = (value) => {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(frozen);
    Object.freeze(value);
  }
  return value;
};

const readOnly = () => {
  throw new TypeError("SharedArray is immutable");
};

// The target is an array, so that the proxy is one too; it stays empty.
const handler = (id, length) => {
  const has = (key) => typeof key === "string" && /^(0|[1-9]\d*)$/.test(key) && Number(key) < length;
  const element = (key) => frozen(JSON.parse(native.sharedElement(id, Number(key))));
  return {
    get(target, key) {
      if (has(key)) return element(key);
      return key === "length" ? length : Reflect.get(target, key);
    },
    has: (target, key) => has(key) || Reflect.has(target, key),
    ownKeys: () => [...Array.from({ length }, (_, index) => String(index)), "length"],
    getOwnPropertyDescriptor(_, key) {
      if (key === "length") return { value: length, writable: true, enumerable: false, configurable: false };
      return has(key) ? { value: element(key), writable: false, enumerable: true, configurable: true } : undefined;
    },
    set: readOnly,
    defineProperty: readOnly,
    deleteProperty: readOnly,
  };
};

export const SharedArray = native.callable(
  class SharedArray {
    constructor(name, make) {
      native.requireInit("SharedArray");
      if (typeof name !== "string" || name === "") native.fail("SharedArray needs a name");
      if (typeof make !== "function") native.fail("SharedArray needs a function that returns an array");
      let id = native.findShared(name);
      if (id < 0) {
        const made = make();
        if (!Array.isArray(made)) native.fail("the function of a SharedArray must return an array");
        id = native.share(name, made.map((element) => JSON.stringify(element) ?? "null"));
      }
      return new Proxy([], handler(id, native.sharedLength(id)));
    }
  },
);

export default { SharedArray };
