import { check as k6Check } from "k6";

export function uuidv4() {
  const hex = (bits) => Math.floor(Math.random() * 2 ** bits).toString(16).padStart(bits / 4, "0");
  const variant = "89ab"[Math.floor(Math.random() * 4)];
  return `${hex(32)}-${hex(16)}-4${hex(12)}-${variant}${hex(12)}-${hex(48)}`;
}

export function randomIntBetween(least, most) {
  return Math.floor(Math.random() * (most - least + 1)) + least;
}

export function randomItem(items) {
  return items[Math.floor(Math.random() * items.length)];
}

export function randomString(length, characters = "abcdefghijklmnopqrstuvwxyz") {
  let made = "";
  for (let i = 0; i < length; i++) made += characters[Math.floor(Math.random() * characters.length)];
  return made;
}

export function findBetween(text, left, right, isRepeated = false) {
  const found = [];
  let from = 0;
  for (;;) {
    const start = text.indexOf(left, from);
    if (start < 0) break;
    const end = text.indexOf(right, start + left.length);
    if (end < 0) break;
    found.push(text.slice(start + left.length, end));
    if (!isRepeated) break;
    from = end + right.length;
  }
  return isRepeated ? found : (found[0] ?? null);
}

export function normalDistributionStages(most, seconds, count = 10) {
  const density = (x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  const stages = [];
  for (let i = 0; i < count; i++) {
    const x = count === 1 ? 0 : (i / (count - 1)) * 4 - 2;
    stages.push({ duration: `${Math.ceil(seconds / (count + 1))}s`, target: Math.ceil((most * density(x)) / density(0)) });
  }
  stages.push({ duration: `${Math.ceil(seconds / (count + 1))}s`, target: 0 });
  return stages;
}

const UNITS = { d: 86400000, h: 3600000, m: 60000, s: 1000, ms: 1 };

export function parseDuration(text) {
  if (typeof text !== "string" || text === "") throw new Error("parseDuration() needs a text such as 1m30s");
  let total = 0;
  let rest = text;
  while (rest !== "") {
    const part = /^(\d+(?:\.\d+)?)(ms|[dhms])/.exec(rest);
    if (!part) throw new Error(`${text} is not a duration`);
    total += Number(part[1]) * UNITS[part[2]];
    rest = rest.slice(part[0].length);
  }
  return total;
}

export function check(value, checks, tags) {
  const tests = Object.entries(checks ?? {});
  if (!tests.some(([, test]) => test?.constructor?.name === "AsyncFunction")) return k6Check(value, checks, tags);
  return (async () => {
    let isPassed = true;
    for (const [name, test] of tests) {
      const result = await (typeof test === "function" ? test(value) : test);
      isPassed = k6Check(value, { [name]: !!result }, tags) && isPassed;
    }
    return isPassed;
  })();
}

export default {
  uuidv4,
  randomIntBetween,
  randomItem,
  randomString,
  findBetween,
  normalDistributionStages,
  parseDuration,
  check,
};
