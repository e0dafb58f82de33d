const native = globalThis[Symbol.for("plimsoll.native")].of("secrets");

const reading = (source) => async (key) => native.secret(source, String(key));

export default {
  get: reading(undefined),
  source: (name) => ({ get: reading(String(name)) }),
};
