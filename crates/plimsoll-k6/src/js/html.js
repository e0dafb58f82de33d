const native = globalThis[Symbol.for("plimsoll.native")];

export const parseHTML = (source) => native.use("dom").parse(source);

// Scripts test what a value is by these.
export const Selection = { [Symbol.hasInstance]: (value) => value instanceof native.use("dom").Selection };
export const Element = { [Symbol.hasInstance]: (value) => value instanceof native.use("dom").Element };

export default { parseHTML, Selection, Element };
