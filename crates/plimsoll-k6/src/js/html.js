const native = globalThis[Symbol.for("plimsoll.native")];

export let parseHTML = (source) => native.use("dom").parse(source);

// As in k6/http.
export default {
  get parseHTML() {
    return parseHTML;
  },
  set parseHTML(it) {
    parseHTML = it;
  },
};
