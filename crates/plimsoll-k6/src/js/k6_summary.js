const native = globalThis[Symbol.for("plimsoll.native")].of("summary");

export function textSummary(data, options) {
  return native.textSummary(JSON.stringify(data), options?.enableColors === true, options?.indent ?? "");
}

const escaped = (text) =>
  String(text).replace(/[<>&"']/g, (it) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;", "'": "&apos;" })[it]);

export function jUnit(data, options) {
  const name = escaped(options?.name ?? "k6 thresholds");
  const className = escaped(options?.classname ?? "Unnamed folder");
  const cases = [];
  let failures = 0;
  for (const [metric, { thresholds }] of Object.entries(data.metrics)) {
    for (const [source, { ok }] of Object.entries(thresholds ?? {})) {
      const title = escaped(`${metric} - ${source}`);
      if (!ok) failures++;
      cases.push(
        ok
          ? `<testcase name="${title}" classname="${className}" />`
          : `<testcase name="${title}" classname="${className}"><failure message="failed" /></testcase>`,
      );
    }
  }
  return `<?xml version="1.0"?>
<testsuites tests="${cases.length}" failures="${failures}">
<testsuite name="${name}" tests="${cases.length}" failures="${failures}">
${cases.join("\n")}
</testsuite>
</testsuites>`;
}

export function humanizeValue(value, metric, timeUnit) {
  return native.humanize(Number(value), metric.type ?? "", metric.contains ?? "", timeUnit ?? "");
}

export default { textSummary, jUnit, humanizeValue };
