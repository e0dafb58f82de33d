// The interface of k6chaijs: expectations in the words of Chai, each of which is a check. It takes the place of the library where that cannot
// be fetched.

import { check, group } from "k6";
import exec from "k6/execution";

export const config = {
  truncateMsgThreshold: 300,
  truncateVariableThreshold: 100,
  aggregateChecks: true,
  logFailures: false,
  exitOnError: false,
};

class AssertionError extends Error {
  constructor(message) {
    super(message);
    this.name = "AssertionError";
  }
}

const cut = (text, most) => (text.length > most ? `${text.substring(0, most)}...` : text);

const quoted = (text) => `'${text.replaceAll("'", "\\'")}'`;

// As Chai prints values.
const inspected = (value) => {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "function") return `[Function${value.name ? ` ${value.name}` : ""}]`;
  if (typeof value !== "object" || value === null || value instanceof Date || value instanceof RegExp || value instanceof Error) return String(value);
  const isList = Array.isArray(value);
  const parts = isList ? value.map(inspected) : Object.entries(value).map(([name, inner]) => `${/^\w+$/.test(name) ? name : quoted(name)}: ${inspected(inner)}`);
  const [open, close] = isList ? "[]" : "{}";
  return parts.length === 0 ? open + close : `${open} ${parts.join(", ")} ${close}`;
};

const shown = (value) => cut(inspected(value), config.truncateVariableThreshold);

const kind = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : value instanceof Date ? "date" : value instanceof RegExp ? "regexp" : value instanceof Error ? "error" : typeof value);

const equals = (one, other) => {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (kind(one) !== kind(other)) return false;
  if (one instanceof Date) return one.getTime() === other.getTime();
  if (one instanceof RegExp) return String(one) === String(other);
  if (one instanceof Map || one instanceof Set) return other.size === one.size && equals([...one], [...other]);
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && equals(one[name], other[name]));
};

const at = (value, path) =>
  path
    .replace(/\[(\w+)\]/g, ".$1")
    .split(".")
    .filter((part) => part !== "")
    .reduce((found, part) => (found === undefined || found === null ? undefined : found[part]), value);

const lengthOf = (value) => value?.size ?? value?.length;

class Assertion {
  constructor(value, message, flags = {}) {
    this.value = value;
    this.message = message;
    this.flags = flags;
  }
  flagged(flags) {
    return new Assertion(this.value, this.message, { ...this.flags, ...flags });
  }
  // Checks a condition; `what` completes "expected … to …", in the name of the check without the value.
  assert(holds, what, aggregated = what) {
    const isMet = this.flags.not ? !holds : !!holds;
    const to = this.flags.not ? "to not" : "to";
    const sentence = `expected ${shown(this.value)} ${to} ${what}`;
    const message = cut(this.message && !config.aggregateChecks ? `${this.message}: ${sentence}` : sentence, config.truncateMsgThreshold);
    const name = config.aggregateChecks ? cut(`expected ${this.message || "${this}"} ${to} ${aggregated}`, config.truncateMsgThreshold) : message;
    check(null, { [name.replaceAll("::", ":")]: () => isMet });
    if (isMet) return this;
    if (config.logFailures) console.warn(message);
    if (config.exitOnError) exec.test.abort(message);
    throw new AssertionError(message);
  }
}

const getters = {
  not: (it) => it.flagged({ not: !it.flags.not }),
  deep: (it) => it.flagged({ deep: true }),
  nested: (it) => it.flagged({ nested: true }),
  own: (it) => it.flagged({ own: true }),
  any: (it) => it.flagged({ any: true, all: false }),
  all: (it) => it.flagged({ all: true, any: false }),
  ordered: (it) => it.flagged({ ordered: true }),
  ok: (it) => it.assert(it.value, "be truthy"),
  true: (it) => it.assert(it.value === true, "be true"),
  false: (it) => it.assert(it.value === false, "be false"),
  null: (it) => it.assert(it.value === null, "be null"),
  undefined: (it) => it.assert(it.value === undefined, "be undefined"),
  NaN: (it) => it.assert(Number.isNaN(it.value), "be NaN"),
  exist: (it) => it.assert(it.value !== null && it.value !== undefined, "exist"),
  finite: (it) => it.assert(Number.isFinite(it.value), "be finite"),
  empty: (it) => it.assert((lengthOf(it.value) ?? Object.keys(it.value).length) === 0, "be empty"),
  frozen: (it) => it.assert(Object.isFrozen(it.value), "be frozen"),
};
for (const word of ["to", "be", "been", "is", "that", "which", "and", "has", "have", "with", "at", "of", "same", "but", "does", "still", "also"]) {
  getters[word] = (it) => it;
}
for (const [name, get] of Object.entries(getters)) {
  Object.defineProperty(Assertion.prototype, name, {
    get() {
      return get(this);
    },
  });
}

const methods = {
  equal(other) {
    return this.flags.deep ? this.eql(other) : this.assert(this.value === other, `equal ${shown(other)}`);
  },
  eql(other) {
    return this.assert(equals(this.value, other), `deeply equal ${shown(other)}`);
  },
};

const compare = (it, holds, what) => {
  if (it.flags.length) return it.assert(holds(lengthOf(it.value)), `have a length ${what} got ${lengthOf(it.value)}`, `have a length ${what} got ${"${actual}"}`);
  return it.assert(holds(it.value), `be ${what}`);
};

const define = (names, method) => {
  for (const name of names) Assertion.prototype[name] = method;
};

define(["equal", "equals", "eq"], methods.equal);
define(["eql", "eqls"], methods.eql);
define(["above", "gt", "greaterThan"], function (least) {
  return compare(this, (value) => value > least, `above ${shown(least)}`);
});
define(["least", "gte", "greaterThanOrEqual"], function (least) {
  return compare(this, (value) => value >= least, `at least ${shown(least)}`);
});
define(["below", "lt", "lessThan"], function (most) {
  return compare(this, (value) => value < most, `below ${shown(most)}`);
});
define(["most", "lte", "lessThanOrEqual"], function (most) {
  return compare(this, (value) => value <= most, `at most ${shown(most)}`);
});
define(["within"], function (least, most) {
  return compare(this, (value) => value >= least && value <= most, `within ${shown(least)}..${shown(most)}`);
});
define(["closeTo", "approximately"], function (other, delta) {
  return this.assert(Math.abs(this.value - other) <= delta, `be close to ${shown(other)} +/- ${delta}`);
});
define(["property"], function (name, ...expected) {
  const value = this.flags.nested ? at(this.value, String(name)) : this.value?.[name];
  const exists = this.flags.own ? Object.hasOwn(this.value, name) : value !== undefined || (Object(this.value) === this.value && name in this.value);
  const same = expected.length === 0 || (this.flags.deep ? equals(value, expected[0]) : value === expected[0]);
  const what = `have property ${shown(name)}${expected.length === 0 ? "" : ` of ${shown(expected[0])}`}`;
  this.assert(exists && same, what);
  return this.flags.not ? this : new Assertion(value, this.message);
});
define(["keys", "key"], function (...names) {
  const wanted = names.length === 1 && Array.isArray(names[0]) ? names[0] : names.length === 1 && typeof names[0] === "object" ? Object.keys(names[0]) : names;
  const found = this.value instanceof Map ? [...this.value.keys()] : Object.keys(this.value);
  const hasAll = wanted.every((name) => found.includes(name));
  const holds = this.flags.any ? wanted.some((name) => found.includes(name)) : hasAll && (this.flags.contains || wanted.length === found.length);
  return this.assert(holds, `have ${this.flags.any ? "any" : "all"} of the keys ${shown(wanted)}`);
});
define(["members"], function (others) {
  const same = (one, other) => (this.flags.deep ? equals(one, other) : one === other);
  const rest = [...this.value];
  const holds = others.every((other, index) => {
    const position = this.flags.ordered ? (same(rest[index], other) ? index : -1) : rest.findIndex((one) => same(one, other));
    if (position >= 0 && !this.flags.ordered) rest.splice(position, 1);
    return position >= 0;
  });
  return this.assert(holds && (this.flags.contains || others.length === this.value.length), `have the members ${shown(others)}`);
});
define(["match", "matches"], function (pattern) {
  return this.assert(pattern.test(this.value), `match ${pattern}`);
});
define(["string"], function (part) {
  return this.assert(typeof this.value === "string" && this.value.includes(part), `contain ${shown(part)}`);
});
define(["oneOf"], function (values) {
  return this.assert(values.some((value) => (this.flags.deep ? equals(value, this.value) : value === this.value)), `be one of ${shown(values)}`);
});
define(["satisfy", "satisfies"], function (test) {
  return this.assert(test(this.value), `satisfy ${shown(test)}`);
});
define(["instanceof", "instanceOf"], function (type) {
  return this.assert(this.value instanceof type, `be an instance of ${type.name}`);
});
define(["respondTo"], function (name) {
  return this.assert(typeof this.value?.[name] === "function", `respond to ${shown(name)}`);
});
define(["throw", "throws", "Throw"], function (type, message) {
  let thrown;
  try {
    this.value();
  } catch (error) {
    thrown = { error };
  }
  const text = typeof type === "string" || type instanceof RegExp ? type : message;
  const isOfType = typeof type !== "function" || thrown?.error instanceof type;
  const hasText = text === undefined || (text instanceof RegExp ? text.test(thrown?.error?.message) : String(thrown?.error?.message).includes(text));
  return this.assert(thrown !== undefined && isOfType && hasText, "throw an error");
});
define(["status"], function (status) {
  return this.assert(this.value.status === status, `have status ${status}`);
});
define(["validJsonBody"], function () {
  let holds = true;
  try {
    this.value.json();
  } catch {
    holds = false;
  }
  return this.assert(holds, "have a valid json body");
});

// Words that are both: `a("string")` and `a.string`, `length(3)` and `length.above(3)`, `include("x")` and `include.keys("x")`.
const both = (names, flags, method) => {
  for (const name of names) {
    Object.defineProperty(Assertion.prototype, name, {
      get() {
        const next = this.flagged(flags);
        const call = (...given) => method.apply(this, given);
        return new Proxy(call, {
          get: (_, word) => {
            const found = next[word];
            return typeof found === "function" ? found.bind(next) : found;
          },
        });
      },
    });
  }
};
both(["a", "an"], {}, function (type) {
  return this.assert(kind(this.value) === type.toLowerCase(), `be ${/^[aeiou]/i.test(type) ? "an" : "a"} ${type}`);
});
both(["length", "lengthOf"], { length: true }, function (length) {
  return this.assert(lengthOf(this.value) === length, `have a length of ${length} got ${lengthOf(this.value)}`, `have a length of ${length} got ${"${actual}"}`);
});
both(["include", "includes", "contain", "contains"], { contains: true }, function (part) {
  const value = this.value;
  let holds;
  if (typeof value === "string") holds = value.includes(part);
  else if (value instanceof Set || value instanceof Map) holds = value.has(part);
  else if (Array.isArray(value)) holds = value.some((it) => (this.flags.deep ? equals(it, part) : it === part));
  else holds = Object.entries(part).every(([name, inner]) => (this.flags.deep ? equals(value?.[name], inner) : value?.[name] === inner));
  return this.assert(holds, `include ${shown(part)}`);
});

// `expect(value)`; `expect(value, "message")`.
export const expect = (value, message) => new Assertion(value, message);
expect.fail = (message = "expect.fail()") => {
  throw new AssertionError(message);
};

// Runs a block of expectations as a group; returns whether all hold.
export const describe = (name, block) =>
  group(name, () => {
    try {
      block();
      return true;
    } catch (error) {
      if (error?.name !== "AssertionError") {
        console.error(`Exception raised in test "${name}". Failing the test and continuing. \n${error}`);
        check(null, { [`Exception raised "${error}"`.replaceAll("::", ":")]: () => false });
      }
      return false;
    }
  });

export const chai = { expect, config, AssertionError };
export { AssertionError };

export default { expect, describe, chai, config };
