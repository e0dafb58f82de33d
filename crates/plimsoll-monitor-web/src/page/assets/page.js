(() => {
  "use strict";
  const base = document.body.dataset.base, lang = document.documentElement.lang;

  /* Times in the reader's zone, in the form of the dates that the server writes: "en" alone is that of the United States. */
  const form = lang === "en" ? "en-GB" : lang;
  const full = new Intl.DateTimeFormat(form, { dateStyle: "medium", timeStyle: "short" });
  const clock = new Intl.DateTimeFormat(form, { timeStyle: "short" });
  const times = (root) => {
    for (const time of root.querySelectorAll("time")) {
      const date = new Date(time.dateTime);
      time.title = time.textContent;
      const from = time.dataset.from && new Date(time.dataset.from).toDateString();
      // Below the heading of a day, which is one of the page's zone.
      const onDay = time.dataset.day && time.dataset.day === [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
      time.textContent = (onDay || from === date.toDateString() ? clock : full).format(date);
    }
  };

  /* Days of a strip, by pointer and by arrow keys. */
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const day = new Intl.DateTimeFormat(form, { dateStyle: "long", timeZone: "UTC" });
  const words = (strip, index) => {
    const days = document.getElementById("days");
    const cell = strip.children[index];
    const date = new Date(Date.parse(days.dataset.until) - (strip.children.length - 1 - index) * 864e5);
    return [day.format(date), cell.dataset.t || days.dataset.up];
  };
  const hide = (strip) => {
    tip.hidden = true;
    for (const cell of strip.querySelectorAll(".here")) cell.classList.remove("here");
  };
  const show = (strip, index) => {
    hide(strip);
    const cell = strip.children[index];
    const [date, text] = words(strip, index);
    const bold = document.createElement("b");
    bold.textContent = date;
    tip.replaceChildren(bold, text);
    tip.hidden = false;
    cell.classList.add("here");
    const box = cell.getBoundingClientRect(), width = tip.offsetWidth;
    const left = Math.min(Math.max(8, box.left + box.width / 2 - width / 2), document.documentElement.clientWidth - width - 8);
    tip.style.left = left + scrollX + "px";
    tip.style.top = box.bottom + scrollY + 8 + "px";
    strip.setAttribute("aria-valuenow", index + 1);
    strip.setAttribute("aria-valuetext", date + ": " + text);
  };
  const strips = (root) => {
    for (const strip of root.querySelectorAll(".strip")) {
      const count = strip.children.length;
      if (!count) continue;
      const seen = () => [...strip.children].findIndex((cell) => cell.offsetWidth > 0);
      let at = count - 1;
      strip.tabIndex = 0;
      strip.setAttribute("role", "slider");
      strip.setAttribute("aria-readonly", "true");
      strip.setAttribute("aria-valuemin", "1");
      strip.setAttribute("aria-valuemax", count);
      strip.setAttribute("aria-valuenow", count);
      strip.setAttribute("aria-valuetext", words(strip, at).join(": "));
      for (const cell of strip.children) {
        if (cell.title) cell.dataset.t = cell.title;
        cell.removeAttribute("title");
      }
      const point = (event) => {
        const index = [...strip.children].indexOf(event.target);
        if (index >= 0) show(strip, (at = index));
      };
      strip.addEventListener("pointermove", point);
      strip.addEventListener("pointerdown", point);
      strip.addEventListener("pointerleave", () => hide(strip));
      strip.addEventListener("blur", () => hide(strip));
      strip.addEventListener("focus", () => strip.matches(":focus-visible") && show(strip, at));
      strip.addEventListener("keydown", (event) => {
        const first = seen();
        const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageDown: at - 7, PageUp: at + 7, Home: first, End: count - 1 }[event.key];
        if (event.key === "Escape") hide(strip);
        if (to === undefined) return;
        event.preventDefault();
        show(strip, (at = Math.min(Math.max(to, first), count - 1)));
      });
    }
  };

  /* A menu closes on Escape and on a click elsewhere. */
  const drop = document.querySelector(".drop");
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && drop && drop.open) {
      drop.open = false;
      drop.querySelector("summary").focus();
    }
  });
  addEventListener("click", (event) => {
    if (drop && drop.open && !drop.contains(event.target)) drop.open = false;
  });

  /* The content is replaced when it changes. */
  const refresh = async () => {
    if (document.hidden) {
      document.addEventListener("visibilitychange", refresh, { once: true });
      return;
    }
    const response = await fetch(location.href, { cache: "no-cache" }).catch(() => null);
    if (!response || !response.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    const main = fresh.querySelector("main"), old = document.querySelector("main");
    if (!main || main.innerHTML === source) return;
    source = main.innerHTML;
    const key = document.activeElement && document.activeElement.dataset.key;
    for (const group of old.querySelectorAll("details.group:not([open])")) {
      const same = main.querySelector("#" + group.id);
      if (same) same.open = false;
    }
    tip.hidden = true;
    times(main);
    old.replaceWith(document.adoptNode(main));
    strips(main);
    if (key) main.querySelector(`.strip[data-key="${CSS.escape(key)}"]`)?.focus();
    document.title = fresh.title;
    const icon = (from) => from.querySelector("link[rel=icon]");
    icon(document).href = icon(fresh).getAttribute("href");
  };
  let source = document.querySelector("main").innerHTML;
  times(document.querySelector("main"));
  strips(document);
  if ("live" in document.body.dataset) {
    let timer;
    const soon = () => {
      clearTimeout(timer);
      timer = setTimeout(refresh, 200 + Math.random() * 1500);
    };
    const events = new EventSource(base + "/events");
    events.addEventListener("change", soon);
    // A page of the browser's cache may be older than the last change, and so may one whose connection was lost.
    let missed = performance.getEntriesByType("navigation")[0]?.transferSize === 0;
    events.addEventListener("open", () => {
      if (missed) soon();
      missed = true;
    });
    setInterval(refresh, 60000);
  }
})();
