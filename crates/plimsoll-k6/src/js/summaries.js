// What the versions of jslib k6-summary export.

const native = globalThis[Symbol.for("plimsoll.native")].of("summary");

const escaped = (text) => String(text).replace(/[&<>'"]/g, (it) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&quot;" })[it]);

const textSummary = (version) => (data, options) => {
  const look = { indent: " ", enableColors: true, ...data.options, ...options };
  return native.textSummary(JSON.stringify(data), JSON.stringify(look), version !== "0.0.1");
};

const humanizeValue = (value, metric, timeUnit) => native.humanize(Number(value), metric.type ?? "", metric.contains ?? "", timeUnit ?? "");

// The figure that version 0.0.3 names for each kind of metric.
const FIGURES = { counter: ["count", "count"], gauge: ["value", "value"], rate: ["number of fails", "fails"], trend: ["mean value", "med"] };

// The element of a threshold that failed, by version.
const failure = {
  "0.0.1": (title) => `<testcase name="${title}"><failure message="failed" /></testcase>`,
  "0.0.3": (title, { type, values }) => `<testcase name="${title}"><failure message="failed, ${FIGURES[type][0]}: ${values[FIGURES[type][1]]}"/></testcase>`,
  "0.0.4": (title, metric) => `<testcase name="${title}"><failure message="${reason(metric)}"/></testcase>"`,
  "0.1.0": (title, metric, className) => `<testcase name="${title}" classname="${className}"><failure message="${escaped(reason(metric))}" /></testcase>`,
};

const reason = ({ type, values }) =>
  `${type} threshold failed: ${Object.entries(values)
    .map(([figure, value]) => `${figure} value: ${value}`)
    .join(", ")}`;

// The document around the elements, by version.
const document = {
  "0.0.1": (counts, name, cases) => `<?xml version="1.0"?>\n<testsuites ${counts}>\n<testsuite name="${name}" ${counts}>${cases.join("\n")}\n</testsuite >\n</testsuites >`,
  "0.0.4": (counts, name, cases) => spaced(6, counts, name, cases),
  "0.1.0": (counts, name, cases) => spaced(4, counts, name, cases),
};

const spaced = (indent, counts, name, cases) => {
  const at = (depth) => `\n${" ".repeat(indent + 2 * depth)}`;
  const suite = `${at(1)}<testsuite name="${name}" ${counts}>${at(2)}${cases.join("\n")}${at(1)}</testsuite>`;
  return `<?xml version="1.0"?>${at(0)}<testsuites ${counts}>${suite}${at(0)}</testsuites>`;
};

// The last of some versions that is not behind `version`.
const until = (all, version) => all[Object.keys(all).findLast((it) => it <= version) ?? "0.0.1"];

const jUnit = (version) => (data, options) => {
  const name = escaped(options?.name || "k6 thresholds");
  const className = escaped(options?.classname || "Unnamed folder");
  const cases = [];
  let failures = 0;
  for (const [metricName, metric] of Object.entries(data.metrics)) {
    for (const [source, { ok }] of Object.entries(metric.thresholds ?? {})) {
      const title = `${escaped(metricName)} - ${escaped(source)}`;
      if (!ok) failures++;
      if (!ok) cases.push(until(failure, version)(title, metric, className));
      else cases.push(version < "0.1.0" ? `<testcase name="${title}" />` : `<testcase name="${title}" classname="${className}" />`);
    }
  }
  return until(document, version)(`tests="${cases.length}" failures="${failures}"`, name, cases);
};

export default (version) => ({ textSummary: textSummary(version), jUnit: jUnit(version), humanizeValue });
