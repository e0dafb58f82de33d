// The interface of papaparse as far as it is of use without files and workers: parse() and unparse() of texts.

const DELIMITERS = [",", "\t", "|", ";", "\x1e", "\x1f"];

// Rows of fields; a quoted field may hold delimiters, line breaks and doubled quotes (RFC 4180).
const records = (text, delimiter, quote, errors) => {
  const rows = [];
  let row = [];
  let at = 0;
  for (;;) {
    let field = "";
    if (text.startsWith(quote, at) && quote !== "") {
      at += quote.length;
      for (;;) {
        const end = text.indexOf(quote, at);
        if (end < 0) {
          errors.push({ type: "Quotes", code: "MissingQuotes", message: "Quoted field unterminated", row: rows.length, index: at });
          field += text.slice(at);
          at = text.length;
          break;
        }
        field += text.slice(at, end);
        at = end + quote.length;
        if (!text.startsWith(quote, at)) break;
        field += quote;
        at += quote.length;
      }
    }
    const start = at;
    while (at < text.length && !text.startsWith(delimiter, at) && text[at] !== "\n" && text[at] !== "\r") at++;
    row.push(field + text.slice(start, at));
    if (text.startsWith(delimiter, at) && at < text.length) {
      at += delimiter.length;
      continue;
    }
    rows.push(row);
    row = [];
    if (at >= text.length) return rows;
    at += text.startsWith("\r\n", at) ? 2 : 1;
    if (at >= text.length) {
      rows.push([""]);
      return rows;
    }
  }
};

const guess = (text, quote) => {
  const scores = DELIMITERS.map((delimiter) => {
    const rows = records(text.slice(0, 10000), delimiter, quote, []).slice(0, 10).filter((row) => row.length > 1 || row[0] !== "");
    const width = rows[0]?.length ?? 0;
    return width > 1 && rows.every((row) => row.length === width) ? width : 0;
  });
  const best = Math.max(...scores);
  return best === 0 ? "," : DELIMITERS[scores.indexOf(best)];
};

const NUMBER = /^\s*-?(\d+\.?|\.\d+|\d+\.\d+)([eE][-+]?\d+)?\s*$/;

const typed = (value) => {
  if (value === "true" || value === "TRUE") return true;
  if (value === "false" || value === "FALSE") return false;
  if (NUMBER.test(value)) return Number(value);
  return value === "" ? null : value;
};

const isOn = (option, column) => (typeof option === "function" ? option(column) : typeof option === "object" && option !== null ? option[column] === true : option === true);

export function parse(input, config = {}) {
  let text = String(input);
  if (text.startsWith("\ufeff")) text = text.slice(1);
  const errors = [];
  const quote = config.quoteChar ?? '"';
  const delimiter = typeof config.delimiter === "function" ? config.delimiter(text) : config.delimiter || guess(text, quote);
  let rows = text === "" ? [] : records(text, delimiter, quote, errors);
  if (config.comments) {
    const mark = config.comments === true ? "#" : config.comments;
    rows = rows.filter((row) => !row[0].startsWith(mark));
  }
  if (config.skipEmptyLines) {
    const isEmpty = (row) => (config.skipEmptyLines === "greedy" ? row.join("").trim() === "" : row.length === 1 && row[0] === "");
    rows = rows.filter((row) => !isEmpty(row));
  }
  const meta = { delimiter, linebreak: text.includes("\r\n") ? "\r\n" : "\n", aborted: false, truncated: false, cursor: text.length };
  let names;
  if (config.header && rows.length > 0) {
    names = rows.shift().map((name, index) => (config.transformHeader ? config.transformHeader(name, index) : name));
    meta.fields = names;
  }
  if (config.preview > 0 && rows.length > config.preview) {
    rows = rows.slice(0, config.preview);
    meta.truncated = true;
  }
  const converted = (value, column) => {
    const given = config.transform ? config.transform(value, column) : value;
    return isOn(config.dynamicTyping, column) && typeof given === "string" ? typed(given) : given;
  };
  const data = rows.map((row, index) => {
    if (!names) return row.map((value, column) => converted(value, column));
    if (row.length !== names.length) {
      const code = row.length < names.length ? "TooFewFields" : "TooManyFields";
      const message = `${code === "TooFewFields" ? "Too few" : "Too many"} fields: expected ${names.length} fields but parsed ${row.length}`;
      errors.push({ type: "FieldMismatch", code, message, row: index });
    }
    const made = {};
    row.forEach((value, column) => {
      if (column < names.length) made[names[column]] = converted(value, names[column]);
      else (made.__parsed_extra ??= []).push(converted(value, column));
    });
    return made;
  });
  const result = { data, errors, meta };
  if (config.step) data.forEach((row) => config.step({ data: row, errors: [], meta }, { abort() {}, pause() {}, resume() {} }));
  config.complete?.(result, input);
  return result;
}

export function unparse(input, config = {}) {
  const delimiter = config.delimiter ?? ",";
  const quote = config.quoteChar ?? '"';
  const newline = config.newline ?? "\r\n";
  const given = typeof input === "string" ? JSON.parse(input) : input;
  let names = config.columns ?? given.fields;
  let rows = Array.isArray(given) ? given : (given.data ?? []);
  const isOfObjects = rows.length > 0 && !Array.isArray(rows[0]);
  if (isOfObjects) {
    names ??= Object.keys(rows[0]);
    rows = rows.map((row) => names.map((name) => row[name]));
  }
  const field = (value, column) => {
    if (value === undefined || value === null) return "";
    const text = value instanceof Date ? value.toISOString() : String(value);
    const isQuoted =
      isOn(Array.isArray(config.quotes) ? config.quotes[column] === true : config.quotes, column) ||
      [delimiter, quote, "\n", "\r"].some((it) => text.includes(it)) ||
      text.startsWith(" ") ||
      text.endsWith(" ");
    return isQuoted ? quote + text.replaceAll(quote, quote + quote) + quote : text;
  };
  const lines = rows.map((row) => row.map(field).join(delimiter));
  if (names && config.header !== false) lines.unshift(names.map(field).join(delimiter));
  return lines.join(newline);
}

export default { parse, unparse, BAD_DELIMITERS: ["\r", "\n", '"', "\ufeff"], RECORD_SEP: "\x1e", UNIT_SEP: "\x1f" };
