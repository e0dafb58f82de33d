const native = globalThis[Symbol.for("plimsoll.native")].of("k6");

const AsyncFunction = (async () => {}).constructor;
const isAsync = (value) => typeof value === "function" && value.constructor === AsyncFunction;

// A virtual user leaves the init context once.
let isRunning = false;

export function check(value, checks, tags) {
  if (!isRunning) {
    native.forbidInit("check()");
    isRunning = true;
  }
  let isPassed = true;
  const named = checks ?? {};
  for (const name of Object.keys(named)) {
    const test = named[name];
    if (name.includes("::")) native.fail(`the name of a check must not contain '::': ${name}`);
    if (isAsync(test)) native.fail("check() does not take async functions");
    let result;
    try {
      result = typeof test === "function" ? test(value) : test;
    } catch (error) {
      native.check(name, false, tags);
      throw error;
    }
    native.check(name, !!result, tags);
    isPassed &&= !!result;
  }
  return isPassed;
}

export function group(name, body) {
  native.forbidInit("group()");
  if (typeof body !== "function") native.fail("group() needs a name and a function");
  if (isAsync(body)) native.fail("group() does not take async functions");
  native.enterGroup(String(name));
  try {
    return body();
  } finally {
    native.leaveGroup();
  }
}

export function fail(message) {
  native.fail(message === undefined ? "" : String(message));
}

export function sleep(seconds) {
  native.sleep(Number(seconds));
}

export function randomSeed(seed) {
  native.randomSeed(Number(seed));
}

export default { check, group, fail, sleep, randomSeed };
