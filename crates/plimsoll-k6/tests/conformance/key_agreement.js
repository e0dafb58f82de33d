const hex = (data) => Array.from(new Uint8Array(data), (byte) => byte.toString(16).padStart(2, "0")).join("");

export default async function () {
  const { subtle } = crypto;
  for (const namedCurve of ["P-256", "P-384"]) {
    const algorithm = { name: "ECDH", namedCurve };
    const one = await subtle.generateKey(algorithm, true, ["deriveKey", "deriveBits"]);
    const other = await subtle.generateKey(algorithm, true, ["deriveKey", "deriveBits"]);
    const bits = await subtle.deriveBits({ name: "ECDH", public: other.publicKey }, one.privateKey, 256);
    const same = await subtle.deriveBits({ name: "ECDH", public: one.publicKey }, other.privateKey, 256);
    console.log(namedCurve, bits.byteLength, hex(bits) === hex(same));
    const raw = await subtle.importKey("raw", await subtle.exportKey("raw", one.publicKey), algorithm, true, []);
    console.log(raw.type, hex(await subtle.deriveBits({ name: "ECDH", public: raw }, other.privateKey, 256)) === hex(bits));
  }
}
