import "k6/http";

const native = globalThis[Symbol.for("plimsoll.native")].of("socket");

const CONNECTING = 0;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;

const EVENTS = ["open", "message", "error", "close", "ping", "pong"];

export const Blob = native.callable(
  class Blob {
    #bytes;
    constructor(parts = [], options = {}) {
      const pieces = parts.map((part) => {
        if (part instanceof Blob) return part.#bytes;
        if (part instanceof ArrayBuffer) return new Uint8Array(part);
        if (ArrayBuffer.isView(part)) return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
        return new TextEncoder().encode(String(part));
      });
      this.#bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
      let at = 0;
      for (const piece of pieces) {
        this.#bytes.set(piece, at);
        at += piece.length;
      }
      this.type = options.type ?? "";
    }
    static bytesOf(blob) {
      return blob.#bytes;
    }
    get size() {
      return this.#bytes.length;
    }
    async arrayBuffer() {
      return this.#bytes.slice().buffer;
    }
    async bytes() {
      return this.#bytes.slice();
    }
    stream() {
      const bytes = this.#bytes.slice();
      const { ReadableStream } = native.use("k6/experimental/streams");
      return new ReadableStream({
        start(controller) {
          if (bytes.length > 0) controller.enqueue(bytes);
          controller.close();
        },
      });
    }
    async text() {
      return new TextDecoder().decode(this.#bytes);
    }
    slice(start, end, type) {
      return new Blob([this.#bytes.slice(start, end)], { type });
    }
  },
);

export const WebSocket = native.callable(
  class WebSocket {
    #id = 0;
    #handlers = Object.fromEntries(EVENTS.map((name) => [name, []]));
    #own = {};
    #early;
    #state = CONNECTING;
    #binaryType = "blob";
    constructor(url, protocols, params) {
      const address = String(url);
      if (url === undefined || url === null) native.fail("WebSocket requires a url");
      const scheme = /^([a-z][\w+.-]*):/i.exec(address)?.[1].toLowerCase() ?? "";
      if (scheme !== "ws" && scheme !== "wss") throw new SyntaxError(`WebSocket requires url with scheme ws or wss, but got "${scheme}"`);
      const [, fragment] = /#(.+)/.exec(address) ?? [];
      if (fragment) throw new SyntaxError(`WebSocket requires no url fragment, but got "${fragment}"`);
      this.url = address;
      this.protocol = "";
      this.extensions = "";
      // The other parameters are those of requests, whose `compression` is another one.
      const { compression, ...given } = params ?? {};
      const jar = given.jar ? native.of("http").idOfJar(given.jar) : 0;
      const wanted = protocols === undefined || protocols === null ? undefined : [protocols].flat().join(", ");
      const opening = native.openSocketLater("GET", address, undefined, undefined, undefined, given, null, jar, wanted, compression);
      this.#run(opening);
    }
    async #run(opening) {
      const opened = await opening;
      if (opened.error !== "") {
        this.#state = CLOSED;
        this.#emit("error", { error: opened.error, status: opened.status });
        this.#emit("close", { code: 1006, reason: "" });
        return;
      }
      this.#id = opened.id;
      this.protocol = opened.headers["Sec-Websocket-Protocol"] ?? "";
      this.extensions = opened.headers["Sec-Websocket-Extensions"] ?? "";
      this.#state = OPEN;
      if (this.#early) this.close(...this.#early);
      else this.#emit("open", {});
      for (;;) {
        const [name, ...values] = await native.nextEventLater(this.#id);
        if (name === "message") this.#emit("message", { data: values[0], origin: "" });
        else if (name === "binaryMessage") {
          const data = this.#binaryType === "blob" ? new Blob([values[0]]) : values[0];
          this.#emit("message", { data, origin: "" });
        } else if (name === "error") this.#emit("error", { error: values[0] });
        else if (name === "close") {
          this.#state = CLOSED;
          this.#emit("close", { code: values[0], reason: values[1] });
          return;
        } else this.#emit(name, {});
      }
    }
    #emit(type, values) {
      const event = { type, target: this, timestamp: Date.now(), ...values };
      for (const handler of [this.#own[type], ...this.#handlers[type]]) handler?.call(this, event);
    }
    static {
      for (const name of EVENTS) {
        Object.defineProperty(WebSocket.prototype, `on${name}`, {
          get() {
            return this.#own[name] ?? null;
          },
          set(handler) {
            this.#own[name] = typeof handler === "function" ? handler : undefined;
          },
        });
      }
    }
    addEventListener(name, handler) {
      if (!EVENTS.includes(name)) native.fail(`a WebSocket has no event ${name}; known are ${EVENTS.join(", ")}`);
      this.#handlers[name].push(handler);
    }
    get readyState() {
      return this.#state;
    }
    get bufferedAmount() {
      return native.unsentBytes(this.#id);
    }
    get binaryType() {
      return this.#binaryType;
    }
    set binaryType(type) {
      if (type !== "blob" && type !== "arraybuffer") native.fail(`binaryType must be "blob" or "arraybuffer", not ${type}`);
      this.#binaryType = type;
    }
    send(data) {
      if (this.#state === CONNECTING) native.fail("InvalidStateError: the WebSocket is not open yet");
      if (this.#state !== OPEN) return;
      if (data instanceof Blob) native.sendFrame(this.#id, "binary", Blob.bytesOf(data));
      else if (data instanceof ArrayBuffer || ArrayBuffer.isView(data)) native.sendFrame(this.#id, "binary", data);
      else native.sendFrame(this.#id, "text", String(data));
    }
    ping() {
      if (this.#state !== OPEN) native.fail("InvalidStateError: the WebSocket is not open");
      native.sendFrame(this.#id, "ping", "", true);
    }
    close(code = 1000, reason = "") {
      if (code !== 1000 && !(code >= 3000 && code <= 4999)) native.fail(`a script may close with 1000 or 3000 to 4999, not ${code}`);
      if (this.#state === CONNECTING) {
        this.#early = [code, reason];
        return;
      }
      if (this.#state !== OPEN) return;
      this.#state = CLOSING;
      native.sendFrame(this.#id, "close", [code >> 8, code & 255, ...new TextEncoder().encode(String(reason)).slice(0, 123)], true);
    }
  },
);

for (const [name, value] of Object.entries({ CONNECTING, OPEN, CLOSING, CLOSED })) {
  Object.defineProperty(WebSocket, name, { value, enumerable: true });
  Object.defineProperty(WebSocket.prototype, name, { value, enumerable: true });
}

export default { WebSocket, Blob };
