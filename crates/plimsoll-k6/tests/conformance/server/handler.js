const page = `<!DOCTYPE html><html><head><title>Page</title></head><body>
<ul id="list"><li class="a" data-n="1">one</li><li class="b" data-n="2">two <b>bold</b></li><li class="a">three</li></ul>
<a href="/status/204">first</a><a class="second" href="redirect/1">second</a>
<form id="login" method="post" action="/echo"><input name="user" value="ann"><input type="password" name="password">
<input type="checkbox" name="keep" checked><select name="pick"><option value="x">X<option value="y" selected>Y</select>
<textarea name="note">text</textarea><button type="submit" name="go" value="now">Go</button></form>
<form id="search" action="/echo"><input name="q" value="default"><input type="submit" value="Search"></form></body></html>`;

// `printf hello | gzip -n`
const gzipped = "H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==";

export default function (request) {
  const [, what, rest] = request.path.split("/");
  switch (what) {
    case "status":
      return { status: Number(rest), body: `status ${rest}` };
    case "redirect":
      if (rest === "0") return { body: "arrived" };
      return { status: 302, headers: { location: `/redirect/${Number(rest) - 1}` }, body: "" };
    case "move":
      return { status: Number(rest), headers: { location: "/echo" }, body: "" };
    case "endless":
      return { status: 302, headers: { location: "/endless" }, body: "" };
    case "set":
      return { headers: { "set-cookie": [`a=${request.query.a ?? "1"}; Path=/`, "b=2; Path=/cookies; HttpOnly; Max-Age=60"] }, body: "set" };
    case "set-redirect":
      return { status: 302, headers: { "set-cookie": "hop=1; Path=/", location: "/cookies" }, body: "" };
    case "cookies":
      return { headers: { "content-type": "application/json" }, body: JSON.stringify(request.cookies) };
    case "json":
      return {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: "n", n: 1.5, list: [{ id: 1, tag: "a" }, { id: 2, tag: "b" }], "a.b": { c: true }, empty: null, text: "é" }),
      };
    case "echo":
      return {
        headers: { "content-type": "application/json", "x-method": request.method },
        body: JSON.stringify({
          method: request.method,
          query: request.query,
          type: request.headers["content-type"]?.replace(/boundary=.*/, "boundary") ?? null,
          length: request.headers["content-length"] ?? null,
          custom: request.headers["x-custom"] ?? null,
          cookies: request.cookies,
          body: request.body.replace(/--[0-9a-f]{16,}/g, "--boundary"),
        }),
      };
    case "gzip":
      return { headers: { "content-encoding": "gzip" }, base64: gzipped };
    case "broken-gzip":
      return { headers: { "content-encoding": "gzip" }, body: "hello" };
    case "bytes":
      return { headers: { "content-type": "application/octet-stream" }, base64: "AP8BgA==" };
    case "basic":
      if (request.headers.authorization === "Basic dXNlcjpwYXNz") return { body: "in" };
      return { status: 401, headers: { "www-authenticate": 'Basic realm="r"' }, body: "out" };
    case "digest":
      if ((request.headers.authorization ?? "").includes("username=\"user\"")) return { body: "in" };
      return { status: 401, headers: { "www-authenticate": 'Digest realm="r", qop="auth", nonce="n", algorithm=MD5' }, body: "out" };
    case "ntlm": {
      const message = (request.headers.authorization ?? "").replace(/^NTLM /, "");
      if (message.startsWith("TlRMTVNTUAAD")) return { body: "in" };
      const challenge = message.startsWith("TlRMTVNTUAAB") ? "NTLM TlRMTVNTUAACAAAACAAIADAAAAAFgoigASNFZ4mrze8AAAAAAAAAABAAEAA4AAAAQwBPAFIAUAACAAgAQwBPAFIAUAAAAAAA" : "NTLM";
      return { status: 401, headers: { "www-authenticate": challenge }, body: "out" };
    }
    case "page":
      return { headers: { "content-type": "text/html; charset=utf-8" }, body: page };
    default:
      return { body: "hello" };
  }
}
