// Bodies of requests that are not texts.

const native = globalThis[Symbol.for("plimsoll.native")].of("http");

class FileData {
  constructor(data, filename, contentType) {
    this.data = data;
    this.filename = filename ?? `${Date.now()}`;
    this.content_type = contentType ?? "application/octet-stream";
  }
}

const file = (data, filename, contentType) => new FileData(data, filename, contentType);

// The body, with the content type that it brings.
const encoded = (body) => {
  if (body instanceof ArrayBuffer) return [body, undefined];
  if (ArrayBuffer.isView(body)) {
    return [body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength), undefined];
  }
  if (typeof body !== "object") return [String(body), undefined];
  const fields = Object.entries(body);
  if (fields.some(([, value]) => value instanceof FileData)) return native.multipart(fields.map(([name, value]) =>
    value instanceof FileData ? [name, value.data, value.filename, value.content_type] : [name, String(value)]));
  const pairs = [];
  for (const [name, value] of fields) {
    for (const one of Array.isArray(value) ? value : [value]) {
      let text = one ?? "";
      if (typeof text === "object") {
        console.warn(`the value of form field ${name} is an object, which is sent as an empty value`);
        text = "";
      }
      pairs.push(name, String(text));
    }
  }
  return [native.formEncode(pairs), "application/x-www-form-urlencoded"];
};

export default { file, encoded };
