import { check as k6Check } from "k6";
import exec from "k6/execution";

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
  return isRepeated && found.length > 0 ? found : (found[0] ?? null);
}

// Stages along a bell curve between two deviations on either side, and a last one down to none.
export function normalDistributionStages(most, seconds, count = 10) {
  const density = (x) => Math.exp((-x * x) / 2);
  const curve = Array.from({ length: count + 1 }, (_, index) => density((4 * index) / count - 2));
  const peak = Math.max(...curve);
  const targets = [...curve.map((height) => Math.round((height * most) / peak)), 0];
  const edge = Math.ceil(seconds / 6);
  const inner = Math.ceil((4 * seconds) / (6 * count));
  return targets.map((target, index) => ({ duration: `${index === 0 || index > count ? edge : inner}s`, target }));
}

const UNITS = { d: 86400000, h: 3600000, m: 60000, s: 1000, ms: 1 };

export function parseDuration(text) {
  if (typeof text !== "string" || text === "") throw new Error("parseDuration() needs a text such as 1m30s");
  let total = 0;
  let rest = text;
  while (rest !== "") {
    // A number without a unit is one of milliseconds.
    const part = /^(\d+(?:\.\d+)?)(ms|[dhms]|$)/.exec(rest);
    if (!part) throw new Error(`${text} is not a duration`);
    total += Number(part[1]) * (UNITS[part[2]] ?? 1);
    rest = rest.slice(part[0].length);
  }
  return total;
}

// The stages of the running scenario, and which of them it is in.
function currentStage() {
  const { stages } = exec.test.options.scenarios[exec.scenario.name] ?? {};
  if (!(stages?.length > 0)) throw new Error(`the scenario ${exec.scenario.name} has no stages`);
  // A start within the present millisecond is not in the future.
  let left = Math.max(0, Date.now() - exec.scenario.startTime);
  const index = stages.findIndex((stage) => (left -= parseDuration(stage.duration)) < 0);
  return { stages, index: index < 0 ? stages.length - 1 : index };
}

export function getCurrentStageIndex() {
  return currentStage().index;
}

export function tagWithCurrentStageIndex() {
  exec.vu.tags.stage = getCurrentStageIndex();
}

export function tagWithCurrentStageProfile() {
  const { stages, index } = currentStage();
  // The first stage begins with the users at the start, whom k6-utils does not look at either.
  const change = index === 0 ? 1 : stages[index].target - stages[index - 1].target;
  exec.vu.tags.stage_profile = change > 0 ? "ramp-up" : change < 0 ? "ramp-down" : "steady";
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
  getCurrentStageIndex,
  tagWithCurrentStageIndex,
  tagWithCurrentStageProfile,
  check,
};
