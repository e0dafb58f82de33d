// Values as the console prints them.

const bytes = (view) => [...view].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");

const shown = (value, above) => {
  switch (typeof value) {
    case "string":
      return `"${value}"`;
    case "undefined":
      return "null";
    case "function":
      return "[object Function]";
    case "symbol":
      return value.description ?? "";
    case "object":
      break;
    default:
      return String(value);
  }
  if (value === null) return "null";
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value instanceof ArrayBuffer) {
    return `ArrayBuffer { [Uint8Contents]: <${bytes(new Uint8Array(value))}>, byteLength: ${value.byteLength} }`;
  }
  if (above.includes(value)) return "[Circular]";
  const below = [...above, value];
  const list = (values) => (values.length === 0 ? "[]" : `[ ${values.map((it) => shown(it, below)).join(", ")} ]`);
  if (Array.isArray(value)) return list(Array.from(value));
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    return `${value.constructor.name}(${value.length}) ${list([...value])}`;
  }
  if (typeof value.toJSON === "function") return shown(value.toJSON(), below);
  const fields = Object.entries(value).map(([name, inner]) => `${name}: ${shown(inner, below)}`);
  return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
};

export default (value) => (typeof value === "object" ? shown(value, []) : typeof value === "function" ? "[object Function]" : String(value));
