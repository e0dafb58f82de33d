import "k6/http";

const natives = globalThis[Symbol.for("plimsoll.native")];
const native = natives.of("event_stream");

// Handlers read the text of an error by error().
const failure = (text) => {
  const error = new Error(text);
  error.error = () => text;
  return error;
};

class Client {
  #id;
  #handlers = new Map();
  #isOpen = true;
  constructor(id, url) {
    this.#id = id;
    this.url = url;
  }
  on(name, handler) {
    if (!this.#handlers.has(name)) this.#handlers.set(name, []);
    this.#handlers.get(name).push(handler);
  }
  close() {
    this.#isOpen = false;
    native.closeStream(this.#id);
  }
  static emit(client, name, ...values) {
    for (const handler of client.#handlers.get(name) ?? []) handler(...values);
  }
  // Runs until the stream ends or is closed.
  static run(client) {
    Client.emit(client, "open");
    while (client.#isOpen) {
      const [kind, ...values] = native.nextStreamEvent(client.#id);
      if (kind === "end") return;
      if (kind === "error") {
        Client.emit(client, "error", failure(values[0]));
        return;
      }
      const [id, name, data] = values;
      Client.emit(client, "event", { id, name, data, comment: "" });
    }
  }
}

export function open(url, params, callback) {
  const handler = typeof params === "function" ? params : callback;
  if (typeof handler !== "function") native.fail("open() needs a function that gets the client");
  const given = (typeof params === "object" && params) || {};
  const headers = { Accept: "text/event-stream", "Cache-Control": "no-cache", ...given.headers };
  const jar = given.jar ? natives.of("http").idOfJar(given.jar) : 0;
  const method = String(given.method ?? "GET").toUpperCase();
  const body = given.body === undefined || given.body === null ? undefined : given.body;
  const opened = native.openStream(method, String(url), undefined, body, undefined, { ...given, headers }, [200, 399], jar);
  const response = { url: String(url), status: opened.status, headers: opened.headers, error: opened.error };
  const client = new Client(opened.id, String(url));
  if (opened.error === "") {
    handler(client);
    try {
      Client.run(client);
    } finally {
      client.close();
    }
    return response;
  }
  if (opened.status === 0 && (given.throw ?? native.throws())) native.fail(opened.error);
  handler(client);
  Client.emit(client, "error", failure(opened.error));
  return response;
}

export default { open };
