// Streams of the Streams Standard, as far as k6 has them: readable ones with default readers, and writable ones.

const noop = () => {};

// A promise with what settles it. Rejections that nobody waits for are no errors of the script.
const deferred = () => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  made.promise.catch(noop);
  return made;
};

const methodOf = (object, name, what) => {
  const method = object?.[name];
  if (method === undefined || method === null) return undefined;
  if (typeof method !== "function") throw new TypeError(`${name} of ${what} must be a function`);
  return method.bind(object);
};

const limitOf = (strategy, otherwise) => {
  const mark = strategy?.highWaterMark === undefined ? otherwise : Number(strategy.highWaterMark);
  if (Number.isNaN(mark) || mark < 0) throw new RangeError("highWaterMark must be a number from 0");
  const size = strategy?.size;
  if (size !== undefined && typeof size !== "function") throw new TypeError("size of a strategy must be a function");
  return { mark, size: size ?? (() => 1) };
};

const sizeOf = (size, chunk) => {
  const made = Number(size(chunk));
  if (Number.isNaN(made) || made < 0 || made === Infinity) throw new RangeError("the size of a chunk must be a finite number from 0");
  return made;
};

export class CountQueuingStrategy {
  constructor({ highWaterMark }) {
    this.highWaterMark = highWaterMark;
  }
  size() {
    return 1;
  }
}

const INNER = Symbol("plimsoll stream");

class ReadableState {
  state = "readable";
  reader = undefined;
  queue = [];
  size = 0;
  waiting = [];
  isStarted = false;
  isClosing = false;
  isPulling = false;
  pullsAgain = false;
  constructor(source, strategy) {
    this.limit = limitOf(strategy, 1);
    this.pull = methodOf(source, "pull", "a source");
    this.cancelSource = methodOf(source, "cancel", "a source");
    this.controller = new ReadableStreamDefaultController(this);
    const started = methodOf(source, "start", "a source")?.(this.controller);
    Promise.resolve(started).then(
      () => {
        this.isStarted = true;
        this.pullIfNeeded();
      },
      (error) => this.fail(error),
    );
  }
  desired() {
    if (this.state === "errored") return null;
    return this.state === "closed" ? 0 : this.limit.mark - this.size;
  }
  enqueue(chunk) {
    if (this.isClosing || this.state !== "readable") throw new TypeError("the stream is closed: nothing can be enqueued");
    const reader = this.waiting.shift();
    if (reader) {
      reader.resolve({ value: chunk, done: false });
    } else {
      try {
        const size = sizeOf(this.limit.size, chunk);
        this.queue.push([chunk, size]);
        this.size += size;
      } catch (error) {
        this.fail(error);
        throw error;
      }
    }
    this.pullIfNeeded();
  }
  pullIfNeeded() {
    const wants = this.waiting.length > 0 || this.desired() > 0;
    if (!this.pull || !this.isStarted || this.isClosing || this.state !== "readable" || !wants) return;
    if (this.isPulling) {
      this.pullsAgain = true;
      return;
    }
    this.isPulling = true;
    const pulled = new Promise((resolve) => resolve(this.pull(this.controller)));
    pulled.then(
      () => {
        this.isPulling = false;
        if (this.pullsAgain) {
          this.pullsAgain = false;
          this.pullIfNeeded();
        }
      },
      (error) => this.fail(error),
    );
  }
  close() {
    if (this.isClosing || this.state !== "readable") throw new TypeError("the stream is closed already");
    this.isClosing = true;
    if (this.queue.length === 0) this.end();
  }
  end() {
    this.state = "closed";
    for (const reader of this.waiting.splice(0)) reader.resolve({ value: undefined, done: true });
    this.reader?.[INNER].closed.resolve(undefined);
  }
  fail(error) {
    if (this.state !== "readable") return;
    this.state = "errored";
    this.error = error;
    this.queue = [];
    for (const reader of this.waiting.splice(0)) reader.reject(error);
    this.reader?.[INNER].closed.reject(error);
  }
  read() {
    if (this.queue.length > 0) {
      const [value, size] = this.queue.shift();
      this.size -= size;
      if (this.isClosing && this.queue.length === 0) this.end();
      else this.pullIfNeeded();
      return Promise.resolve({ value, done: false });
    }
    if (this.state === "closed") return Promise.resolve({ value: undefined, done: true });
    if (this.state === "errored") return Promise.reject(this.error);
    const reader = deferred();
    this.waiting.push(reader);
    this.pullIfNeeded();
    return reader.promise;
  }
  async cancel(reason) {
    if (this.state === "errored") throw this.error;
    if (this.state === "closed") return undefined;
    this.queue = [];
    this.isClosing = true;
    this.end();
    await this.cancelSource?.(reason);
    return undefined;
  }
}

class ReadableStreamDefaultController {
  constructor(state) {
    if (!(state instanceof ReadableState)) throw new TypeError("controllers are made by streams");
    Object.defineProperty(this, INNER, { value: state });
  }
  get desiredSize() {
    return this[INNER].desired();
  }
  enqueue(chunk) {
    this[INNER].enqueue(chunk);
  }
  close() {
    this[INNER].close();
  }
  error(reason) {
    this[INNER].fail(reason);
  }
}

export class ReadableStreamDefaultReader {
  constructor(stream) {
    const state = stream?.[INNER];
    if (!(state instanceof ReadableState)) throw new TypeError("a reader needs a ReadableStream");
    if (state.reader) throw new TypeError("the stream is locked to another reader");
    const closed = deferred();
    Object.defineProperty(this, INNER, { value: { state, closed }, writable: true });
    state.reader = this;
    if (state.state === "closed") closed.resolve(undefined);
    if (state.state === "errored") closed.reject(state.error);
  }
  get closed() {
    return this[INNER].closed.promise;
  }
  async read() {
    const { state } = this[INNER];
    if (!state) throw new TypeError("the reader has been released");
    return state.read();
  }
  async cancel(reason) {
    const { state } = this[INNER];
    if (!state) throw new TypeError("the reader has been released");
    return state.cancel(reason);
  }
  releaseLock() {
    const { state } = this[INNER];
    if (!state) return;
    const released = new TypeError("the reader has been released");
    for (const reader of state.waiting.splice(0)) reader.reject(released);
    const closed = deferred();
    this[INNER].closed.reject(released);
    closed.reject(released);
    this[INNER] = { state: undefined, closed };
    state.reader = undefined;
  }
}

export class ReadableStream {
  constructor(source = {}, strategy = {}) {
    if (source === null || typeof source !== "object") throw new TypeError("a source must be an object");
    if (source.type !== undefined) throw new RangeError("streams of bytes are not supported: leave `type` out");
    Object.defineProperty(this, INNER, { value: new ReadableState(source, strategy) });
  }
  get locked() {
    return this[INNER].reader !== undefined;
  }
  getReader(options) {
    if (options?.mode !== undefined) throw new RangeError("readers of bytes are not supported: leave `mode` out");
    return new ReadableStreamDefaultReader(this);
  }
  async cancel(reason) {
    if (this.locked) throw new TypeError("the stream is locked to a reader: cancel that");
    return this[INNER].cancel(reason);
  }
  async *[Symbol.asyncIterator]() {
    const reader = this.getReader();
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        yield value;
      }
    } finally {
      reader.releaseLock();
    }
  }
}

class WritableState {
  // `writable`, `closing`, `closed` or `errored`.
  state = "writable";
  writer = undefined;
  queue = [];
  size = 0;
  isStarted = false;
  isBusy = false;
  constructor(sink, strategy) {
    this.limit = limitOf(strategy, 1);
    this.write = methodOf(sink, "write", "a sink");
    this.close = methodOf(sink, "close", "a sink");
    this.abortSink = methodOf(sink, "abort", "a sink");
    this.ready = deferred();
    this.closed = deferred();
    this.controller = new WritableStreamDefaultController(this);
    this.settleReady();
    const started = methodOf(sink, "start", "a sink")?.(this.controller);
    Promise.resolve(started).then(
      () => {
        this.isStarted = true;
        this.next();
      },
      (error) => this.fail(error),
    );
  }
  desired() {
    if (this.state === "errored") return null;
    return this.state === "closed" ? 0 : this.limit.mark - this.size;
  }
  settleReady() {
    if (this.desired() > 0) this.ready.resolve(undefined);
  }
  add(chunk) {
    if (this.state === "errored") return Promise.reject(this.error);
    if (this.state !== "writable") return Promise.reject(new TypeError("the stream is closed: nothing can be written"));
    let size;
    try {
      size = sizeOf(this.limit.size, chunk);
    } catch (error) {
      this.fail(error);
      return Promise.reject(error);
    }
    if (this.desired() > 0 && this.desired() - size <= 0) this.ready = deferred();
    const written = deferred();
    this.queue.push({ chunk, size, written });
    this.size += size;
    this.next();
    return written.promise;
  }
  end() {
    if (this.state === "errored") return Promise.reject(this.error);
    if (this.state !== "writable") return Promise.reject(new TypeError("the stream is closed already"));
    this.state = "closing";
    this.ready.resolve(undefined);
    this.next();
    return this.closed.promise;
  }
  next() {
    if (!this.isStarted || this.isBusy) return;
    const entry = this.queue[0];
    const isEnd = !entry && this.state === "closing";
    if (!entry && !isEnd) return;
    this.isBusy = true;
    const work = new Promise((resolve) => resolve(isEnd ? this.close?.() : this.write?.(entry.chunk, this.controller)));
    work.then(
      () => {
        this.isBusy = false;
        if (isEnd) {
          if (this.state !== "closing") return;
          this.state = "closed";
          this.closed.resolve(undefined);
          return;
        }
        entry.written.resolve(undefined);
        if (this.state === "errored") return;
        this.queue.shift();
        this.size -= entry.size;
        if (this.state === "writable") this.settleReady();
        this.next();
      },
      (error) => {
        this.isBusy = false;
        this.fail(error);
      },
    );
  }
  fail(error) {
    if (this.state === "errored" || this.state === "closed") return;
    this.state = "errored";
    this.error = error;
    for (const entry of this.queue.splice(0)) entry.written.reject(error);
    this.ready = deferred();
    this.ready.reject(error);
    this.closed.reject(error);
  }
  async abort(reason) {
    if (this.state === "errored" || this.state === "closed") return undefined;
    this.fail(reason);
    await this.abortSink?.(reason);
    return undefined;
  }
}

class WritableStreamDefaultController {
  constructor(state) {
    if (!(state instanceof WritableState)) throw new TypeError("controllers are made by streams");
    Object.defineProperty(this, INNER, { value: state });
  }
  error(reason) {
    this[INNER].fail(reason);
  }
}

export class WritableStreamDefaultWriter {
  constructor(stream) {
    const state = stream?.[INNER];
    if (!(state instanceof WritableState)) throw new TypeError("a writer needs a WritableStream");
    if (state.writer) throw new TypeError("the stream is locked to another writer");
    Object.defineProperty(this, INNER, { value: state, writable: true });
    state.writer = this;
  }
  #state() {
    if (!this[INNER]) throw new TypeError("the writer has been released");
    return this[INNER];
  }
  get desiredSize() {
    return this.#state().desired();
  }
  get ready() {
    return this[INNER] ? this[INNER].ready.promise : Promise.reject(new TypeError("the writer has been released"));
  }
  get closed() {
    return this[INNER] ? this[INNER].closed.promise : Promise.reject(new TypeError("the writer has been released"));
  }
  async write(chunk) {
    return this.#state().add(chunk);
  }
  async close() {
    return this.#state().end();
  }
  async abort(reason) {
    return this.#state().abort(reason);
  }
  releaseLock() {
    if (!this[INNER]) return;
    this[INNER].writer = undefined;
    this[INNER] = undefined;
  }
}

export class WritableStream {
  constructor(sink = {}, strategy = {}) {
    if (sink === null || typeof sink !== "object") throw new TypeError("a sink must be an object");
    if (sink.type !== undefined) throw new RangeError("sinks have no `type`");
    Object.defineProperty(this, INNER, { value: new WritableState(sink, strategy) });
  }
  get locked() {
    return this[INNER].writer !== undefined;
  }
  getWriter() {
    return new WritableStreamDefaultWriter(this);
  }
  async abort(reason) {
    if (this.locked) throw new TypeError("the stream is locked to a writer: abort that");
    return this[INNER].abort(reason);
  }
  async close() {
    if (this.locked) throw new TypeError("the stream is locked to a writer: close that");
    return this[INNER].end();
  }
}

export default {
  ReadableStream, ReadableStreamDefaultReader, CountQueuingStrategy,
  WritableStream, WritableStreamDefaultWriter,
};
