// `require()`, and what CommonJS modules export.

const native = globalThis[Symbol.for("plimsoll.native")].of("require");

// CommonJS modules that have begun to run, by their names.
const modules = Object.create(null);
// What `require()` returned for others.
const others = Object.create(null);

// Runs a module. Returns its `module.exports`, its default export, and a function that lists its names.
const commonjs = (name, body) => {
  const module = (modules[name] = { exports: {} });
  try {
    body.call(module.exports, module, module.exports);
    if (module.exports === null || module.exports === undefined) throw new Error(`module.exports of ${name} must not be ${module.exports}`);
  } catch (error) {
    delete modules[name];
    throw error;
  }
  const { exports } = module;
  const object = Object(exports);
  const names = () => {
    const all = { ...object };
    if (!("default" in all)) Object.defineProperty(all, "default", { value: exports });
    return all;
  };
  return [exports, "default" in object ? object.default : exports, names];
};

const require = (specifier) => {
  if (specifier === undefined || specifier === "") native.fail("require() needs the name or the path of a module");
  const name = native.resolveRequired(String(specifier));
  // One that requires itself over another one gets what it has exported until then.
  if (name in modules) return modules[name].exports;
  if (name in others) return others[name];
  const all = native.importRequired(name);
  if (name in modules) return modules[name].exports;
  // Modules of k6 are objects that scripts may change.
  return (others[name] = name.startsWith("plimsoll:k6") || name.endsWith(".json") ? all.default : all);
};

export default { commonjs, require };
