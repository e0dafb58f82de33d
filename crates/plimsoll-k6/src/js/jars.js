// Frees the native side of cookie jars that a script no longer uses.

const native = globalThis[Symbol.for("plimsoll.native")].of("http");

export default new FinalizationRegistry((id) => native.dropJar(id));
