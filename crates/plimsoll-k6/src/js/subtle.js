// crypto.subtle

const native = globalThis[Symbol.for("plimsoll.native")].of("subtle");
const codec = native.of("codec");

const failure = (name, message) => Object.assign(new Error(message), { name });
const HASHES = { "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512" };
const BLOCKS = { "SHA-1": 512, "SHA-256": 512, "SHA-384": 1024, "SHA-512": 1024 };
const AES = ["AES-CBC", "AES-CTR", "AES-GCM"];
const RSA = ["RSASSA-PKCS1-v1_5", "RSA-PSS", "RSA-OAEP"];
const SIZES = { "P-256": 32, "P-384": 48, "P-521": 66 };
const CURVES = ["ECDSA", "ECDH"];
const DERIVING = ["PBKDF2", "HKDF"];
const SUPPORTED = [...AES, "HMAC", ...DERIVING, ...CURVES, ...RSA];

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
  if (!Object.hasOwn(SIZES, given.namedCurve)) {
    throw failure("NotSupportedError", `curve ${given.namedCurve} is not supported by plimsoll, which has ${Object.keys(SIZES).join(", ")}`);
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
  HKDF: ["deriveKey", "deriveBits"],
  ECDSA: ["sign", "verify"],
  ECDH: ["deriveKey", "deriveBits"],
  "RSASSA-PKCS1-v1_5": ["sign", "verify"],
  "RSA-PSS": ["sign", "verify"],
  "RSA-OAEP": ["encrypt", "decrypt", "wrapKey", "unwrapKey"],
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
  "P-521": "30819b301006072a8648ce3d020106052b8104002303818600",
};
const POINT = { "P-256": 65, "P-384": 97, "P-521": 133 };
const fromHex = (text) => new Uint8Array(text.match(/../g).map((pair) => Number.parseInt(pair, 16)));
const publicKey = (curve, format, data) => {
  const bytes = new Uint8Array(data);
  const start = format === "spki" ? fromHex(SPKI[curve]) : [];
  const point = bytes.slice(start.length);
  const isKnown = start.every((byte, index) => bytes[index] === byte);
  if (!isKnown || point.length !== POINT[curve] || point[0] !== 4) throw failure("DataError", `the key is no ${format} of ${curve} whose point is not compressed`);
  return point.buffer;
};

// DER, as far as keys of RSA need it.
const tlv = (tag, ...parts) => {
  const content = parts.flatMap((part) => [...part]);
  const length = content.length;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return [tag, ...size, ...content];
};
const integer = (bytes) => {
  const trimmed = [...bytes].slice(Math.max(0, [...bytes].findIndex((byte) => byte !== 0)));
  return tlv(0x02, trimmed[0] >= 128 ? [0, ...trimmed] : trimmed);
};
// The content of the element at a position, and where the next one is.
const element = (bytes, tag, at = 0) => {
  const wrong = () => failure("DataError", "the key is no valid DER of RSA");
  if (bytes[at] !== tag) throw wrong();
  let [length, start] = [bytes[at + 1], at + 2];
  if (length >= 128) {
    const count = length & 127;
    if (count < 1 || count > 2) throw wrong();
    length = bytes.slice(start, start + count).reduce((sum, byte) => sum * 256 + byte, 0);
    start += count;
  }
  if (!(start + length <= bytes.length)) throw wrong();
  return { content: bytes.slice(start, start + length), end: start + length };
};
const RSA_ENCRYPTION = fromHex("300d06092a864886f70d0101010500");
const fieldsOf = (jwk, names) => names.map((name) => {
  if (typeof jwk[name] !== "string") throw failure("DataError", `the JSON Web Key has no ${name}`);
  return new Uint8Array(codec.b64decode(jwk[name], "rawurl"));
});
const rsaPkcs1Of = (spki) => {
  const outer = element(spki, 0x30).content;
  const algorithm = element(outer, 0x30);
  return element(outer, 0x03, algorithm.end).content.slice(1);
};
const rsaImported = (name, format, data, given, extractable, usages) => {
  const hash = hashOf(given.hash);
  const isPrivate = format === "pkcs8" || (format === "jwk" && data?.d !== undefined);
  let bytes;
  if (format === "jwk") {
    if (data?.kty !== "RSA") throw failure("DataError", "the JSON Web Key is not of the kind `RSA`");
    if (isPrivate) {
      const numbers = fieldsOf(data, ["n", "e", "d", "p", "q", "dp", "dq", "qi"]).map(integer);
      const inner = tlv(0x30, integer([0]), ...numbers);
      bytes = tlv(0x30, integer([0]), RSA_ENCRYPTION, tlv(0x04, inner));
    } else bytes = tlv(0x30, ...fieldsOf(data, ["n", "e"]).map(integer));
  } else if (format === "spki") bytes = rsaPkcs1Of(new Uint8Array(bytesOf(data, "a key")));
  else if (format === "pkcs8") bytes = new Uint8Array(bytesOf(data, "a key"));
  else throw failure("NotSupportedError", `keys of ${name} are imported as pkcs8, spki and jwk, not as ${format}`);
  bytes = Uint8Array.from(bytes).buffer;
  const algorithm = rsaAlgorithm(name, hash, isPrivate ? importedBy(() => native.rsaPublic(bytes)) : bytes);
  const type = isPrivate ? "private" : "public";
  return new CryptoKey(type, algorithm, extractable, usagesOf(name, usages, type), bytes);
};
const rsaAlgorithm = (name, hash, pkcs1) => {
  const inner = element(new Uint8Array(pkcs1), 0x30).content;
  const modulus = element(inner, 0x02);
  const publicExponent = element(inner, 0x02, modulus.end).content;
  const [first, ...rest] = modulus.content[0] === 0 ? modulus.content.slice(1) : modulus.content;
  return { name, modulusLength: rest.length * 8 + 32 - Math.clz32(first), publicExponent, hash: { name: hash } };
};
const rsaGenerated = (name, given, extractable, usages) => {
  usagesOf(name, usages, "private");
  const hash = hashOf(given.hash);
  const exponent = bytesOf(given.publicExponent, "publicExponent");
  const pair = run(() => native.rsaGenerate(given.modulusLength, exponent));
  const pkcs1 = native.rsaPublic(pair);
  const algorithm = rsaAlgorithm(name, hash, pkcs1);
  const only = (names) => usages.filter((it) => names.includes(it));
  return {
    privateKey: new CryptoKey("private", algorithm, extractable, only(["sign", "decrypt", "unwrapKey"]), pair),
    publicKey: new CryptoKey("public", algorithm, true, only(["verify", "encrypt", "wrapKey"]), pkcs1),
  };
};
// The integers of a sequence, from a position on.
const integersOf = (sequence) => {
  const found = [];
  for (let at = 0; at < sequence.length; ) {
    const { content, end } = element(sequence, 0x02, at);
    found.push(content[0] === 0 ? content.slice(1) : content);
    at = end;
  }
  return found;
};
const rsaNames = { "RSASSA-PKCS1-v1_5": "RS", "RSA-PSS": "PS", "RSA-OAEP": "RSA-OAEP" };
const rsaJwk = (key, names, numbers) => {
  const bits = key.algorithm.hash.name.slice(4);
  const start = rsaNames[key.algorithm.name];
  const alg = start !== "RSA-OAEP" ? `${start}${bits}` : bits === "1" ? start : `${start}-${bits}`;
  const texts = names.map((name, index) => [name, codec.b64encode(Uint8Array.from(numbers[index]).buffer, "rawurl")]);
  return { kty: "RSA", ...Object.fromEntries(texts), alg, ext: key.extractable, key_ops: [...key.usages] };
};
const rsaExported = (format, key, bytes) => {
  if (key.type === "public" && format === "spki") {
    return Uint8Array.from(tlv(0x30, RSA_ENCRYPTION, tlv(0x03, [0], new Uint8Array(bytes)))).buffer;
  }
  if (key.type === "private" && format === "pkcs8") return bytes.slice(0);
  if (key.type === "public" && format === "jwk") {
    return rsaJwk(key, ["n", "e"], integersOf(element(new Uint8Array(bytes), 0x30).content));
  }
  if (key.type === "private" && format === "jwk") {
    const outer = element(new Uint8Array(bytes), 0x30).content;
    const algorithm = element(outer, 0x30, element(outer, 0x02).end);
    const inner = element(element(outer, 0x04, algorithm.end).content, 0x30).content;
    return rsaJwk(key, ["n", "e", "d", "p", "q", "dp", "dq", "qi"], integersOf(inner).slice(1));
  }
  throw failure("NotSupportedError", `a ${key.type} key of ${key.algorithm.name} is not exported as ${format}`);
};
const saltOf = (given, key) => {
  if (key.algorithm.name !== "RSA-PSS") return 0;
  const length = Number(given.saltLength);
  if (!Number.isInteger(length) || length < 0) throw failure("OperationError", "saltLength is a number of bytes from 0");
  return length;
};

// Keys of curves as JSON Web Keys (RFC 7518, section 6.2) and in PKCS #8 (RFC 5915): what is before the number, and before the point.
const PKCS8 = {
  "P-256": ["308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420", "a144034200"],
  "P-384": ["3081b6020100301006072a8648ce3d020106052b8104002204819e30819b0201010430", "a164036200"],
  "P-521": ["3081ee020100301006072a8648ce3d020106052b810400230481d63081d30201010442", "a1818903818600"],
};
const curveFromJwk = (curve, jwk) => {
  if (jwk?.kty !== "EC" || jwk.crv !== curve) throw failure("DataError", `the JSON Web Key is not of the kind \`EC\` with ${curve}`);
  const size = (POINT[curve] - 1) / 2;
  const names = jwk.d === undefined ? ["x", "y"] : ["x", "y", "d"];
  const [x, y, d] = fieldsOf(jwk, names);
  if (names.some((_, index) => [x, y, d][index].length !== size)) throw failure("DataError", `the numbers of a key of ${curve} have ${size} bytes`);
  const point = [4, ...x, ...y];
  return d === undefined ? Uint8Array.from(point).buffer : privateKey(curve, d, point);
};
const privateKey = (curve, number, point) => {
  const [start, between] = PKCS8[curve].map(fromHex);
  return Uint8Array.from([...start, ...number, ...between, ...point]).buffer;
};
const curveToJwk = (key, bytes) => {
  const curve = key.algorithm.namedCurve;
  const size = (POINT[curve] - 1) / 2;
  const point = new Uint8Array(key.type === "private" ? publicOf(curve, bytes) : bytes);
  const text = (content) => codec.b64encode(Uint8Array.from(content).buffer, "rawurl");
  const jwk = { kty: "EC", crv: curve, x: text(point.slice(1, 1 + size)), y: text(point.slice(1 + size)), ext: key.extractable, key_ops: [...key.usages] };
  if (key.type === "public") return jwk;
  return { ...jwk, d: text(numberOf(curve, bytes)) };
};
// The number of a private key: the first text of bytes of its length behind the version 1.
const numberOf = (curve, bytes) => {
  const size = (POINT[curve] - 1) / 2;
  const whole = new Uint8Array(bytes);
  const at = whole.findIndex((_, index) => [2, 1, 1, 4, size].every((byte, next) => whole[index + next] === byte));
  if (at < 0) throw failure("NotSupportedError", "the key is in a form of PKCS #8 that plimsoll does not read");
  return whole.slice(at + 5, at + 5 + size);
};
// The point of a private key.
const publicOf = (curve, bytes) => native.curvePublic(curve, Uint8Array.from(numberOf(curve, bytes)).buffer);
const importedBy = (rule) => {
  try {
    return rule();
  } catch (error) {
    throw failure("DataError", error.message);
  }
};

const importJwk = (name, jwk, given, extractable, usages) => {
  if (jwk?.kty !== "oct" || typeof jwk.k !== "string") throw failure("DataError", "plimsoll imports JSON Web Keys of the kind `oct` only");
  const bytes = codec.b64decode(jwk.k, "rawurl");
  return name === "HMAC" ? hmacKey(given, bytes, extractable, usages) : aesKey(name, bytes, extractable, usages);
};

const imported = (format, data, given, extractable, usages) => {
  const name = algorithmOf(given);
  if (RSA.includes(name)) return rsaImported(name, format, data, given, extractable, usages);
  if (CURVES.includes(name)) {
    const curve = curveOf(given);
    const algorithm = { name, namedCurve: curve };
    if (format === "jwk") {
      const key = curveFromJwk(curve, data);
      const type = data.d === undefined ? "public" : "private";
      if (type === "private") importedBy(() => publicOf(curve, key));
      return new CryptoKey(type, algorithm, extractable, usagesOf(name, usages, type), key);
    }
    if (format === "raw" || format === "spki") {
      const point = publicKey(curve, format, bytesOf(data, "a key"));
      return new CryptoKey("public", algorithm, extractable, usagesOf(name, usages, "public"), point);
    }
    if (format !== "pkcs8") throw failure("NotSupportedError", `keys of ${name} are imported by plimsoll as raw, spki, pkcs8 and jwk, not as ${format}`);
    const bytes = bytesOf(data, "a key");
    importedBy(() => publicOf(curve, bytes));
    return new CryptoKey("private", algorithm, extractable, usagesOf(name, usages, "private"), bytes);
  }
  usagesOf(name, usages, "secret");
  if (format === "jwk" && !DERIVING.includes(name)) return importJwk(name, data, given, extractable, usages);
  if (format !== "raw") throw failure("NotSupportedError", `keys of ${name} are not imported as ${format}`);
  const bytes = bytesOf(data, "a key");
  if (name === "HMAC") return hmacKey(given, bytes, extractable, usages);
  if (DERIVING.includes(name)) return secret({ name }, false, usages, bytes);
  return aesKey(name, bytes, extractable, usages);
};

const exported = (format, key) => {
  const bytes = CryptoKey.use(key);
  if (!key.extractable) throw failure("InvalidAccessError", "the key is not extractable");
  const { name, namedCurve, hash } = key.algorithm;
  if (RSA.includes(name)) return rsaExported(format, key, bytes);
  if (CURVES.includes(name) && format === "jwk") return curveToJwk(key, bytes);
  if (format === "raw" && key.type !== "private") return bytes.slice(0);
  if (format === "pkcs8" && key.type === "private") return bytes.slice(0);
  if (format === "spki" && key.type === "public") return new Uint8Array([...fromHex(SPKI[namedCurve]), ...new Uint8Array(bytes)]).buffer;
  if (format === "jwk" && key.type === "secret") {
    const alg = name === "HMAC" ? `HS${hash.name.slice(4)}` : `A${key.algorithm.length}${name.slice(4)}`;
    return { kty: "oct", k: codec.b64encode(bytes, "rawurl"), alg, ext: key.extractable, key_ops: [...key.usages] };
  }
  throw failure("NotSupportedError", `a ${key.type} key of ${name} is not exported as ${format}`);
};

// - `usage`: that of the key, where it is not to encrypt or decrypt.
const crypt = (encrypts, given, key, data, usage = encrypts ? "encrypt" : "decrypt") => {
  const name = algorithmOf(given);
  if (name === "RSA-OAEP") {
    const bytes = CryptoKey.use(key, name, [usage]);
    const type = encrypts ? "public" : "private";
    if (key.type !== type) throw failure("InvalidAccessError", `RSA-OAEP needs a ${type} key for that`);
    const label = given.label === undefined ? new ArrayBuffer(0) : bytesOf(given.label, "label");
    return run(() => native.rsaOaep(encrypts, key.algorithm.hash.name, bytes, bytesOf(data, "the data"), label));
  }
  if (!AES.includes(name)) throw failure("NotSupportedError", `${name} does not encrypt`);
  const bytes = CryptoKey.use(key, name, [usage]);
  const start = bytesOf(name === "AES-CTR" ? given.counter : given.iv, name === "AES-CTR" ? "counter" : "iv");
  const also = given.additionalData === undefined ? new ArrayBuffer(0) : bytesOf(given.additionalData, "additionalData");
  return run(() => native.aes(name, encrypts, bytes, start, name === "AES-GCM" ? (given.tagLength ?? 128) : (given.length ?? 0), bytesOf(data, "the data"), also));
};

const sign = (given, key, data) => {
  const name = algorithmOf(given);
  const bytes = CryptoKey.use(key, name, ["sign"]);
  const content = bytesOf(data, "the data");
  if (name === "HMAC") return codec.digest(HASHES[key.algorithm.hash.name], bytes, [content], "binary");
  if (RSA.includes(name) && name !== "RSA-OAEP") {
    if (key.type !== "private") throw failure("InvalidAccessError", "a signature needs a private key");
    return run(() => native.rsaSign(name, key.algorithm.hash.name, bytes, content, saltOf(given, key)));
  }
  if (name !== "ECDSA") throw failure("NotSupportedError", `${name} does not sign`);
  if (key.type !== "private") throw failure("InvalidAccessError", "a signature needs a private key");
  const number = Uint8Array.from(numberOf(key.algorithm.namedCurve, bytes)).buffer;
  return run(() => native.ecdsaSign(key.algorithm.namedCurve, hashOf(given.hash), number, content));
};
const verify = (given, key, signature, data) => {
  const name = algorithmOf(given);
  const bytes = CryptoKey.use(key, name, ["verify"]);
  const [signed, content] = [bytesOf(signature, "the signature"), bytesOf(data, "the data")];
  if (RSA.includes(name) && name !== "RSA-OAEP") {
    if (key.type !== "public") throw failure("InvalidAccessError", "a signature is verified by a public key");
    return native.rsaVerify(name, key.algorithm.hash.name, bytes, signed, content, saltOf(given, key));
  }
  if (name === "ECDSA") {
    if (key.type !== "public") throw failure("InvalidAccessError", "a signature is verified by a public key");
    return native.ecdsaVerify(key.algorithm.namedCurve, hashOf(given.hash), bytes, signed, content);
  }
  if (name !== "HMAC") throw failure("NotSupportedError", `${name} does not verify`);
  const made = new Uint8Array(codec.digest(HASHES[key.algorithm.hash.name], bytes, [content], "binary"));
  const other = new Uint8Array(signed);
  return made.length === other.length && made.every((byte, index) => byte === other[index]);
};

const generate = (given, extractable, usages) => {
  const name = algorithmOf(given);
  if (CURVES.includes(name)) {
    usagesOf(name, usages, "private");
    const curve = curveOf(given);
    const number = run(() => native.curveGenerate(curve));
    const point = native.curvePublic(curve, number);
    const pair = privateKey(curve, new Uint8Array(number), new Uint8Array(point));
    const algorithm = { name, namedCurve: curve };
    const only = (names) => usages.filter((it) => names.includes(it));
    return {
      privateKey: new CryptoKey("private", algorithm, extractable, only(["sign", "deriveKey", "deriveBits"]), pair),
      publicKey: new CryptoKey("public", algorithm, true, only(["verify"]), point),
    };
  }
  if (RSA.includes(name)) return rsaGenerated(name, given, extractable, usages);
  if (DERIVING.includes(name)) throw failure("NotSupportedError", `keys of ${name} are imported, not generated`);
  usagesOf(name, usages, "secret");
  if (name === "HMAC") return hmacKey(given, native.secureRandom((given.length ?? BLOCKS[hashOf(given.hash)]) / 8), extractable, usages);
  const length = Number(given.length);
  if (![128, 192, 256].includes(length)) throw failure("OperationError", `length is 128, 192 or 256, not ${given.length}`);
  return aesKey(name, native.secureRandom(length / 8), extractable, usages);
};

const agreed = (given, key, bits, usages) => {
  const bytes = CryptoKey.use(key, "ECDH", usages);
  const curve = key.algorithm.namedCurve;
  const other = CryptoKey.use(given.public, "ECDH");
  if (key.type !== "private") throw failure("InvalidAccessError", "ECDH needs a private key of its own");
  if (given.public.type !== "public" || given.public.algorithm.namedCurve !== curve) {
    throw failure("InvalidAccessError", `ECDH needs a public key of ${curve}`);
  }
  const made = run(() => native.ecdh(curve, Uint8Array.from(numberOf(curve, bytes)).buffer, other));
  const length = bits ?? made.byteLength * 8;
  if (!Number.isInteger(length) || length < 0 || length % 8 !== 0 || length > made.byteLength * 8) {
    throw failure("OperationError", `length is a multiple of 8 bits up to ${made.byteLength * 8}`);
  }
  return made.slice(0, length / 8);
};
const derived = (given, key, bits, usages) => {
  const name = algorithmOf(given);
  if (name === "ECDH") return agreed(given, key, bits, usages);
  if (!DERIVING.includes(name)) throw failure("NotSupportedError", `${name} does not derive`);
  const bytes = CryptoKey.use(key, name, usages);
  if (!Number.isInteger(bits) || bits <= 0 || bits % 8 !== 0) throw failure("OperationError", "length is a multiple of 8 bits above 0");
  if (name === "HKDF") return run(() => native.hkdf(HASHES[hashOf(given.hash)], bytes, bytesOf(given.salt, "salt"), bytesOf(given.info, "info"), bits / 8));
  return run(() => native.pbkdf2(HASHES[hashOf(given.hash)], bytes, bytesOf(given.salt, "salt"), given.iterations, bits / 8));
};
const deriveKey = (given, key, target, extractable, usages) => {
  const name = algorithmOf(target);
  const bits = Number(name === "HMAC" ? (target.length ?? BLOCKS[hashOf(target.hash)]) : target.length);
  return imported("raw", derived(given, key, bits, ["deriveKey"]), target, extractable, usages);
};

// The usages are looked at first, so that nothing is exported by a key that is not meant for it.
const wrapped = (format, key, by, given) => {
  CryptoKey.use(by, algorithmOf(given), ["wrapKey"]);
  const content = exported(format, key);
  const bytes = format === "jwk" ? codec.encodeText(JSON.stringify(content)) : content;
  return crypt(true, given, by, bytes, "wrapKey");
};
const unwrapped = (format, data, by, given, target, extractable, usages) => {
  const content = crypt(false, given, by, data, "unwrapKey");
  if (format !== "jwk") return imported(format, content, target, extractable, usages);
  let jwk;
  try {
    jwk = JSON.parse(codec.decodeText(content));
  } catch {
    throw failure("DataError", "the unwrapped key is no JSON Web Key");
  }
  return imported(format, jwk, target, extractable, usages);
};

// Each is a promise, whose errors have the names of the Web Cryptography API.
const promised = (rule) => async (...values) => rule(...values);

export const subtle = Object.freeze({
  digest: promised((given, data) => codec.digest(HASHES[hashOf(given)], undefined, [bytesOf(data, "the data")], "binary")),
  importKey: promised(imported),
  exportKey: promised(exported),
  generateKey: promised(generate),
  encrypt: promised((given, key, data) => crypt(true, given, key, data)),
  decrypt: promised((given, key, data) => crypt(false, given, key, data)),
  wrapKey: promised(wrapped),
  unwrapKey: promised(unwrapped),
  sign: promised(sign),
  verify: promised(verify),
  deriveBits: promised((given, key, bits) => derived(given, key, bits, ["deriveBits"])),
  deriveKey: promised(deriveKey),
});

export default { subtle, CryptoKey };
