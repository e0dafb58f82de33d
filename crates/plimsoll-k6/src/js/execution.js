const native = globalThis[Symbol.for("plimsoll.native")].of("execution");

const getters = (what, names) => {
  const made = {};
  for (const name of names) {
    Object.defineProperty(made, name, { enumerable: true, get: () => native.execution(`${what}.${name}`) });
  }
  return made;
};

// An object whose properties the native side keeps.
const kept = (what, { get, set, names }) => new Proxy(
  {},
  {
    get: (_, name) => (typeof name === "string" ? get(name) : undefined),
    set: (_, name, value) => {
      if (!["string", "number", "boolean"].includes(typeof value)) {
        throw new TypeError(`${what} ${String(name)} must be a string, a number or a boolean`);
      }
      set(name, String(value));
      return true;
    },
    deleteProperty: (_, name) => {
      set(name, undefined);
      return true;
    },
    has: (_, name) => get(String(name)) !== undefined,
    ownKeys: () => names(),
    getOwnPropertyDescriptor: (_, name) => ({ value: get(name), enumerable: true, configurable: true, writable: true }),
  },
);
const tags = kept("tag", { get: native.tag, set: native.setTag, names: native.tagNames });
const metadata = kept("metadata", { get: native.metadata, set: native.setMetadata, names: native.metadataNames });

export const instance = getters("instance", [
  "iterationsInterrupted",
  "iterationsCompleted",
  "vusActive",
  "vusInitialized",
  "currentTestRunDuration",
]);

export const scenario = getters("scenario", [
  "name",
  "executor",
  "startTime",
  "progress",
  "iterationInInstance",
  "iterationInTest",
]);

let options;

const frozen = (value) => {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(frozen);
    Object.freeze(value);
  }
  return value;
};

export const test = {
  abort: (message) => native.abort(message === undefined ? "" : String(message)),
  fail: (message) => native.markFailed(message === undefined ? "" : String(message)),
  get options() {
    native.forbidInit("test.options");
    return (options ??= frozen(JSON.parse(native.options())));
  },
};

export const vu = getters("vu", ["idInInstance", "idInTest", "iterationInInstance", "iterationInScenario"]);
Object.defineProperty(vu, "tags", { enumerable: true, value: tags });
Object.defineProperty(vu, "metrics", { enumerable: true, value: { tags, metadata } });

export default { instance, scenario, test, vu };
