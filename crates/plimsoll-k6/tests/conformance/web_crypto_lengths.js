import { hexEncode as hex } from "k6/crypto";

const bytes = (text) => new TextEncoder().encode(text);

export default async function () {
  const subtle = crypto.subtle;
  for (const length of [16, 24, 32]) {
    const raw = new Uint8Array(length).fill(length);
    for (const [name, more] of [
      ["AES-CBC", { iv: new Uint8Array(16) }],
      ["AES-CTR", { counter: new Uint8Array(16), length: 128 }],
      ["AES-GCM", { iv: new Uint8Array(12), additionalData: bytes("also") }],
      ["AES-GCM", { iv: new Uint8Array(12), tagLength: 96 }],
    ]) {
      const key = await subtle.importKey("raw", raw, { name }, true, ["encrypt", "decrypt"]);
      const sealed = await subtle.encrypt({ name, ...more }, key, bytes("some text"));
      const opened = await subtle.decrypt({ name, ...more }, key, sealed);
      console.log(name, length, hex(sealed), new TextDecoder().decode(opened));
    }
  }
}
