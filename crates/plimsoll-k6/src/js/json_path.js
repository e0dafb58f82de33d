// The path syntax of gjson as far as scripts use it: names, escapes, indexes, `#`, `#.name`, `#(name==value)`, `*`, `?`.
const split = (path) => {
  const parts = [];
  let part = "";
  let depth = 0;
  for (let i = 0; i < path.length; i++) {
    const letter = path[i];
    if (letter === "\\" && i + 1 < path.length) {
      part += path[i] + path[++i];
      continue;
    }
    if (letter === "(") depth++;
    if (letter === ")") depth--;
    if (letter === "." && depth === 0) {
      parts.push(part);
      part = "";
    } else part += letter;
  }
  parts.push(part);
  return parts;
};

const plain = (part) => part.replace(/\\(.)/g, "$1");

const pattern = (part) =>
  new RegExp(`^${part.replace(/\\(.)|([.+^${}()|[\]])|\*|\?/g, (all, escape, special) => (escape ? `\\${escape}` : special ? `\\${special}` : all === "*" ? ".*" : "."))}$`, "s");

const compares = {
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "%": (a, b) => typeof a === "string" && pattern(String(b)).test(a),
  "!%": (a, b) => typeof a === "string" && !pattern(String(b)).test(a),
};

const query = (text) => {
  const parsed = /^(.*?)(==|!=|<=|>=|!%|<|>|%)(.*)$/s.exec(text);
  if (!parsed) return (element) => select(element, split(text.trim())) !== undefined;
  const [, left, operator, right] = parsed;
  let value = right.trim();
  try {
    value = JSON.parse(value);
  } catch {
    // A text without quotes.
  }
  const path = left.trim();
  return (element) => compares[operator](path === "" ? element : select(element, split(path)), value);
};

const select = (value, parts) => {
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i];
    if (value === undefined || value === null || typeof value !== "object") return undefined;
    const rest = parts.slice(i + 1);
    if (Array.isArray(value)) {
      const filter = /^#\((.*)\)(#?)$/s.exec(part);
      if (part === "#") {
        if (rest.length === 0) return value.length;
        return value.map((element) => select(element, rest)).filter((found) => found !== undefined);
      }
      if (filter) {
        const found = value.filter(query(filter[1]));
        if (filter[2] === "#") {
          return rest.length === 0 ? found : found.map((element) => select(element, rest)).filter((it) => it !== undefined);
        }
        value = found[0];
        continue;
      }
      value = /^\d+$/.test(part) ? value[Number(part)] : undefined;
    } else if (/(^|[^\\])[*?]/.test(part)) {
      const names = pattern(part);
      const name = Object.keys(value).find((it) => names.test(it));
      value = name === undefined ? undefined : value[name];
    } else {
      const name = plain(part);
      value = Object.hasOwn(value, name) ? value[name] : undefined;
    }
  }
  return value;
};

export default (value, path) => select(value, split(path));
