const native = globalThis[Symbol.for("plimsoll.native")].of("metrics");

class Metric {
  #id;
  constructor(kind, name, isTime) {
    this.#id = native.metric(kind, String(name), !!isTime);
    Object.defineProperty(this, "name", { value: String(name), enumerable: true });
  }
  add(value, tags) {
    return native.addSample(this.#id, value === true ? 1 : value === false ? 0 : Number(value ?? NaN), tags);
  }
}

export const Counter = native.callable(
  class Counter extends Metric {
    constructor(name, isTime) {
      super("counter", name, isTime);
    }
  },
);

export const Gauge = native.callable(
  class Gauge extends Metric {
    constructor(name, isTime) {
      super("gauge", name, isTime);
    }
  },
);

export const Rate = native.callable(
  class Rate extends Metric {
    constructor(name, isTime) {
      super("rate", name, isTime);
    }
    add(value, tags) {
      return super.add(typeof value === "number" ? value : !!value, tags);
    }
  },
);

export const Trend = native.callable(
  class Trend extends Metric {
    constructor(name, isTime) {
      super("trend", name, isTime);
    }
  },
);

export default { Counter, Gauge, Rate, Trend };
