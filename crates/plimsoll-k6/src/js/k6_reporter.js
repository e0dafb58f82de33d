const native = globalThis[Symbol.for("plimsoll.native")].of("summary");

const escaped = (text) =>
  String(text).replace(/[<>&"']/g, (it) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;", "'": "&#39;" })[it]);

const mark = (isPassed) => (isPassed ? `<td class="passed">passed</td>` : `<td class="failed">failed</td>`);

const row = (cells) => `<tr>${cells.map((cell) => (cell.startsWith("<td") ? cell : `<td>${cell}</td>`)).join("")}</tr>`;

const table = (titles, rows) =>
  rows.length === 0
    ? "<p>None</p>"
    : `<table><thead><tr>${titles.map((title) => `<th>${escaped(title)}</th>`).join("")}</tr></thead><tbody>${rows.join("\n")}</tbody></table>`;

const checksOf = (group) => [
  ...group.checks.map((check) => ({ ...check, group: group.path })),
  ...group.groups.flatMap(checksOf),
];

const STYLE = `body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 2rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.3rem 0.6rem; border-bottom: 1px solid #d0d7de; }
.passed { color: #116329; } .failed { color: #a40e26; font-weight: 600; }
.tiles { display: flex; flex-wrap: wrap; gap: 1rem; } .tiles div { border: 1px solid #d0d7de; border-radius: 6px; padding: 0.6rem 1rem; }
.tiles b { display: block; font-size: 1.4rem; }`;

export function htmlReport(data, options = {}) {
  const title = escaped(options.title ?? "k6 report");
  const value = (metric, key) => data.metrics[metric]?.values?.[key] ?? 0;
  const shown = (metric, key) =>
    escaped(native.humanize(Number(metric.values[key]), key === "rate" && metric.type === "rate" ? "rate" : "", metric.contains, ""));
  const metrics = Object.entries(data.metrics).sort(([one], [other]) => (one < other ? -1 : 1));
  const thresholds = metrics.flatMap(([name, { thresholds = {} }]) =>
    Object.entries(thresholds).map(([source, { ok }]) => ({ name, source, ok })),
  );
  const checks = checksOf(data.root_group);
  const tile = (name, text) => `<div><b>${escaped(text)}</b>${escaped(name)}</div>`;
  const ofKind = (kind) => metrics.filter(([, { type }]) => type === kind);
  const stats = data.options?.summaryTrendStats ?? ["avg", "min", "med", "max", "p(90)", "p(95)"];
  return `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${STYLE}</style></head>
<body>
<h1>${title}</h1>
<div class="tiles">
${tile("requests", value("http_reqs", "count"))}
${tile("failed requests", value("http_req_failed", "passes"))}
${tile("iterations", value("iterations", "count"))}
${tile("failed checks", checks.reduce((sum, { fails }) => sum + fails, 0))}
${tile("breached thresholds", thresholds.filter(({ ok }) => !ok).length)}
</div>
<h2>Thresholds</h2>
${table(["Metric", "Threshold", "Result"], thresholds.map(({ name, source, ok }) => row([escaped(name), escaped(source), mark(ok)])))}
<h2>Checks</h2>
${table(
  ["Group", "Check", "Passes", "Fails", "Result"],
  checks.map(({ group, name, passes, fails }) =>
    row([escaped(group), escaped(name), String(passes), String(fails), mark(fails === 0)]),
  ),
)}
<h2>Trends and times</h2>
${table(
  ["Metric", ...stats],
  ofKind("trend").map(([name, metric]) => row([escaped(name), ...stats.map((stat) => (stat in metric.values ? shown(metric, stat) : ""))])),
)}
<h2>Counters</h2>
${table(["Metric", "Count", "Per second"], ofKind("counter").map(([name, metric]) => row([escaped(name), shown(metric, "count"), shown(metric, "rate")])))}
<h2>Rates</h2>
${table(
  ["Metric", "Rate", "Passes", "Fails"],
  ofKind("rate").map(([name, metric]) => row([escaped(name), shown(metric, "rate"), String(metric.values.passes), String(metric.values.fails)])),
)}
<h2>Gauges</h2>
${table(
  ["Metric", "Value", "Least", "Most"],
  ofKind("gauge").map(([name, metric]) => row([escaped(name), ...["value", "min", "max"].map((key) => shown(metric, key))])),
)}
</body>
</html>
`;
}

export default { htmlReport };
