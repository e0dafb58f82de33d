const native = globalThis[Symbol.for("plimsoll.native")].of("codec");

const hash = (name) => (data, output) => native.digest(name, undefined, [data], output ?? "hex");

export const md4 = hash("md4");
export const md5 = hash("md5");
export const sha1 = hash("sha1");
export const sha256 = hash("sha256");
export const sha384 = hash("sha384");
export const sha512 = hash("sha512");
export const sha512_224 = hash("sha512_224");
export const sha512_256 = hash("sha512_256");
export const ripemd160 = hash("ripemd160");

export const hmac = (name, key, data, output) => native.digest(name, key, [data], output ?? "hex");

class Hasher {
  #name;
  #key;
  #parts = [];
  constructor(name, key) {
    native.digest(name, key, [], "hex");
    this.#name = name;
    this.#key = key;
  }
  update(data) {
    this.#parts.push(data);
  }
  digest(output) {
    return native.digest(this.#name, this.#key, this.#parts, output ?? "hex");
  }
}

export const createHash = (name) => new Hasher(name);
export const createHMAC = (name, key) => new Hasher(name, key);
export const hexEncode = (data) => native.hexEncode(data);
export const randomBytes = (count) => native.randomBytes(Number(count));

export default {
  md4,
  md5,
  sha1,
  sha256,
  sha384,
  sha512,
  sha512_224,
  sha512_256,
  ripemd160,
  hmac,
  createHash,
  createHMAC,
  hexEncode,
  randomBytes,
};
