// Something plausible for any request, and the same for the same request: it keeps nothing.
const page = `<!DOCTYPE html><html><head><title>Collection of simple web-pages</title></head><body>
<h1 id="title">Welcome</h1><ul><li class="item"><a href="/items/1">one</a></li><li class="item"><a href="/items/2">two</a></li></ul>
<form id="login" method="post" action="/login"><input type="hidden" name="csrftoken" value="c5rf"><input name="login" value="">
<input type="password" name="password"><input type="submit" name="go" value="Go!"></form>
<p>Unauthorized is not shown; Logged in is.</p></body></html>`;

const item = (id) => ({
  id, uuid: `00000000-0000-4000-8000-00000000000${id}`, name: `Item ${id}`, title: `Item ${id}`, username: "user", email: `user${id}@example.com`,
  price: 9.5, quantity: 2, sex: "M", active: true, status: "ok", createdAt: "2026-01-01T00:00:00.000Z", tags: ["a", "b"],
});

const secrets = {
  token: "t0ken", access: "t0ken", access_token: "t0ken", accessToken: "t0ken", refresh: "r", authorization: "Bearer t0ken", sessionId: "s", csrfToken: "c",
  token_type: "bearer", expires_in: 3600,
};

const listed = /(s|list|all|search)\/?$/;

export default function (request) {
  const path = request.path;
  const last = path.split("/").filter(Boolean).pop() ?? "";
  const status = /\/status\/(\d{3})$/.exec(path);
  if (status) return { status: Number(status[1]), body: `status ${status[1]}` };
  const json = (value, code = 200) => ({
    status: code,
    headers: { "content-type": "application/json", "set-cookie": "session=s; Path=/" },
    body: JSON.stringify(value),
  });
  if (request.method === "DELETE") return { status: 204, body: "" };
  if (request.method === "POST" && /login|auth|token|session/i.test(path)) return json({ ...secrets, user: item(1), data: secrets });
  if (request.method !== "GET" && request.method !== "HEAD") {
    return json({ ...item(1), ...secrets, data: item(1), json: item(1), success: true, message: "ok" }, request.method === "POST" ? 201 : 200);
  }
  if (/redirect/.test(path)) return { status: 302, headers: { location: "/" }, body: "" };
  if (last === "" || /\.(html?|php)$/.test(last) || /page|contacts|news|home/.test(last)) {
    return { headers: { "content-type": "text/html; charset=utf-8", "set-cookie": "session=s; Path=/" }, body: page };
  }
  if (listed.test(path)) return json([item(1), item(2), item(3)]);
  return json({ ...item(1), ...secrets, data: [item(1), item(2)], items: [item(1)], results: [item(1)], args: request.query, url: path, success: true, message: "ok" });
}
