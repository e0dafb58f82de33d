import { hexEncode as hex } from "k6/crypto";

const bytes = (text) => new TextEncoder().encode(text);

export default async function () {
  const subtle = crypto.subtle;
  console.log(hex(await subtle.digest("SHA-384", bytes("abc"))));
  const key = await subtle.importKey("raw", bytes("0123456789abcdef"), "AES-CBC", true, ["encrypt", "decrypt"]);
  const sealed = await subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, key, bytes("text"));
  console.log(hex(sealed), new TextDecoder().decode(await subtle.decrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, key, sealed)));
  const secret = await subtle.importKey("raw", bytes("Jefe"), { name: "HMAC", hash: { name: "SHA-256" } }, true, ["sign", "verify"]);
  const signed = await subtle.sign("HMAC", secret, bytes("x"));
  console.log(hex(signed), await subtle.verify("HMAC", secret, signed, bytes("x")), key.algorithm.name, key.type, key.extractable);
}
