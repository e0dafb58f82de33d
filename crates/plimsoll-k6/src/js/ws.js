import "k6/http";

const native = globalThis[Symbol.for("plimsoll.native")].of("socket");

const REASONS = {
  1002: "protocol error",
  1003: "unsupported data",
  1005: "no status",
  1006: "abnormal closure",
  1007: "invalid payload data",
  1008: "policy violation",
  1009: "message too big",
  1010: "mandatory extension missing",
  1011: "internal server error",
  1015: "TLS handshake error",
};

const closed = (code, reason) => `websocket: close ${code}${REASONS[code] ? ` (${REASONS[code]})` : ""}${reason ? `: ${reason}` : ""}`;

// Handlers of k6 read the text of an error by error().
const failure = (text) => {
  const error = new Error(text);
  error.error = () => text;
  return error;
};

class Socket {
  #id;
  #handlers = new Map();
  #timers = [];
  #isOpen = true;
  constructor(id, url) {
    this.#id = id;
    this.url = url;
  }
  on(name, handler) {
    if (!this.#handlers.has(name)) this.#handlers.set(name, []);
    this.#handlers.get(name).push(handler);
  }
  send(text) {
    this.#send("text", String(text));
  }
  sendBinary(data) {
    if (!(data instanceof ArrayBuffer)) native.fail("sendBinary() takes an ArrayBuffer");
    this.#send("binary", data);
  }
  ping() {
    this.#send("ping", "");
  }
  #send(kind, data) {
    try {
      native.sendFrame(this.#id, kind, data);
    } catch (error) {
      this.#emit("error", failure(error.message));
    }
  }
  close(code = 1000) {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#send("close", [code >> 8, code & 255]);
  }
  setTimeout(handler, delay) {
    this.#timer(handler, delay, false);
  }
  setInterval(handler, delay) {
    this.#timer(handler, delay, true);
  }
  setLoop(handler) {
    this.#timer(handler, 1, true);
  }
  #timer(handler, delay, repeats) {
    if (!(delay > 0)) native.fail("the delay of a timer must be above 0");
    this.#timers.push({ handler, delay, repeats, at: Date.now() + delay });
  }
  #emit(name, ...values) {
    for (const handler of this.#handlers.get(name) ?? []) handler(...values);
  }
  // Runs until the socket is closed.
  static run(socket) {
    let hasFailed = false;
    socket.#emit("open");
    for (;;) {
      const next = socket.#isOpen ? Math.min(...socket.#timers.map((timer) => timer.at)) : Infinity;
      const wait = next === Infinity ? undefined : Math.max(0, next - Date.now());
      const [name, ...values] = native.nextEvent(socket.#id, wait);
      if (name === "error") {
        hasFailed = true;
        socket.#emit("error", failure(values[0]));
      } else if (name === "close") {
        const isExpected = hasFailed || !socket.#isOpen || values[0] === 1000 || values[0] === 1001;
        socket.#isOpen = false;
        if (!isExpected) socket.#emit("error", failure(closed(...values)));
        socket.#emit("close", values[0]);
        return;
      } else if (name !== "nothing") socket.#emit(name, ...values);
      const now = Date.now();
      for (const timer of [...socket.#timers]) {
        if (!socket.#isOpen || timer.at > now) continue;
        if (timer.repeats) timer.at = now + timer.delay;
        else socket.#timers.splice(socket.#timers.indexOf(timer), 1);
        timer.handler();
      }
    }
  }
}

export let connect = (url, params, callback) => {
  const handler = typeof params === "function" ? params : callback;
  if (typeof handler !== "function") native.fail("connect() needs a function that gets the socket");
  // The other parameters are those of requests, whose `compression` is another one.
  const { compression, ...given } = (typeof params === "object" && params) || {};
  const address = String(url);
  const jar = given.jar ? native.of("http").idOfJar(given.jar) : 0;
  const opened = native.openSocket("GET", address, undefined, undefined, undefined, given, null, jar, undefined, compression);
  if (opened.error !== "") {
    if (native.throws()) native.fail(opened.error);
    // A response that refuses is a response, without an error.
    return { url: "", status: opened.status, headers: opened.headers, body: opened.body, error: [0, 101].includes(opened.status) ? opened.error : "" };
  }
  const response = { url: address, status: opened.status, headers: opened.headers, body: "", error: "" };
  const socket = new Socket(opened.id, address);
  handler(socket);
  Socket.run(socket);
  return response;
};

// As in k6/http.
export default {
  get connect() {
    return connect;
  },
  set connect(it) {
    connect = it;
  },
};
