(print) => {
  const shown = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    if (typeof value === "function") return `[function ${value.name}]`;
    if (typeof value === "bigint") return `${value}n`;
    if (typeof value !== "object" || value === null) return String(value);
    try {
      return JSON.stringify(value);
    } catch {
      return Object.prototype.toString.call(value);
    }
  };
  const as = (level) => (...values) => print(level, values.map(shown).join(" "));
  globalThis.console = {
    log: as("log"),
    info: as("info"),
    debug: as("debug"),
    warn: as("warn"),
    error: as("error"),
  };
}
