const native = globalThis["plimsoll natives"];
const groups = {};
const libraries = {};
// Native functions of a module, and libraries that are loaded at their first use.
native.of = (name) => (groups[name] ??= Object.setPrototypeOf(native.group(name), native));
native.use = (name) => (libraries[name] ??= native.library(name));
Object.defineProperty(globalThis, Symbol.for("plimsoll.native"), { value: native });
globalThis.global = globalThis;
globalThis.open = native.open;
globalThis.require = (specifier) => native.use("require").require(specifier);
native.commonjs = (name, body) => native.use("require").commonjs(name, body);
native.callable = (Class) => native.use("constructors")(Class);

const as =
  (level) =>
  (...values) =>
    native.log(level, values.map((value) => (typeof value === "string" ? value : native.use("shown")(value))).join(" "));
globalThis.console = { log: as("info"), info: as("info"), debug: as("debug"), warn: as("warn"), error: as("error") };

for (const name of ["TextEncoder", "TextDecoder", "crypto"]) {
  const define = (value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  Object.defineProperty(globalThis, name, {
    configurable: true,
    get: () => {
      define(native.use("web")[name]);
      return globalThis[name];
    },
    set: define,
  });
}

Math.random = native.random;
