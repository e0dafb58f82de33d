import x509, { parse, getAltNames, getIssuer, getSubject } from "k6/crypto/x509";

const RSA =
  "-----BEGIN CERTIFICATE-----\nMIIEPzCCAyegAwIBAgIUAwGrfXk8zUO9vvQU/5ClK5Ey4/gwDQYJKoZIhvcNAQEL\nBQAwgYwxCzAJBgNVBAYTAlpaMQ4wDAYDVQQIDAVTdGF0ZTENMAsGA1UEBwwEQ2l0\neTEQMA4GA1UECgwHT3JnIE9uZTEPMA0GA1UECwwGVW5pdCBBMQ8wDQYDVQQLDAZV\nbml0IEIxFDASBgNVBAMMC2V4YW1wbGUub3JnMRQwEgYJKoZIhvcNAQkBFgVhQGIu\nYzAeFw0yNjExMjQwNzQzMDRaFw0yNzExMjQwNzQzMDRaMIGMMQswCQYDVQQGEwJa\nWjEOMAwGA1UECAwFU3RhdGUxDTALBgNVBAcMBENpdHkxEDAOBgNVBAoMB09yZyBP\nbmUxDzANBgNVBAsMBlVuaXQgQTEPMA0GA1UECwwGVW5pdCBCMRQwEgYDVQQDDAtl\neGFtcGxlLm9yZzEUMBIGCSqGSIb3DQEJARYFYUBiLmMwggEiMA0GCSqGSIb3DQEB\nAQUAA4IBDwAwggEKAoIBAQCvoKHd8gUK5k1o6CC4yXXUU52G3QC/ugqS2YpndLNt\nTuGAXga6Ql370L1UBZXJR/FEWi9NAMAJLRznXsM7UzjqeqtWYcMr+4yXftdJ68mY\nX0Aoam0cZAslQKlcs9V6q16SJh06mlsta3m5U+UTddGU30GEkT81GXAeSMmJ5dP7\nsvo3ZVubP0zlGK25gaaIvtmg6craw8d+f8MI26ef4TYKxJg/pXJc7DrUsIZCdVAv\nm1lfCHn8FNKUysQHVOuxP9i9sspiUU23amd8rr1+HC5WtVPsr0Vukppz9Q1o5hLw\ngl1JpB+D2xoNOTe0btR48ka8tr6fyHhXnxjH0/llJfqHAgMBAAGjgZYwgZMwHQYD\nVR0OBBYEFIbx7G0e8ToEcS9gAhDEzy7T00wHMB8GA1UdIwQYMBaAFIbx7G0e8ToE\ncS9gAhDEzy7T00wHMA8GA1UdEwEB/wQFMAMBAf8wQAYDVR0RBDkwN4INYS5leGFt\ncGxlLm9yZ4INYi5leGFtcGxlLm9yZ4cEfwAAAYEFeEB5LnqGCmh0dHBzOi8vdS8w\nDQYJKoZIhvcNAQELBQADggEBAHx9DEjpgwO2YSZqQuzi7TX71ULaQ8WZNhz9pkF4\nJFACT9Ep/xTptSBykxD9Xb96gbIy7vKqTvn8jXlTEUcbsaJpwt8rhE4drM3RBkXu\nYOzg14Hr9YvZvUrIchKeDkgEjwz9e1Z83Wptw0jBO5QM9XwCNASe+hTjZTCz7lJd\nLw5rMgmLXY3jH0yUV8YL6LnV3frZ8eqS5JGwltOxyIlHBFHtURzfkyvvVxPw7TE9\n2OK+uejyFjnm56Y05xEj7IPVHvXlNnsUBDayntfeTGE2KfQEbgfbslFqw2vTFc+n\neC5++z9nXiOJzbNz4PBdX44mt/xXK21jD05oBCvYefLIX20=\n-----END CERTIFICATE-----\n";
const ECDSA =
  "-----BEGIN CERTIFICATE-----\nMIIBbzCCARWgAwIBAgIURCIY9Q5ceABsNh0HXrX8H4RJFecwCgYIKoZIzj0EAwIw\nDTELMAkGA1UEAwwCZWMwHhcNMjYxMTI0MDc0MzA0WhcNMjcxMTI0MDc0MzA0WjAN\nMQswCQYDVQQDDAJlYzBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABEyIgYPUoqqe\n8j2aQBfR4pXua0/XXYR3VcVSxEl8E7eVEOlO93ch8Z6XlgEWh80245BQpNiweiGF\nHfTXXTUnFKujUzBRMB0GA1UdDgQWBBR7uTSbeR3ZRGIEgyhu2vmu9Wd1tTAfBgNV\nHSMEGDAWgBR7uTSbeR3ZRGIEgyhu2vmu9Wd1tTAPBgNVHRMBAf8EBTADAQH/MAoG\nCCqGSM49BAMCA0gAMEUCIQCNJejd1ea0WA5uZ1k41SVxQpsGs+BbGKU9mU2sJqOm\nWQIgMU0smTRz8C4aEWWIUYGrUkyb2xSnxfcUI//Pa1sPAj0=\n-----END CERTIFICATE-----\n";

const numbers = (key, value) => (typeof value === "bigint" ? String(value) : value);

export default function () {
  for (const text of [RSA, ECDSA]) {
    const certificate = parse(text);
    console.log(Object.keys(certificate).sort().join());
    for (const name of ["subject", "issuer", "notBefore", "notAfter", "altNames", "signatureAlgorithm", "fingerPrint"]) {
      console.log(name, JSON.stringify(certificate[name]));
    }
    const { algorithm, key } = certificate.publicKey;
    console.log(algorithm, JSON.stringify([key.n, key.e, key.x, key.y], numbers));
  }
  console.log(JSON.stringify(getAltNames(RSA)), getIssuer(RSA).commonName, getSubject(ECDSA).commonName);
  try {
    parse("none");
  } catch (error) {
    console.log(error.message);
  }
  console.log(Object.keys(x509).sort().join());
}
