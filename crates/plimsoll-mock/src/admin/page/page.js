"use strict";
// Everything that comes from requests and rules is put into the page as text, never as HTML.

const KEPT_ROWS = 300;
const EVERY_MS = 1000;
const TOKEN = "plimsoll-mock-token";

const state = {
  requests: [], latest: 0, dropped: 0, paused: false, filter: "", onlyUnmatched: false,
  rules: [], status: null, tried: { method: "GET", path: "/", headers: "", body: "" }, draft: null,
};

function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else if (name === "checked") node.checked = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

const byId = (id) => document.getElementById(id);

function tell(text) {
  const message = byId("message");
  message.replaceChildren(text || "");
  message.hidden = !text;
}

class Refused extends Error {
  constructor(status, document) {
    super(document.error || `answered with ${status}`);
    this.status = status;
    this.problems = document.problems || [];
  }
}

async function call(method, path, body) {
  const headers = {};
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error("The server does not answer. It may have ended.");
  }
  const text = await answer.text();
  let document = {};
  try { document = text ? JSON.parse(text) : {}; } catch { document = { error: text.trim() }; }
  if (!answer.ok) throw new Refused(answer.status, document);
  return document;
}

function shownError(error) {
  const problems = (error.problems || []).map((it) => {
    const place = it.key ? `${it.key}: ` : "";
    const hint = it.hint ? ` (${it.hint})` : "";
    return h("li", {}, `${place}${it.message}${hint}`);
  });
  return h("div", { class: "bad", role: "alert" }, error.message, problems.length ? h("ul", {}, problems) : null);
}

function view() {
  const [name, ...rest] = location.hash.slice(1).split("/");
  const known = ["requests", "rules", "try", "state"];
  return { name: known.includes(name) ? name : "requests", key: decodeURIComponent(rest.join("/")) };
}

function link(name, key) { return `#${name}${key === undefined ? "" : `/${encodeURIComponent(key)}`}`; }

// Drawn at once, when all of it is there: what comes after the next `show` has begun is of no use any more.
let latestShow = 0;
async function show() {
  const number = ++latestShow;
  const { name, key } = view();
  for (const tab of byId("tabs").children) {
    const isCurrent = tab.getAttribute("href") === `#${name}`;
    if (isCurrent) tab.setAttribute("aria-current", "page"); else tab.removeAttribute("aria-current");
  }
  try {
    const drawn = await { requests: requestsView, rules: rulesView, try: tryView, state: stateView }[name](key);
    if (number !== latestShow) return;
    byId("main").replaceChildren(...drawn);
    tell("");
  } catch (error) {
    if (number === latestShow) failed(error);
  }
}

function failed(error) {
  if (error.status === 401) askForToken(); else tell(error.message);
}

function askForToken() {
  tell("");
  const input = h("input", { class: "wide", type: "password", id: "token", autocomplete: "off" });
  byId("main").replaceChildren(h("form", {
    class: "panel",
    onsubmit: (event) => {
      event.preventDefault();
      sessionStorage.setItem(TOKEN, input.value);
      refresh();
    },
  }, h("label", { for: "token" }, "The token of [admin]"), input, h("p", {}, h("button", {}, "Go on"))));
}

// Requests

function words(by) {
  if (by === null) return ["nothing answered it", "bad"];
  if (by.rule !== undefined) return [`rule ${by.rule}`, "good"];
  if (by.collection !== undefined) return [`collection ${by.collection}`, "good"];
  if (by.openapi !== undefined) return [`the OpenAPI document ${by.openapi}`, "good"];
  if (by.file !== undefined) return [by.file === null ? "a file that is gone by now" : `file ${by.file}`, "faint"];
  if (by.preflight) return ["preflight", "faint"];
  return ["refused", "bad"];
}

function target(request) { return request.query === null ? request.path : `${request.path}?${request.query}`; }

function time(request) { return new Date(request.time).toLocaleTimeString(); }

async function requestsView(key) {
  const list = h("ul", { class: "list", id: "requests" });
  const detail = h("section", { class: "detail", id: "detail" });
  const search = h("input", {
    type: "search", placeholder: "Filter by path", "aria-label": "Filter by path", value: state.filter,
    oninput: (event) => { state.filter = event.target.value; fillRequests(list, key); },
  });
  const unmatched = h("input", {
    type: "checkbox", checked: state.onlyUnmatched,
    onchange: (event) => { state.onlyUnmatched = event.target.checked; fillRequests(list, key); },
  });
  const pause = h("button", {
    onclick: () => { state.paused = !state.paused; pause.textContent = state.paused ? "Go on" : "Pause"; },
  }, state.paused ? "Go on" : "Pause");
  const clear = h("button", {
    onclick: () => changed(() => call("DELETE", "requests"), "requests").catch(failed),
  }, "Clear");
  await poll(true);
  fillRequests(list, key);
  await fillDetail(detail, key);
  return [h("div", { class: "columns" },
    h("section", {}, h("div", { class: "bar" }, search,
      h("label", { class: "inline" }, unmatched, "Unmatched only"), pause, clear), list), detail)];
}

function fillRequests(list, key) {
  const wanted = state.requests.filter((it) => target(it).includes(state.filter)
    && (!state.onlyUnmatched || it.answered_by === null));
  if (wanted.length === 0) {
    const text = state.requests.length > 0 ? "No request is like that."
      : state.status && state.status.journal === null ? "Requests are not kept: the journal is off."
        : "No requests yet. They show up here as they come.";
    list.replaceChildren(h("li", { class: "empty" }, text));
    return;
  }
  list.replaceChildren(...wanted.map((request) => {
    const [by, kind] = words(request.answered_by);
    const isCurrent = String(request.number) === key;
    return h("li", {}, h("a", { class: "request", href: link("requests", request.number), "aria-current": isCurrent ? "true" : null },
      h("span", { class: "mono" }, request.method), h("span", { class: "path" }, target(request)),
      h("span", { class: "num" }, request.status === null ? "–" : String(request.status)),
      h("span", { class: "faint by" }, `${time(request)} · `, h("span", { class: kind }, by))));
  }));
}

function findings(conditions) {
  return h("table", {}, h("tbody", {}, conditions.map((it) => h("tr", {},
    h("td", { class: it.is_met ? "good" : "bad" }, it.is_met ? "met" : "not met"),
    h("td", {}, h("span", { class: "mono" }, it.condition), h("div", { class: "faint" }, `found ${it.found}`))))));
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

async function fillDetail(detail, key) {
  if (!key) {
    detail.replaceChildren(h("p", { class: "faint" }, "Choose a request to see why it was answered as it was."));
    return;
  }
  let request;
  try {
    ({ request } = await call("GET", `requests/${encodeURIComponent(key)}`));
  } catch (error) {
    if (error.status !== 404) throw error;
    detail.replaceChildren(h("p", { class: "faint" }, "This request is not kept any more."));
    return;
  }
  const [by, kind] = words(request.answered_by);
  const rule = request.answered_by && request.answered_by.rule;
  const why = request.conditions ? [h("h3", {}, "Why it matched"), findings(request.conditions)] : [];
  const near = (request.near_misses || []).map((miss) => [
    h("h3", {}, "Near miss: ", h("a", { href: link("rules", miss.rule) }, miss.rule)), findings(miss.conditions)]);
  const nothing = request.answered_by === null && near.length === 0
    ? [h("p", { class: "faint" }, "There is no rule that came near.")] : [];
  const body = request.body === undefined ? `${request.body_base64} (base64)` : pretty(request.body);
  const content = request.body_bytes === 0 ? []
    : [h("h3", {}, `Content, ${request.body_bytes} bytes${request.body_is_cut ? ", cut" : ""}`), h("pre", {}, body)];
  detail.replaceChildren(h("div", { class: "panel" },
    h("h2", { class: "path" }, `${request.method} ${target(request)}`),
    h("p", {}, request.status === null ? "No status" : `Status ${request.status}`, ", ",
      rule ? h("a", { href: link("rules", rule) }, by) : h("span", { class: kind }, by)),
    h("p", { class: "faint" }, `${request.time} from ${request.peer}`),
    h("div", { class: "bar" },
      h("button", { onclick: () => { state.tried = triedOf(request); location.hash = "try"; } }, "Try it"),
      h("button", { onclick: () => { state.draft = ruleFor(request); location.hash = "rules/"; } }, "Make a rule of it")),
    why, near, nothing, h("h3", {}, "Header"),
    h("table", {}, h("tbody", {}, request.headers.map(([name, value]) => h("tr", {}, h("th", {}, name), h("td", {}, value))))),
    content));
}

function triedOf(request) {
  return {
    method: request.method, path: target(request), body: request.body || "",
    headers: request.headers.map(([name, value]) => `${name}: ${value}`).join("\n"),
  };
}

function ruleFor(request) {
  return {
    when: { request: { url_path: request.path, method: request.method } },
    respond: { status: 200, text: "hello" },
  };
}

// Rules

// As people write them: what it is called, what it asks, what it answers.
function ordered(rule) {
  const { id, when, respond, ...rest } = rule;
  return { ...(id === undefined ? {} : { id }), when, respond, ...rest };
}

async function rulesView(key) {
  const { rules, count } = await call("GET", "rules");
  state.rules = rules;
  const items = rules.map((rule) => h("li", {}, h("a", {
    class: "rule", href: link("rules", rule.key), "aria-current": rule.key === key ? "true" : null,
  }, h("span", { class: "mono" }, rule.key, rule.origin === "file" ? "" : h("span", { class: "faint" }, ` ${rule.origin}`)),
  h("span", { class: "num faint" }, rule.hits === 1 ? "1 hit" : `${rule.hits} hits`),
  h("span", { class: "what" }, rule.conditions.join(" and ")),
  h("span", { class: "what" }, rule.replies.join("; then ")))));
  const list = items.length > 0 ? h("ul", { class: "list", id: "rules" }, items)
    : h("p", { class: "empty" }, "There are no rules: files and collections answer.");
  const rest = count > rules.length ? h("p", { class: "faint" }, `and ${count - rules.length} more`) : null;
  return [h("div", { class: "columns" },
    h("section", {}, h("div", { class: "bar" },
      h("button", { onclick: () => { state.draft = null; location.hash = "rules/"; if (!key) show(); } }, "New rule"),
      h("button", { onclick: () => changed(() => call("POST", "rules/reset"), "rules").catch(failed) },
        "As in the files")), list, rest),
    h("section", { class: "detail" }, editor(rules.find((rule) => rule.key === key), key)))];
}

function editor(rule, key) {
  if (key && !rule) return h("p", { class: "faint" }, "There is no such rule any more.");
  const usual = { when: { request: { url_path: "/hello" } }, respond: { text: "hello" } };
  const source = rule ? rule.rule : state.draft || usual;
  const text = h("textarea", {
    class: "rule-text", id: "rule", spellcheck: "false", value: source === null ? "" : JSON.stringify(ordered(source), null, 2),
  });
  const result = h("div", { id: "result" });
  const save = async () => {
    let json;
    try { json = JSON.parse(text.value); } catch (error) {
      result.replaceChildren(shownError(new Error(`This is no JSON: ${error.message}`)));
      return;
    }
    try {
      if (rule) {
        const isShown = await changed(() => call("PUT", `rules/${encodeURIComponent(rule.key)}`, json));
        if (isShown) byId("result").replaceChildren(h("p", { class: "good" }, "It answers now."));
      } else {
        const here = location.hash;
        const { added } = await call("POST", "rules", json);
        state.draft = null;
        if (location.hash === here) location.hash = link("rules", added[0]);
      }
    } catch (error) { result.replaceChildren(shownError(error)); }
  };
  const remove = async () => {
    try { await changed(() => call("DELETE", `rules/${encodeURIComponent(rule.key)}`), "rules"); } catch (error) {
      result.replaceChildren(shownError(error));
    }
  };
  const note = source === null ? h("p", { class: "faint" }, "This rule comes from no file of rules; what is saved replaces it.") : null;
  return h("div", { class: "panel" }, h("h2", { class: "path" }, rule ? rule.key : "New rule"),
    rule && rule.file ? h("p", { class: "faint path" }, rule.file) : null, note,
    h("label", { for: "rule" }, "The rule in JSON, with the keys that files of rules have"), text,
    h("div", { class: "bar" }, h("button", { id: "save", onclick: save }, rule ? "Save" : "Add"),
      rule ? h("button", { onclick: remove }, "Remove") : null),
    h("p", { class: "faint" }, "Changes last until they are undone, or the server ends. Files stay as they are."), result);
}

// Try

function tryView() {
  const tried = state.tried;
  const field = (name, label, node) => {
    node.id = name;
    node.value = tried[name];
    node.addEventListener("input", () => { tried[name] = node.value; });
    return [h("label", { for: name }, label), node];
  };
  const result = h("div", { id: "result" }, h("p", { class: "faint" }, "Nothing is sent: rules are asked what they would do."));
  const run = async (event) => {
    event.preventDefault();
    const headers = {};
    for (const line of tried.headers.split("\n")) {
      const at = line.indexOf(":");
      if (at > 0) headers[line.slice(0, at).trim()] = line.slice(at + 1).trim();
    }
    try {
      result.replaceChildren(verdict(await call("POST", "match", { method: tried.method, path: tried.path, headers, body: tried.body })));
    } catch (error) { result.replaceChildren(shownError(error)); }
  };
  return [h("div", { class: "columns" },
    h("form", { onsubmit: run },
      field("method", "Method", h("input", { class: "mono" })),
      field("path", "Path and query", h("input", { class: "mono wide" })),
      field("headers", "Header, one field a line", h("textarea", { spellcheck: "false" })),
      field("body", "Content", h("textarea", { spellcheck: "false" })),
      h("p", {}, h("button", { id: "ask" }, "What answers?"))),
    h("section", {}, result))];
}

function verdict(said) {
  const answer = said.answer;
  const rule = answer && answer.rule ? said.sets[answer.set - 1].rules[answer.rule - 1] : null;
  const text = answer === null ? h("span", { class: "bad" }, "nothing: 404")
    : rule ? h("span", { class: "good" }, `${rule.name}: ${rule.reply}`)
      : h("span", { class: "good" }, answer.openapi ? `the OpenAPI document ${answer.openapi}` : answer.collection ? `the collection ${answer.collection}` : `the file ${answer.file}`);
  const shown = (it) => h("tr", {}, h("td", { class: it.matches ? "good" : "bad" }, it.matches ? "matches" : "no"),
    h("td", {}, h("span", { class: "mono" }, it.name), h("div", { class: "faint" }, it.reply),
      it.unmet.map((unmet) => h("div", {}, h("span", { class: "mono" }, unmet.condition), `: found ${unmet.found}`))));
  const sets = said.sets.map((set) => [h("h3", { class: "path" }, set.file),
    set.covers ? h("table", {}, h("tbody", {}, set.rules.map(shown))) : h("p", { class: "faint" }, `answers ${set.prefix} only`)]);
  return h("div", { class: "panel" }, h("h2", { class: "path" }, said.request), h("p", {}, "Answered by ", text), sets);
}

// State

async function stateView() {
  const [{ scenarios }, { collections }] = await Promise.all([call("GET", "scenarios"), call("GET", "collections")]);
  const put = (name, body) => changed(() => call("PUT", `scenarios/${encodeURIComponent(name)}`, body)).catch(failed);
  const choice = (scenario, now, client) => h("select", {
    "aria-label": `State of ${scenario.name}`,
    onchange: (event) => put(scenario.name, client === undefined ? { state: event.target.value } : { state: event.target.value, client }),
  }, scenario.states.map((it) => h("option", { selected: it === now }, it)));
  const rows = scenarios.flatMap((scenario) => scenario.state !== null
    ? [h("tr", {}, h("td", {}, scenario.name), h("td", {}, choice(scenario, scenario.state)))]
    : [h("tr", {}, h("td", {}, scenario.name), h("td", { class: "faint" }, `by ${scenario.session}; begins in Started`)),
      ...scenario.clients.map(({ client, state }) => h("tr", {}, h("td", { class: "mono" }, client), h("td", {}, choice(scenario, state, client))))]);
  const reset = (path) => () => changed(() => call("POST", path)).catch(failed);
  return [
    h("h2", {}, "Scenarios"),
    rows.length > 0 ? h("table", { id: "scenarios" }, h("tbody", {}, rows)) : h("p", { class: "faint" }, "No rule has a scenario."),
    h("h2", {}, "Collections"),
    collections.length > 0 ? h("table", {}, h("tbody", {}, collections.map((it) => h("tr", {}, h("td", { class: "mono" }, it.path),
      h("td", {}, it.objects === 1 ? "1 object" : `${it.objects} objects`))))) : h("p", { class: "faint" }, "There are none."),
    h("h2", {}, "Begin anew"),
    h("div", { class: "bar" }, h("button", { onclick: reset("scenarios/reset") }, "Scenarios"),
      h("button", { onclick: reset("collections/reset") }, "Collections"),
      h("button", { onclick: reset("reset") }, "Everything")),
    h("p", { class: "faint" }, "Everything: requests, rules, scenarios and collections as when the server started."),
  ];
}

// What comes by itself

async function poll(isFirst) {
  if (state.status && state.status.journal === null) return false;
  const { requests, dropped } = await call("GET", `requests?limit=${KEPT_ROWS}&since=${isFirst ? 0 : pendingSince()}`);
  state.dropped = dropped;
  const known = isFirst ? [] : state.requests.filter((it) => !requests.some((other) => other.number === it.number));
  const merged = [...requests, ...known].slice(0, KEPT_ROWS);
  const isNew = JSON.stringify(merged) !== JSON.stringify(state.requests);
  state.requests = merged;
  state.latest = merged.length > 0 ? merged[0].number : state.latest;
  return isNew;
}

// Answers that were still on their way are asked for again.
function pendingSince() {
  const pending = state.requests.filter((it) => it.status === null).map((it) => it.number);
  return Math.max(0, Math.min(state.latest, ...pending.map((number) => number - 1)));
}

function showStatus() {
  const { status } = state;
  const what = status.files.length > 0 ? status.files[0] : status.folder || "";
  const kept = status.journal === null ? "requests are not kept"
    : `${status.journal.requests} requests kept${status.journal.dropped > 0 ? `, ${status.journal.dropped} dropped` : ""}`;
  byId("status").textContent = `${what} · ${status.rules === 1 ? "1 rule" : `${status.rules} rules`} · ${kept}`;
}

async function refresh() {
  try {
    state.status = await call("GET", "status");
    showStatus();
  } catch (error) {
    failed(error);
    return;
  }
  await show();
}

// Does a change, and shows what it led to, at `then` if the place changes: unless the reader went on meanwhile.
async function changed(change, then) {
  const here = location.hash;
  await change();
  if (location.hash !== here) return false;
  // Without an event of its own: what follows draws the new place.
  if (then !== undefined) history.replaceState(null, "", link(then));
  const there = location.hash;
  await refresh();
  return location.hash === there;
}

async function tick() {
  if (document.hidden || state.paused || byId("token")) return;
  try {
    state.status = await call("GET", "status");
    showStatus();
    tell("");
    const { name, key } = view();
    const isNew = name === "requests" && await poll(false);
    const list = byId("requests");
    if (isNew && list) fillRequests(list, key);
  } catch (error) {
    failed(error);
  }
}

window.addEventListener("hashchange", show);
refresh().finally(() => setInterval(tick, EVERY_MS));
