import http from "k6/http";

// k6 has keys in any order.
const sorted = (key, value) =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value;

export default function () {
  const response = http.get(`${__ENV.BASE}/json`);
  for (const path of ["name", "n", "list.0.id", "list.1.tag", "list.#", "list.#.id", 'list.#(tag=="b").id', "list.#(id>0)#.tag", "a\\.b.c", "na*", "none", "none.x", "list.9", "empty", "text", "list"]) {
    console.log(path, JSON.stringify(response.json(path), sorted));
  }
  const all = response.json();
  console.log(JSON.stringify(all, Object.keys(all).sort()));
  const page = http.get(`${__ENV.BASE}/page`);
  try {
    page.json();
    console.log("no exception");
  } catch (error) {
    console.log("exception");
  }
  console.log(page.json("a"));
}
