import { SharedArray } from "k6/data";
import "k6/experimental/fs";

const native = globalThis[Symbol.for("plimsoll.native")].of("files");

const LETTERS = /^.$/su;

// What the native side takes: delimiter, lines to begin and end with, and whether rows are objects.
const checked = (options = {}) => {
  const { delimiter = ",", skipFirstLine = false, fromLine, toLine, asObjects = false } = options;
  if (!LETTERS.test(delimiter)) native.fail("the delimiter of a CSV is one character");
  if (fromLine !== undefined && !(fromLine >= 0)) native.fail("fromLine must not be negative");
  if (toLine !== undefined && !(toLine >= (fromLine ?? 0))) native.fail("toLine must not be less than fromLine");
  if (asObjects && skipFirstLine) native.fail("asObjects needs the first line, which skipFirstLine leaves out");
  if (asObjects && fromLine > 0) native.fail("asObjects needs the first line, which fromLine leaves out");
  return { delimiter, asObjects, from: Math.max(fromLine ?? 0, skipFirstLine ? 1 : 0), to: toLine ?? Infinity };
};

const rows = (file, options) => {
  const { delimiter, asObjects, from, to } = checked(options);
  // k6 counts lines from 0, the last one included.
  const all = native.parseCsv(native.idOfFile(file), delimiter);
  const list = all.slice(from, to === Infinity ? undefined : to + 1);
  if (!asObjects) return list;
  const names = list.shift() ?? [];
  return list.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index] ?? ""])));
};

export async function parse(file, options) {
  native.requireInit("parse() of k6/experimental/csv");
  const name = `plimsoll:csv:${file.path}:${JSON.stringify(checked(options))}`;
  return new SharedArray(name, () => rows(file, options));
}

export const Parser = native.callable(
  class Parser {
    #rows;
    #at = 0;
    constructor(file, options) {
      native.requireInit("Parser of k6/experimental/csv");
      const name = `plimsoll:csv:${file.path}:${JSON.stringify(checked(options))}`;
      this.#rows = new SharedArray(name, () => rows(file, options));
    }
    async next() {
      if (this.#at >= this.#rows.length) return { done: true, value: [] };
      return { done: false, value: this.#rows[this.#at++] };
    }
  },
);

export default { parse, Parser };
