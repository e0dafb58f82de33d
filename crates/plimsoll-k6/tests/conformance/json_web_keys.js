export default async function () {
  const { subtle } = crypto;
  const jwk = {
    kty: "EC",
    crv: "P-256",
    x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    d: "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
  };
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const how = { name: "ECDSA", hash: { name: "SHA-256" } };
  const own = await subtle.importKey("jwk", jwk, algorithm, true, ["sign"]);
  const { d, ...open } = jwk;
  const verifying = await subtle.importKey("jwk", open, algorithm, true, ["verify"]);
  const data = new Uint8Array([1, 2, 3]);
  const signed = await subtle.sign(how, own, data);
  console.log(signed.byteLength, await subtle.verify(how, verifying, signed, data));
  const again = await subtle.exportKey("jwk", own);
  console.log(again.kty, again.crv, again.x === jwk.x, again.y === jwk.y, again.d === jwk.d);
  const key = await subtle.generateKey({ name: "AES-CBC", length: "256" }, true, ["encrypt"]);
  console.log((await subtle.exportKey("raw", key)).byteLength);
}
