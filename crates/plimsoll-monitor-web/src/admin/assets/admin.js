// What the pages gain with a script: filters as one types, shortcuts, questions before deleting, local times.
// Everything works without it.
"use strict";

const rows = () => [...document.querySelectorAll("table.list tbody tr")];

// Filters as one types; the server does the search, since it has more lines than the page.
function filters() {
  const form = document.querySelector("form[data-filter]");
  if (!form) return;
  let timer;
  let request;
  const update = async () => {
    clearTimeout(timer);
    request?.abort();
    request = new AbortController();
    const { signal } = request;
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    const address = `${form.getAttribute("action")}?${query}`.replace(/\?$/, "");
    try {
      const response = await fetch(address, { signal });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = page.getElementById(form.dataset.filter);
      // Without a list it is another page, such as that of the sign-in.
      if (!response.ok || !fresh) return location.assign(address);
      document.getElementById(form.dataset.filter).replaceWith(document.adoptNode(fresh));
      history.replaceState(null, "", address);
      selection();
      confirmations();
    } catch {
      // A newer request has taken its place, or the server is away: the next change tries again.
    }
  };
  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(update, event.target instanceof HTMLSelectElement ? 0 : 200);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    update();
  });
}

function selection() {
  const all = document.querySelector("[data-all]");
  all?.addEventListener("change", () => {
    for (const row of rows()) {
      const box = row.querySelector("input[name=key]");
      if (box) box.checked = all.checked;
    }
  });
}

function confirmations() {
  for (const button of document.querySelectorAll("[data-confirm]:not([data-asks])")) {
    button.dataset.asks = "";
    button.addEventListener("click", (event) => {
      if (!confirm(button.dataset.confirm)) event.preventDefault();
    });
  }
}

function times() {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  // Plans have no seconds, and an end on the day of its begin no date.
  const minute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
  for (const time of document.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    time.title = time.textContent;
    const { short, from } = time.dataset;
    const isOnDay = from && new Date(from).toDateString() === date.toDateString();
    time.textContent = (isOnDay ? clock : short === undefined ? format : minute).format(date);
  }
}

function hints() {
  const kind = document.querySelector("#kind");
  const target = document.querySelector("#target");
  if (!kind || !target) return;
  const about = document.querySelector("#target-hint");
  const usual = about.textContent;
  const apply = () => {
    const hint = kind.selectedOptions[0]?.dataset.hint ?? "";
    target.placeholder = hint;
    // A field may be too narrow for words.
    about.textContent = hint.includes(" ") ? hint : usual;
  };
  kind.addEventListener("change", apply);
  apply();
}

// Of the fields for a begin, only those of the chosen repetition; times are those of the reader's zone, unless another one was typed.
function begins() {
  const when = document.querySelector("#when");
  const apply = () => {
    for (const field of document.querySelectorAll("[data-when]")) {
      field.hidden = !field.dataset.when.split(" ").includes(when.value);
    }
  };
  if (when) {
    when.addEventListener("change", apply);
    apply();
  }
  for (const zone of document.querySelectorAll("[data-local-zone]")) {
    if (!zone.value && !zone.form.querySelector("[aria-invalid]")) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
  }
}

// A chosen file becomes a data: URL in a field beside it, since forms of these pages are not multipart.
function files() {
  for (const input of document.querySelectorAll("input[data-into]")) {
    input.hidden = false;
    input.addEventListener("change", () => {
      const [file] = input.files;
      const isLong = file?.size > Number(input.dataset.most);
      input.setCustomValidity(isLong ? "This file is too long." : "");
      if (!file || !input.reportValidity()) return;
      const reader = new FileReader();
      reader.addEventListener("load", () => {
        const field = document.getElementById(input.dataset.into);
        field.value = reader.result;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      });
      reader.readAsDataURL(file);
    });
  }
}

// Keeps the preview of a form up to date; without a script, its button does.
function preview() {
  const form = document.querySelector("form[data-previewed]");
  if (!form) return;
  const button = form.querySelector("button[value=preview]");
  button.hidden = true;
  let timer;
  let request;
  const update = async () => {
    request?.abort();
    request = new AbortController();
    const { signal } = request;
    const body = new URLSearchParams(new FormData(form));
    body.set("action", "preview");
    try {
      // Its buttons are named "action", which hides the property of that name.
      const response = await fetch(form.getAttribute("action"), { method: "POST", body, signal });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = page.getElementById(form.dataset.previewed);
      // While a value is invalid, the last preview stays.
      if (response.ok && fresh) document.getElementById(form.dataset.previewed).replaceWith(document.adoptNode(fresh));
    } catch {
      // A newer request has taken its place, or the server is away: the next change tries again.
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, 300);
  });
}

// The slug of a new page follows its title until somebody types one.
function slugs() {
  const title = document.querySelector("#title");
  const slug = document.querySelector("#slug");
  if (!title || !slug || slug.value) return;
  let isOwn = false;
  slug.addEventListener("input", () => { isOwn = slug.value !== ""; });
  title.addEventListener("input", () => {
    if (isOwn) return;
    const plain = title.value.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
    slug.value = plain.replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60);
  });
}

// Narrows a list to the items that have what is typed; Enter opens the first of them.
function narrow() {
  const field = document.querySelector("input[data-narrows]");
  if (!field) return;
  const items = [...document.getElementById(field.dataset.narrows).children];
  const none = document.getElementById(`${field.dataset.narrows}-none`);
  field.parentElement.hidden = false;
  field.addEventListener("input", () => {
    const typed = field.value.trim().toLowerCase();
    const has = (node) => node.textContent.toLowerCase().includes(typed);
    // Names first: the texts are for those who do not know the name.
    const isNamed = items.some((item) => has(item.querySelector("a")));
    for (const item of items) item.hidden = !has(isNamed ? item.querySelector("a") : item);
    none.hidden = items.some((item) => !item.hidden);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !field.value.trim()) return;
    items.find((item) => !item.hidden)?.querySelector("a").click();
  });
}

function menu() {
  const menu = document.querySelector("details.menu");
  if (!menu) return;
  const narrow = matchMedia("(max-width: 760px)");
  if (narrow.matches) menu.open = false;
  // A wide window has no button to open it.
  narrow.addEventListener("change", () => { menu.open = !narrow.matches; });
}

function shortcuts() {
  const dialog = document.querySelector("#shortcuts");
  if (!dialog) return;
  const open = () => dialog.showModal();
  const button = document.querySelector("[data-help]");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", open);
  }
  let isGoing = false;
  let at = -1;
  const move = (step) => {
    const list = rows();
    if (!list.length) return;
    list[at]?.classList.remove("here");
    at = Math.max(0, Math.min(list.length - 1, at + step));
    list[at].classList.add("here");
    list[at].querySelector("a")?.focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (event.target instanceof Element && event.target.matches("input:not([type=checkbox]), textarea, select")) return;
    if (isGoing) {
      isGoing = false;
      const link = [...dialog.querySelectorAll("[data-go]")].find((one) => one.dataset.go === event.key);
      if (link) location.assign(link.href);
      return;
    }
    switch (event.key) {
      case "?": open(); break;
      case "g": isGoing = true; break;
      case "j": move(1); break;
      case "k": move(-1); break;
      case "x": {
        const box = rows()[at]?.querySelector("input[name=key]");
        if (box) box.checked = !box.checked;
        break;
      }
      case "/": {
        const search = document.querySelector("#q");
        if (!search) return;
        search.focus();
        break;
      }
      default: return;
    }
    event.preventDefault();
  });
}

// The overview keeps itself up to date; the link that has the focus keeps it.
function live() {
  if (!document.querySelector("[data-live]")) return;
  const update = async () => {
    if (document.hidden) return;
    try {
      const response = await fetch(location.pathname, { cache: "no-store" });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = page.querySelector("[data-live]");
      // Without it the session is over, or the last monitor gone: the page stays until it is loaded again.
      if (!fresh) return;
      const old = document.querySelector("[data-live]");
      const here = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      old.replaceWith(document.adoptNode(fresh));
      if (here) fresh.querySelector(`a[href="${CSS.escape(here)}"]`)?.focus();
      times();
    } catch {
      // The server is away: the next update tries again.
    }
  };
  setInterval(update, 15000);
}

// A wall keeps itself up to date, and says when it cannot.
function wall() {
  if (!document.querySelector("#wall")) return;
  const lost = document.querySelector("#lost");
  const update = async () => {
    try {
      const response = await fetch(location.href, { cache: "no-store" });
      // The session is over.
      if (response.redirected) return location.reload();
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = page.querySelector("#wall");
      if (!fresh) throw new Error(response.statusText);
      const key = document.activeElement?.dataset.key;
      document.querySelector("#wall").replaceWith(document.adoptNode(fresh));
      if (key) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
      document.title = page.title;
      times();
      lost.hidden = true;
    } catch {
      lost.hidden = false;
    }
  };
  setInterval(update, 5000);
}

for (const part of [filters, selection, confirmations, times, hints, begins, files, preview, slugs, narrow, menu, shortcuts, live, wall]) part();
