// Comparisons of values, as libraries of expectations make them.

const kind = (value) => Object.prototype.toString.call(value);

// - `isStrict`: whether properties that are undefined count, and the classes of objects.
const equals = (one, other, isStrict) => {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (kind(one) !== kind(other)) return false;
  if (isStrict && Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
  if (one instanceof Date) return one.getTime() === other.getTime();
  if (one instanceof RegExp) return String(one) === String(other);
  if (one instanceof Error) return one.message === other.message;
  if (one instanceof Map || one instanceof Set) return one.size === other.size && equals([...one], [...other], isStrict);
  const names = (value) => Object.keys(value).filter((name) => isStrict || value[name] !== undefined);
  const left = names(one);
  return left.length === names(other).length && left.every((name) => Object.hasOwn(other, name) && equals(one[name], other[name], isStrict));
};

// Whether a value has all that another one has.
const matches = (value, part) => {
  if (typeof part !== "object" || part === null || part instanceof Date || part instanceof RegExp) return equals(value, part, false);
  if (typeof value !== "object" || value === null || Array.isArray(value) !== Array.isArray(part)) return false;
  if (Array.isArray(part) && part.length !== value.length) return false;
  return Object.keys(part).every((name) => matches(value[name], part[name]));
};

const shown = (value) => {
  if (typeof value === "function") return `[Function ${value.name}]`;
  const text = typeof value === "object" && value instanceof Error ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
};

export default { equals, matches, shown };
