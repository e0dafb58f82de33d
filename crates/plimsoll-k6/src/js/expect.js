// The interface of jslib k6-testing: expectations in the words of Playwright. A failure aborts the run. It takes the place of the library where
// that cannot be fetched.

const native = globalThis[Symbol.for("plimsoll.native")].of("execution");
const { equals, matches, shown } = globalThis[Symbol.for("plimsoll.native")].use("expectations");

const lengthOf = (value) => value?.length ?? value?.size;

// Each returns whether it holds, and what was expected.
const MATCHERS = {
  toBe: (value, other) => [Object.is(value, other), shown(other)],
  toEqual: (value, other) => [equals(value, other, false), shown(other)],
  toStrictEqual: (value, other) => [equals(value, other, true), shown(other)],
  toMatchObject: (value, other) => [matches(value, other), shown(other)],
  toBeTruthy: (value) => [!!value, "a truthy value"],
  toBeFalsy: (value) => [!value, "a falsy value"],
  toBeNull: (value) => [value === null, "null"],
  toBeUndefined: (value) => [value === undefined, "undefined"],
  toBeDefined: (value) => [value !== undefined, "a defined value"],
  toBeNaN: (value) => [Number.isNaN(value), "NaN"],
  toBeGreaterThan: (value, other) => [value > other, `> ${shown(other)}`],
  toBeGreaterThanOrEqual: (value, other) => [value >= other, `>= ${shown(other)}`],
  toBeLessThan: (value, other) => [value < other, `< ${shown(other)}`],
  toBeLessThanOrEqual: (value, other) => [value <= other, `<= ${shown(other)}`],
  toBeCloseTo: (value, other, digits = 2) => [Math.abs(value - other) < 10 ** -digits / 2, `${shown(other)} to ${digits} digits`],
  toBeInstanceOf: (value, type) => [value instanceof type, `an instance of ${type.name}`],
  toHaveLength: (value, length) => [lengthOf(value) === length, `a length of ${length}`],
  toContain: (value, part) => [typeof value === "string" ? value.includes(part) : [...value].includes(part), `to contain ${shown(part)}`],
  toContainEqual: (value, part) => [[...value].some((it) => equals(it, part, false)), `to contain ${shown(part)}`],
  toMatch: (value, pattern) => [pattern instanceof RegExp ? pattern.test(value) : value.includes(pattern), `to match ${String(pattern)}`],
  toHaveProperty(value, path, ...expected) {
    const parts = Array.isArray(path) ? path : path.replace(/\[(\w+)\]/g, ".$1").split(".");
    let found = value;
    for (const part of parts) {
      if (found === null || found === undefined || !(part in Object(found))) return [false, `the property ${shown(path)}`];
      found = found[part];
    }
    return [expected.length === 0 || equals(found, expected[0], false), `the property ${shown(path)}`];
  },
  toThrow(value, expected) {
    try {
      value();
    } catch (error) {
      if (expected === undefined) return [true, "an exception"];
      if (typeof expected === "function") return [error instanceof expected, `an exception of ${expected.name}`];
      const text = expected instanceof Error ? expected.message : expected;
      return [text instanceof RegExp ? text.test(error?.message) : String(error?.message).includes(text), `an exception with ${String(text)}`];
    }
    return [false, "an exception"];
  },
};

// A soft one only marks the run as failed.
const failed = (message, isSoft) => (isSoft ? native.markFailed(message) : native.abort(message));

const expectations = (value, settings, isNegated) => {
  const made = {};
  for (const [name, match] of Object.entries(MATCHERS)) {
    made[name] = (...given) => {
      const [holds, expected] = match(value, ...given);
      if (holds !== isNegated) return;
      const words = `expect(received)${isNegated ? ".not" : ""}.${name}()`;
      const text = `${settings.message ? `${settings.message}: ` : ""}${words}: expected ${isNegated ? "not " : ""}${expected}, received ${shown(value)}`;
      failed(text, settings.soft);
    };
  }
  // Each exists only where it is used.
  if (!isNegated) Object.defineProperty(made, "not", { get: () => expectations(value, settings, true) });
  return made;
};

const configured = (settings) => {
  const made = (value, message) => expectations(value, { ...settings, message }, false);
  made.soft = (value, message) => expectations(value, { ...settings, message, soft: true }, false);
  made.configure = (changes) => configured({ ...settings, ...changes });
  made.extend = (matchers) => {
    for (const [name, match] of Object.entries(matchers)) {
      MATCHERS[name] = (value, ...given) => {
        const { pass, message } = match(value, ...given);
        return [pass, message?.() ?? name];
      };
    }
    return made;
  };
  return made;
};

export const expect = configured({});

export default { expect };
