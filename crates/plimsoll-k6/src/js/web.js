// Globals that few scripts use.

const native = globalThis[Symbol.for("plimsoll.native")].of("codec");

export const TextEncoder = native.callable(
  class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(text = "") {
      return new Uint8Array(native.encodeText(String(text)));
    }
  },
);

export const TextDecoder = native.callable(
  class TextDecoder {
    constructor(label = "utf-8") {
      if (!/^utf-?8$/i.test(label)) throw new RangeError(`TextDecoder supports utf-8 only, not ${label}`);
    }
    get encoding() {
      return "utf-8";
    }
    decode(data) {
      return data === undefined ? "" : native.decodeText(data);
    }
  },
);

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export const crypto = Object.freeze({
  getRandomValues(view) {
    const isInteger = ArrayBuffer.isView(view) && !/^(Float|DataView)/.test(view.constructor.name);
    if (!isInteger) throw Object.assign(new Error("getRandomValues() takes a typed array of integers"), { name: "TypeMismatchError" });
    if (view.byteLength > 65536) throw Object.assign(new Error("getRandomValues() fills at most 65536 bytes"), { name: "QuotaExceededError" });
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    if (bytes.length > 0) bytes.set(new Uint8Array(native.randomBytes(bytes.length)));
    return view;
  },
  randomUUID() {
    const bytes = new Uint8Array(native.randomBytes(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const text = hex(bytes);
    return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join("-");
  },
  get subtle() {
    return native.use("subtle").subtle;
  },
});

export default { TextEncoder, TextDecoder, crypto };
