// Forms and links of responses.

const native = globalThis[Symbol.for("plimsoll.native")].of("http");

const submitForm = (response, given, request) => {
  const { formSelector = "form", submitSelector = '[type="submit"]', fields = {}, params } = given;
  const form = response.html(formSelector);
  if (form.size() === 0) native.fail(`no form found for selector '${formSelector}' in response '${response.url}'`);
  const method = form.attr("method", "GET").toUpperCase();
  const address = native.of("url").parseUrl(form.attr("action", ""), response.url)[0];
  const values = form.serializeObject();
  const submit = form.find(submitSelector);
  const name = submit.attr("name");
  if (name !== undefined && submit.val() !== undefined) values[name] = submit.val();
  Object.assign(values, fields);
  if (method !== "GET") return request(method, address, values, params);
  const pairs = Object.entries(values).flatMap(([key, value]) => [value].flat().flatMap((one) => [key, String(one ?? "")]));
  const target = native.of("url").setUrlPart(address, "search", native.formEncode(pairs))[0];
  return request(method, target, null, params);
};

const clickLink = (response, given, request) => {
  const { selector = "a[href]", params } = given;
  const link = response.html(selector);
  if (link.size() === 0) native.fail(`no element found for selector '${selector}' in response '${response.url}'`);
  const href = link.attr("href");
  if (href === undefined) native.fail(`no valid href attribute value found on element '${selector}' in response '${response.url}'`);
  return request("GET", native.of("url").parseUrl(href, response.url)[0], null, params);
};

export default { submitForm, clickLink };
