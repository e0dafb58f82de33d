const native = globalThis[Symbol.for("plimsoll.native")].of("codec");

export const b64encode = (data, encoding) => native.b64encode(data, encoding ?? "std");
export const b64decode = (text, encoding, form) => native.b64decode(String(text ?? ""), encoding ?? "std", form === "s");

export default { b64encode, b64decode };
