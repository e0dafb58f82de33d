import http from "k6/http";

export const options = { iterations: 2 };

export default function () {
  const base = __ENV.BASE;
  const show = (response) => console.log(JSON.stringify(response.json(), Object.keys(response.json()).sort()));
  show(http.get(`${base}/cookies`));
  const set = http.get(`${base}/set?a=x`);
  const a = set.cookies.a[0];
  const b = set.cookies.b[0];
  console.log(a.name, a.value, a.path, b.http_only, b.max_age, b.secure, b.domain);
  show(http.get(`${base}/cookies`));
  show(http.get(`${base}/set-redirect`));
  show(http.get(`${base}/cookies`, { cookies: { own: "o", a: { value: "replaced", replace: true } } }));
  const jar = http.cookieJar();
  jar.set(base, "mine", "m", { path: "/cookies" });
  console.log(JSON.stringify(jar.cookiesForURL(`${base}/cookies`).mine), Object.keys(jar.cookiesForURL(base)).sort().join());
  show(http.get(`${base}/cookies`));
  jar.delete(base, "a");
  console.log(Object.keys(jar.cookiesForURL(base)).sort().join());
  jar.clear(base);
  show(http.get(`${base}/cookies`, { cookies: { "only": "1" } }));
  const other = new http.CookieJar();
  other.set(base, "other", "1");
  show(http.get(`${base}/cookies`, { jar: other }));
}
