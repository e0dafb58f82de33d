import encoding, { b64decode, b64encode } from "k6/encoding";
import crypto, { createHash, hmac, md5, sha256 } from "k6/crypto";

export default function () {
  console.log(b64encode("hi?~"), b64encode("hi?~", "rawurl"), b64decode("aGk=", "std", "s"), encoding.b64encode(new Uint8Array([0, 255]).buffer));
  console.log(md5("a", "hex"), sha256("a", "base64"), crypto.sha1("a", "hex"), crypto.sha512_256("a", "base64url"), crypto.sha384("a", "base64rawurl"));
  console.log(hmac("sha256", "key", "data", "hex"), hmac("md5", "key", "data", "base64"), Array.from(new Uint8Array(crypto.sha224 ? [1] : hmac("sha1", "k", "d", "binary"))).length);
  console.log(crypto.md4("a", "hex"), crypto.ripemd160("a", "hex"), hmac("ripemd160", "key", "data", "hex"), hmac("md4", "key", "data", "base64"));
  const hasher = createHash("sha512");
  hasher.update("a");
  hasher.update(new Uint8Array([98]).buffer);
  console.log(hasher.digest("hex").slice(0, 20), crypto.randomBytes(8).byteLength, crypto.hexEncode ? crypto.hexEncode("ab") : "6162");
  console.log(new Uint8Array(b64decode("AP8=")).join(), globalThis.crypto.randomUUID().length);
}
