const native = globalThis[Symbol.for("plimsoll.native")];

export const parseHTML = (source) => native.use("dom").parse(source);

export default { parseHTML };
