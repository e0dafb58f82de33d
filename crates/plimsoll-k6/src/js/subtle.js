// crypto.subtle

const native = globalThis[Symbol.for("plimsoll.native")].of("subtle");
const codec = native.of("codec");

const failure = (name, message) => Object.assign(new Error(message), { name });
const HASHES = { "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512" };
const BLOCKS = { "SHA-1": 512, "SHA-256": 512, "SHA-384": 1024, "SHA-512": 1024 };
const AES = ["AES-CBC", "AES-CTR", "AES-GCM"];
const SUPPORTED = [...AES, "HMAC", "PBKDF2", "ECDSA"];

const bytesOf = (data, what) => {
  if (data instanceof ArrayBuffer) return data.slice(0);
  if (ArrayBuffer.isView(data)) return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
  throw failure("TypeError", `${what} must be an ArrayBuffer or a typed array`);
};
const hashOf = (given) => {
  const name = String(given?.name ?? given).toUpperCase();
  if (!Object.hasOwn(HASHES, name)) throw failure("NotSupportedError", `no hash ${name}; known are ${Object.keys(HASHES).join(", ")}`);
  return name;
};
const algorithmOf = (given) => {
  const wanted = String(given?.name ?? given);
  const name = SUPPORTED.find((it) => it.toUpperCase() === wanted.toUpperCase());
  if (!name) throw failure("NotSupportedError", `${wanted} is not supported by plimsoll, which has ${SUPPORTED.join(", ")}`);
  return name;
};
const curveOf = (given) => {
  if (given.namedCurve !== "P-256" && given.namedCurve !== "P-384") {
    throw failure("NotSupportedError", `curve ${given.namedCurve} is not supported by plimsoll, which has P-256 and P-384`);
  }
  return given.namedCurve;
};
const run = (rule) => {
  try {
    return rule();
  } catch (error) {
    throw error.name === "Error" ? failure("OperationError", error.message) : error;
  }
};

export class CryptoKey {
  #bytes;
  constructor(type, algorithm, extractable, usages, bytes) {
    this.type = type;
    this.algorithm = algorithm;
    this.extractable = Boolean(extractable);
    this.usages = [...usages];
    this.#bytes = bytes;
  }
  // The bytes, if the key is meant for this.
  static use(key, name, usages) {
    if (!(key instanceof CryptoKey)) throw failure("TypeError", "the key must be a CryptoKey");
    if (name !== undefined && key.algorithm.name !== name) {
      throw failure("InvalidAccessError", `the key is one of ${key.algorithm.name}, not of ${name}`);
    }
    if (usages && !usages.some((usage) => key.usages.includes(usage))) {
      throw failure("InvalidAccessError", `the usages of the key are ${key.usages.join(", ") || "none"}, without ${usages[0]}`);
    }
    return key.#bytes;
  }
}

const USAGES = {
  "AES-CBC": ["encrypt", "decrypt", "wrapKey", "unwrapKey"],
  "AES-CTR": ["encrypt", "decrypt", "wrapKey", "unwrapKey"],
  "AES-GCM": ["encrypt", "decrypt", "wrapKey", "unwrapKey"],
  HMAC: ["sign", "verify"],
  PBKDF2: ["deriveKey", "deriveBits"],
  ECDSA: ["sign", "verify"],
};
const usagesOf = (name, usages, type) => {
  const wrong = usages.find((usage) => !USAGES[name].includes(usage));
  if (wrong !== undefined) throw failure("SyntaxError", `a key of ${name} cannot be used to ${wrong}`);
  if (usages.length === 0 && type !== "public") throw failure("SyntaxError", "the usages of the key must not be empty");
  return usages;
};
const secret = (algorithm, extractable, usages, bytes) => new CryptoKey("secret", algorithm, extractable, usages, bytes);

const aesKey = (name, bytes, extractable, usages) => {
  const length = bytes.byteLength * 8;
  if (![128, 192, 256].includes(length)) throw failure("DataError", `a key of AES has 128, 192 or 256 bits, not ${length}`);
  return secret({ name, length }, extractable, usages, bytes);
};
const hmacKey = (given, bytes, extractable, usages) => {
  if (bytes.byteLength === 0) throw failure("DataError", "a key of HMAC must not be empty");
  return secret({ name: "HMAC", hash: { name: hashOf(given.hash) }, length: bytes.byteLength * 8 }, extractable, usages, bytes);
};

// The start of the DER of a public key, before its point (RFC 5480).
const SPKI = {
  "P-256": "3059301306072a8648ce3d020106082a8648ce3d030107034200",
  "P-384": "3076301006072a8648ce3d020106052b81040022036200",
};
const POINT = { "P-256": 65, "P-384": 97 };
const fromHex = (text) => new Uint8Array(text.match(/../g).map((pair) => Number.parseInt(pair, 16)));
const publicKey = (curve, format, data) => {
  const bytes = new Uint8Array(data);
  const start = format === "spki" ? fromHex(SPKI[curve]) : [];
  const point = bytes.slice(start.length);
  const isKnown = start.every((byte, index) => bytes[index] === byte);
  if (!isKnown || point.length !== POINT[curve] || point[0] !== 4) throw failure("DataError", `the key is no ${format} of ${curve} whose point is not compressed`);
  return point.buffer;
};

const importJwk = (name, jwk, given, extractable, usages) => {
  if (jwk?.kty !== "oct" || typeof jwk.k !== "string") throw failure("DataError", "plimsoll imports JSON Web Keys of the kind `oct` only");
  const bytes = codec.b64decode(jwk.k, "rawurl");
  return name === "HMAC" ? hmacKey(given, bytes, extractable, usages) : aesKey(name, bytes, extractable, usages);
};

const imported = (format, data, given, extractable, usages) => {
  const name = algorithmOf(given);
  if (name === "ECDSA") {
    const curve = curveOf(given);
    const algorithm = { name, namedCurve: curve };
    if (format === "raw" || format === "spki") {
      const point = publicKey(curve, format, bytesOf(data, "a key"));
      return new CryptoKey("public", algorithm, extractable, usagesOf(name, usages, "public"), point);
    }
    if (format !== "pkcs8") throw failure("NotSupportedError", `keys of ECDSA are imported by plimsoll as raw, spki and pkcs8, not as ${format}`);
    const bytes = bytesOf(data, "a key");
    try {
      native.ecdsaPublic(curve, bytes);
    } catch (error) {
      throw failure("DataError", error.message);
    }
    return new CryptoKey("private", algorithm, extractable, usagesOf(name, usages, "private"), bytes);
  }
  usagesOf(name, usages, "secret");
  if (format === "jwk" && name !== "PBKDF2") return importJwk(name, data, given, extractable, usages);
  if (format !== "raw") throw failure("NotSupportedError", `keys of ${name} are not imported as ${format}`);
  const bytes = bytesOf(data, "a key");
  if (name === "HMAC") return hmacKey(given, bytes, extractable, usages);
  if (name === "PBKDF2") return secret({ name }, false, usages, bytes);
  return aesKey(name, bytes, extractable, usages);
};

const exported = (format, key) => {
  const bytes = CryptoKey.use(key);
  if (!key.extractable) throw failure("InvalidAccessError", "the key is not extractable");
  const { name, namedCurve, hash } = key.algorithm;
  if (format === "raw" && key.type !== "private") return bytes.slice(0);
  if (format === "pkcs8" && key.type === "private") return bytes.slice(0);
  if (format === "spki" && key.type === "public") return new Uint8Array([...fromHex(SPKI[namedCurve]), ...new Uint8Array(bytes)]).buffer;
  if (format === "jwk" && key.type === "secret") {
    const alg = name === "HMAC" ? `HS${hash.name.slice(4)}` : `A${key.algorithm.length}${name.slice(4)}`;
    return { kty: "oct", k: codec.b64encode(bytes, "rawurl"), alg, ext: key.extractable, key_ops: [...key.usages] };
  }
  throw failure("NotSupportedError", `a ${key.type} key of ${name} is not exported as ${format}`);
};

const crypt = (encrypts, given, key, data) => {
  const name = algorithmOf(given);
  if (!AES.includes(name)) throw failure("NotSupportedError", `${name} does not encrypt`);
  const bytes = CryptoKey.use(key, name, [encrypts ? "encrypt" : "decrypt"]);
  const start = bytesOf(name === "AES-CTR" ? given.counter : given.iv, name === "AES-CTR" ? "counter" : "iv");
  if (name === "AES-GCM" && (given.tagLength ?? 128) !== 128) throw failure("NotSupportedError", "AES-GCM is supported with tags of 128 bits");
  const also = given.additionalData === undefined ? new ArrayBuffer(0) : bytesOf(given.additionalData, "additionalData");
  return run(() => native.aes(name, encrypts, bytes, start, given.length ?? 0, bytesOf(data, "the data"), also));
};

const checkHash = (given, key) => {
  const hash = hashOf(given.hash);
  const expected = key.algorithm.namedCurve === "P-384" ? "SHA-384" : "SHA-256";
  if (hash !== expected) throw failure("NotSupportedError", `ECDSA with ${key.algorithm.namedCurve} is supported with ${expected} only`);
};
const sign = (given, key, data) => {
  const name = algorithmOf(given);
  const bytes = CryptoKey.use(key, name, ["sign"]);
  const content = bytesOf(data, "the data");
  if (name === "HMAC") return codec.digest(HASHES[key.algorithm.hash.name], bytes, [content], "binary");
  if (name !== "ECDSA") throw failure("NotSupportedError", `${name} does not sign`);
  checkHash(given, key);
  if (key.type !== "private") throw failure("InvalidAccessError", "a signature needs a private key");
  return run(() => native.ecdsaSign(key.algorithm.namedCurve, bytes, content));
};
const verify = (given, key, signature, data) => {
  const name = algorithmOf(given);
  const bytes = CryptoKey.use(key, name, ["verify"]);
  const [signed, content] = [bytesOf(signature, "the signature"), bytesOf(data, "the data")];
  if (name === "ECDSA") {
    checkHash(given, key);
    if (key.type !== "public") throw failure("InvalidAccessError", "a signature is verified by a public key");
    return native.ecdsaVerify(key.algorithm.namedCurve, bytes, signed, content);
  }
  if (name !== "HMAC") throw failure("NotSupportedError", `${name} does not verify`);
  const made = new Uint8Array(codec.digest(HASHES[key.algorithm.hash.name], bytes, [content], "binary"));
  const other = new Uint8Array(signed);
  return made.length === other.length && made.every((byte, index) => byte === other[index]);
};

const generate = (given, extractable, usages) => {
  const name = algorithmOf(given);
  if (name === "ECDSA") {
    usagesOf(name, usages, "private");
    const curve = curveOf(given);
    const pair = run(() => native.ecdsaGenerate(curve));
    const algorithm = { name, namedCurve: curve };
    const only = (usage) => usages.filter((it) => it === usage);
    return {
      privateKey: new CryptoKey("private", algorithm, extractable, only("sign"), pair),
      publicKey: new CryptoKey("public", algorithm, true, only("verify"), native.ecdsaPublic(curve, pair)),
    };
  }
  if (name === "PBKDF2") throw failure("NotSupportedError", "keys of PBKDF2 are imported, not generated");
  usagesOf(name, usages, "secret");
  if (name === "HMAC") return hmacKey(given, native.secureRandom((given.length ?? BLOCKS[hashOf(given.hash)]) / 8), extractable, usages);
  if (![128, 192, 256].includes(given.length)) throw failure("OperationError", `length is 128, 192 or 256, not ${given.length}`);
  return aesKey(name, native.secureRandom(given.length / 8), extractable, usages);
};

const derived = (given, key, bits, usages) => {
  const name = algorithmOf(given);
  if (name !== "PBKDF2") throw failure("NotSupportedError", `${name} does not derive`);
  const bytes = CryptoKey.use(key, name, usages);
  if (!Number.isInteger(bits) || bits <= 0 || bits % 8 !== 0) throw failure("OperationError", "length is a multiple of 8 bits above 0");
  return run(() => native.pbkdf2(HASHES[hashOf(given.hash)], bytes, bytesOf(given.salt, "salt"), given.iterations, bits / 8));
};
const deriveKey = (given, key, target, extractable, usages) => {
  const name = algorithmOf(target);
  const bits = name === "HMAC" ? (target.length ?? BLOCKS[hashOf(target.hash)]) : target.length;
  return imported("raw", derived(given, key, bits, ["deriveKey"]), target, extractable, usages);
};

// Each is a promise, whose errors have the names of the Web Cryptography API.
const promised = (rule) => async (...values) => rule(...values);

export const subtle = Object.freeze({
  digest: promised((given, data) => codec.digest(HASHES[hashOf(given)], undefined, [bytesOf(data, "the data")], "binary")),
  importKey: promised(imported),
  exportKey: promised(exported),
  generateKey: promised(generate),
  encrypt: promised((...values) => crypt(true, ...values)),
  decrypt: promised((...values) => crypt(false, ...values)),
  sign: promised(sign),
  verify: promised(verify),
  deriveBits: promised((given, key, bits) => derived(given, key, bits, ["deriveBits"])),
  deriveKey: promised(deriveKey),
});

export default { subtle, CryptoKey };
