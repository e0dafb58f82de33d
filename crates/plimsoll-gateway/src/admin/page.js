"use strict";
// The server renders the page; the script keeps it current, sends weights and empties caches.

document.documentElement.classList.add("js");
const main = document.getElementById("main");
const live = document.getElementById("live");
const message = document.getElementById("message");

// Sends a request to another path of the admin port.
function send_to(path, { method = "GET", headers = {}, body } = {}) {
  // Without the user and password that the page may have been opened with: a request must not have them in its URL.
  const url = new URL(`../${path}`, location.origin + location.pathname);
  // A client that accepts HTML is challenged for a password, which the browser knows, and not for a token.
  return fetch(url, { method, headers: { Accept: "application/json, text/html;q=0.1", ...headers }, body });
}

function show(text) {
  message.textContent = text;
  message.hidden = !text;
}

// Changes only what differs, so that focus, selection and text that is being entered stay.
function update(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeName !== to.nodeName) {
    from.replaceWith(to.cloneNode(true));
    return;
  }
  if (from.nodeType === Node.TEXT_NODE) {
    from.data = to.data;
    return;
  }
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) === value) continue;
    from.setAttribute(name, value);
    if (name === "value" && from !== document.activeElement) from.value = value;
  }
  const old = [...from.childNodes];
  const fresh = [...to.childNodes];
  fresh.forEach((child, index) => {
    if (index < old.length) update(old[index], child);
    else from.append(child.cloneNode(true));
  });
  old.slice(fresh.length).forEach((child) => child.remove());
}

const events = new EventSource("events");
events.onopen = () => { live.textContent = "live"; };
events.onerror = () => { live.textContent = "not live: waiting for the server"; };
events.onmessage = (event) => {
  const fresh = new DOMParser().parseFromString(event.data, "text/html");
  const wanted = main.cloneNode(false);
  wanted.append(...fresh.body.childNodes);
  update(main, wanted);
};
addEventListener("pagehide", () => events.close());

async function change(method, path) {
  try {
    const answer = await send_to(path, { method });
    show(answer.ok ? "" : (await answer.text()).trim() || `The server responded with ${answer.status}.`);
  } catch {
    show("The server does not respond.");
  }
}

function setWeight(control, weight) {
  const { upstream, server } = control.dataset;
  const query = new URLSearchParams({ server, weight });
  change("PUT", `upstreams/${encodeURIComponent(upstream)}?${query}`);
}

function empty(route) {
  change("DELETE", `caches?${new URLSearchParams({ url: "*", route })}`);
}

main.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.weight) setWeight(button.closest(".control"), button.dataset.weight);
  if (button?.dataset.empty) empty(button.dataset.empty);
});
main.addEventListener("change", (event) => {
  const input = event.target.closest("input");
  if (input && input.reportValidity()) setWeight(input.closest(".control"), input.value);
});
