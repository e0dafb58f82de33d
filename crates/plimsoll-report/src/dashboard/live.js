// Replaces the content of the page by what the server sends; the last event ends the stream.
"use strict";
const live = document.getElementById("live");
const lost = document.getElementById("lost");
const events = new EventSource("events");
const show = (event) => {
  live.innerHTML = JSON.parse(event.data);
  lost.hidden = true;
};
events.addEventListener("message", show);
events.addEventListener("end", (event) => {
  show(event);
  events.close();
});
events.addEventListener("error", () => {
  lost.hidden = false;
});
