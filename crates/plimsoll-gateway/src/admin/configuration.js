// Changes of upstreams and routes: each is shown as a dry run first, and made only if the configuration is still that one.

const configuration = document.getElementById("configuration");
const dialog = document.getElementById("change");
const fields = document.getElementById("fields");
const outcome = document.getElementById("outcome");
const apply = document.getElementById("apply");
const review = document.getElementById("review");

// The change that the dialog is about, and the version that its dry run was made of.
let wanted = null;
let version = null;

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function button(text, label, action) {
  const made = element("button", { type: "button", textContent: text });
  if (label) made.setAttribute("aria-label", label);
  made.addEventListener("click", action);
  return made;
}

async function read(path) {
  const response = await send_to(`config/${path}`);
  if (!response.ok) throw new Error(`/config/${path}: ${response.status}`);
  return response.json();
}

async function load() {
  const [changes, upstreams, routes] = await Promise.all(["changes", "upstreams", "routes"].map(read));
  configuration.hidden = changes.kept === "off";
  if (configuration.hidden) return;
  document.getElementById("kept").textContent =
    changes.kept === "file" ? "Changes are kept across restarts." : "Changes end with the process.";
  show_upstreams(upstreams);
  show_routes(routes);
  show_changes(changes.changes);
}

function row(...cells) {
  return element("tr", {}, ...cells.map(([className, label, ...children]) => {
    const cell = element("td", { className }, ...children);
    if (label) cell.dataset.label = label;
    return cell;
  }));
}

function table(names, rows) {
  const head = element("thead", {}, element("tr", {}, ...names.map((textContent) => element("th", { textContent }))));
  return element("table", {}, head, element("tbody", {}, ...rows));
}

function show_upstreams(upstreams) {
  const shown = Object.entries(upstreams).map(([name, upstream]) => {
    const path = `upstreams/${encodeURIComponent(name)}/servers`;
    const servers = [upstream.servers ?? []].flat().map((server) => {
      const { url, weight } = typeof server === "string" ? { url: server } : server;
      const of_server = `${path}?${new URLSearchParams({ server: url })}`;
      const change = () => ask(`Change ${url}`, "PUT", of_server, server_fields(server), server_body);
      const remove = () => ask(`Remove ${url} from ${name}`, "DELETE", of_server, [], null);
      return row(
        ["name", "", url],
        ["", "weight", String(weight ?? 1)],
        ["act", "", element("span", { className: "control" },
          button("Change", `change ${url}`, change), button("Remove", `remove ${url}`, remove))],
      );
    });
    const add = () => ask(`Add a server to ${name}`, "POST", path, server_fields("http://"), server_body);
    const head = element("div", { className: "top" }, element("h3", { textContent: name }));
    // Another source lists the servers of the others.
    if ("servers" in upstream) head.append(element("span", { className: "control" }, button("Add server", `add a server to ${name}`, add)));
    const content = servers.length ? table(["server", "weight", ""], servers) : element("p", { className: "faint", textContent: "Its servers are listed elsewhere." });
    return element("div", {}, head, content);
  });
  document.getElementById("upstreams").replaceChildren(...shown);
}

function show_routes(routes) {
  const rows = routes.map((route, index) => {
    const name = route.name ?? String(index + 1);
    const path = `routes/${encodeURIComponent(name)}`;
    const edit = () => ask(`Change route ${name}`, "PUT", path, [text_field(JSON.stringify(route, null, 2))], text_body);
    const remove = () => ask(`Remove route ${name}`, "DELETE", path, [], null);
    return row(
      ["name", "", name],
      ["text wide", "", JSON.stringify(route)],
      ["act", "", element("span", { className: "control" },
        button("Edit", `edit route ${name}`, edit), button("Remove", `remove route ${name}`, remove))],
    );
  });
  const add = () => ask("Add a route", "POST", "routes", [text_field('prefix = "/new"\nproxy = ""'), place_field(routes)], text_body);
  document.getElementById("routes").replaceChildren(
    element("div", { className: "top" }, element("h3", { textContent: "Routes" }),
      element("span", { className: "control" }, button("Add route", "", add))),
    rows.length ? table(["route", "", ""], rows) : "",
  );
}

function show_changes(changes) {
  const drop = () => ask("Drop all changes", "DELETE", "changes", [], null);
  const shown = changes.map(({ change, value }) => element("li", { textContent: value ? `${change}: ${value}` : change }));
  document.getElementById("changes").replaceChildren(...(shown.length ? [
    element("div", { className: "top" }, element("h3", { textContent: "Changes since the file" }),
      element("span", { className: "control" }, button("Drop all", "drop all changes", drop))),
    element("ul", { className: "lines" }, ...shown),
  ] : []));
}

function labelled(text, control) {
  return element("label", {}, element("span", { textContent: text }), control);
}

function server_fields(server) {
  const { url, weight, ...rest } = typeof server === "string" ? { url: server } : server;
  const address = element("input", { name: "url", type: "text", required: true, value: url });
  const share = element("input", { name: "weight", type: "number", min: 0, max: 1000, required: true, value: weight ?? 1 });
  address.dataset.rest = JSON.stringify(rest);
  return [labelled("URL", address), labelled("weight, 0 drains it", share)];
}

function server_body(form) {
  const rest = JSON.parse(form.elements.url.dataset.rest);
  const weight = form.elements.weight.valueAsNumber;
  const url = form.elements.url.value.trim();
  const is_plain = weight === 1 && Object.keys(rest).length === 0;
  return [JSON.stringify(is_plain ? url : { url, weight, ...rest }), "application/json"];
}

function text_field(value) {
  const text = element("textarea", { name: "text", rows: 14, required: true, spellcheck: false });
  text.value = value;
  return labelled("as JSON, or as TOML without its header", text);
}

function place_field(routes) {
  const select = element("select", { name: "place" });
  select.append(new Option("behind all others", ""));
  routes.forEach((route, index) => {
    const name = route.name ?? String(index + 1);
    select.append(new Option(`before ${name}`, name));
  });
  return labelled("place", select);
}

function text_body(form) {
  const text = form.elements.text.value.trim();
  return [text, text.startsWith("{") ? "application/json" : "application/toml"];
}

// Opens the dialog; a change without fields is reviewed at once.
function ask(title, method, path, content, body) {
  wanted = { method, path, body };
  document.getElementById("title").textContent = title;
  fields.replaceChildren(...content);
  review.hidden = content.length === 0;
  outcome.replaceChildren();
  apply.disabled = true;
  dialog.showModal();
  if (content.length === 0) send(true);
}

async function send(is_dry_run) {
  const form = dialog.querySelector("form");
  if (!form.reportValidity()) return;
  const [body, kind] = wanted.body ? wanted.body(form) : [undefined, undefined];
  const query = new URLSearchParams();
  const before = form.elements.place?.value;
  if (before) query.set("before", before);
  if (is_dry_run) query.set("dry_run", "");
  const headers = {};
  if (kind) headers["Content-Type"] = kind;
  if (!is_dry_run && version) headers["If-Match"] = version;
  const mark = wanted.path.includes("?") ? "&" : "?";
  apply.disabled = true;
  let response, found;
  try {
    response = await send_to(`config/${wanted.path}${mark}${query}`, { method: wanted.method, headers, body });
    found = await response.json();
  } catch {
    show_lines([["bad", "The server does not respond."]]);
    return;
  }
  if (!response.ok) {
    const errors = found.errors ?? [{ message: `The server responded with ${response.status}.` }];
    show_lines(errors.map(({ path, message, hint }) => ["bad", [path, message].filter(Boolean).join(": ") + (hint ? ` (${hint})` : "")]));
    return;
  }
  if (!is_dry_run) {
    dialog.close();
    refresh();
    return;
  }
  version = response.headers.get("etag");
  apply.disabled = found.changes.length === 0;
  show_lines(found.changes.length ? found.changes.map(line) : [["faint", "Nothing would be different."]]);
}

function line({ path, before, after }) {
  if (before === undefined) return ["good", `+ ${path}: ${after}`];
  if (after === undefined) return ["bad", `- ${path}: ${before}`];
  return ["", `~ ${path}: ${before} → ${after}`];
}

function show_lines(lines) {
  outcome.replaceChildren(...lines.map(([className, textContent]) => element("li", { className, textContent })));
}

function refresh() {
  load().then(() => show(""), () => show("The configuration cannot be read."));
}

dialog.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter === apply) send(false);
  else send(true);
});
document.getElementById("cancel").addEventListener("click", () => dialog.close());
// What was reviewed is not what is there any more.
fields.addEventListener("input", () => { apply.disabled = true; outcome.replaceChildren(); });
// Others may have changed something meanwhile.
addEventListener("focus", refresh);
refresh();
