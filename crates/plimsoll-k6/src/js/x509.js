const native = globalThis[Symbol.for("plimsoll.native")].of("x509");

export function parse(encoded) {
  const certificate = JSON.parse(native.certificate(String(encoded)));
  const { key } = certificate.publicKey;
  for (const name of ["n", "x", "y"]) if (typeof key[name] === "string") key[name] = BigInt(`0x${key[name]}`);
  return certificate;
}

export const getAltNames = (encoded) => parse(encoded).altNames;
export const getIssuer = (encoded) => parse(encoded).issuer;
export const getSubject = (encoded) => parse(encoded).subject;

export default { parse, getAltNames, getIssuer, getSubject };
