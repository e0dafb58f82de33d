// Trees of pages, selectors and selections: k6/html, Response.html().

const native = globalThis[Symbol.for("plimsoll.native")].of("html");

const ELEMENT = 1;
const TEXT = 3;
const COMMENT = 8;
const DOCUMENT = 9;
const DOCTYPE = 10;

class Node {
  constructor(kind, name, attributes, parent) {
    this.kind = kind;
    this.name = name; // of an element, or the text
    this.attributes = attributes;
    this.parent = parent;
    this.children = [];
  }
  attribute(name) {
    return this.attributes && Object.hasOwn(this.attributes, name) ? this.attributes[name] : undefined;
  }
  get elements() {
    return this.children.filter((it) => it.kind === ELEMENT);
  }
  get text() {
    if (this.kind === TEXT) return this.name;
    return this.children.map((it) => it.text).join("");
  }
  *descendants() {
    for (const child of this.children) {
      if (child.kind !== ELEMENT) continue;
      yield child;
      yield* child.descendants();
    }
  }
  get siblings() {
    return this.parent ? this.parent.elements : [this];
  }
}

const treeOf = (source) => {
  const flat = native.parseHtml(source);
  const nodes = [];
  for (let at = 0; at < flat.length; at += 4) {
    const parent = at === 0 ? null : nodes[flat[at]];
    const node = new Node(flat[at + 1], flat[at + 2], flat[at + 3], parent);
    nodes.push(node);
    parent?.children.push(node);
  }
  return nodes[0];
};

const VOID = new Set("area base br col embed frame hr img input keygen link meta source track wbr".split(" "));
const RAW = new Set("iframe noembed noframes noscript plaintext script style xmp".split(" "));
const escaped = (text, isAttribute) =>
  text.replace(/[&<>"'\r]/g, (it) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;", "\r": "&#13;" })[it]);

const outer = (node) => {
  if (node.kind === TEXT) return RAW.has(node.parent?.name) ? node.name : escaped(node.name);
  if (node.kind === COMMENT) return `<!--${node.name}-->`;
  if (node.kind === DOCTYPE) return `<!DOCTYPE ${node.name}>`;
  if (node.kind === DOCUMENT) return inner(node);
  const attributes = Object.entries(node.attributes).map(([key, value]) => ` ${key}="${escaped(value)}"`);
  const start = `<${node.name}${attributes.join("")}`;
  return VOID.has(node.name) ? `${start}/>` : `${start}>${inner(node)}</${node.name}>`;
};
const inner = (node) => node.children.map(outer).join("");

// Selectors: functions from a node to whether it matches.

const compiled = new Map();

const matcher = (selector) => {
  let made = compiled.get(selector);
  if (!made) {
    if (typeof selector !== "string") native.fail(`a selector must be a string, not ${typeof selector}`);
    made = new Parser(selector).all();
    compiled.set(selector, made);
  }
  return made;
};

const position = (nodes, node, a, b) => {
  const at = nodes.indexOf(node) + 1;
  return a === 0 ? at === b : (at - b) % a === 0 && (at - b) / a >= 0;
};
const ofType = (node) => node.siblings.filter((it) => it.name === node.name);
const FIELDS = ["input", "select", "textarea", "button"];
const PSEUDO = {
  "first-child": (node) => node.siblings[0] === node,
  "last-child": (node) => node.siblings.at(-1) === node,
  "only-child": (node) => node.siblings.length === 1,
  "first-of-type": (node) => ofType(node)[0] === node,
  "last-of-type": (node) => ofType(node).at(-1) === node,
  "only-of-type": (node) => ofType(node).length === 1,
  empty: (node) => !node.children.some((it) => it.kind === ELEMENT || it.kind === TEXT),
  root: (node) => node.parent?.kind === DOCUMENT,
  input: (node) => FIELDS.includes(node.name),
  link: (node) => ["a", "area", "link"].includes(node.name) && node.attribute("href") !== undefined,
  checked: (node) =>
    node.name === "option" ? node.attribute("selected") !== undefined : node.name === "input" && node.attribute("checked") !== undefined,
  disabled: (node) => [...FIELDS, "option", "optgroup", "fieldset"].includes(node.name) && node.attribute("disabled") !== undefined,
  enabled: (node) => [...FIELDS, "option", "optgroup", "fieldset"].includes(node.name) && node.attribute("disabled") === undefined,
};
const NTH = {
  "nth-child": (node) => node.siblings,
  "nth-last-child": (node) => node.siblings.toReversed(),
  "nth-of-type": ofType,
  "nth-last-of-type": (node) => ofType(node).toReversed(),
};
const ATTRIBUTE = {
  "=": (is, value) => is === value,
  "!=": (is, value) => is !== value,
  "~=": (is, value) => value !== "" && is.split(/\s+/).includes(value),
  "|=": (is, value) => is === value || is.startsWith(`${value}-`),
  "^=": (is, value) => value !== "" && is.startsWith(value),
  "$=": (is, value) => value !== "" && is.endsWith(value),
  "*=": (is, value) => value !== "" && is.includes(value),
};

class Parser {
  #text;
  #at = 0;
  constructor(text) {
    this.#text = text;
  }
  #fail(expected) {
    throw new SyntaxError(`selector ${JSON.stringify(this.#text)}: expected ${expected} at character ${this.#at + 1}`);
  }
  #take(pattern) {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (!found) return undefined;
    this.#at = pattern.lastIndex;
    return found;
  }
  #space() {
    return this.#take(/\s+/y) !== undefined;
  }
  #name() {
    const found = this.#take(/(?:[-\w\u0080-\uffff]|\\[0-9a-fA-F]{1,6}\s?|\\[^0-9a-fA-F\n])+/y);
    if (!found) this.#fail("a name");
    return found[0].replace(/\\(?:([0-9a-fA-F]{1,6})\s?|(.))/g, (_, code, other) => (code ? String.fromCodePoint(parseInt(code, 16)) : other));
  }
  #value() {
    const quoted = this.#take(/"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/y);
    return quoted ? (quoted[1] ?? quoted[2]).replace(/\\(.)/g, "$1") : this.#name();
  }
  all() {
    const made = this.#group();
    if (this.#at < this.#text.length) this.#fail("a combinator or the end");
    return made;
  }
  #group() {
    const all = [];
    do {
      this.#space();
      all.push(this.#complex());
      this.#space();
    } while (this.#take(/,/y));
    return all.length === 1 ? all[0] : (node) => all.some((one) => one(node));
  }
  #complex() {
    let left = this.#compound();
    for (;;) {
      const hasSpace = this.#space();
      const found = this.#take(/[>+~]/y)?.[0];
      if (!found && (!hasSpace || this.#at === this.#text.length || ",)".includes(this.#text[this.#at]))) return left;
      this.#space();
      left = Parser.#combined(left, found ?? " ", this.#compound());
    }
  }
  static #combined(left, combinator, right) {
    return (node) => {
      if (!right(node)) return false;
      if (combinator === ">") return node.parent?.kind === ELEMENT && left(node.parent);
      if (combinator === " ") {
        for (let above = node.parent; above?.kind === ELEMENT; above = above.parent) if (left(above)) return true;
        return false;
      }
      const before = node.siblings.slice(0, node.siblings.indexOf(node));
      return combinator === "+" ? before.length > 0 && left(before.at(-1)) : before.some(left);
    };
  }
  #compound() {
    const all = [];
    const start = this.#at;
    if (!this.#take(/\*/y) && /[-\w\\\u0080-\uffff]/.test(this.#text[this.#at] ?? "")) {
      const name = this.#name().toLowerCase();
      all.push((node) => node.name === name);
    }
    for (;;) {
      if (this.#take(/#/y)) {
        const id = this.#name();
        all.push((node) => node.attribute("id") === id);
      } else if (this.#take(/\./y)) {
        const name = this.#name();
        all.push((node) => (node.attribute("class") ?? "").split(/\s+/).includes(name));
      } else if (this.#take(/\[\s*/y)) all.push(this.#attribute());
      else if (this.#take(/:/y)) all.push(this.#pseudo());
      else break;
    }
    if (this.#at === start) this.#fail("a selector");
    return (node) => node.kind === ELEMENT && all.every((one) => one(node));
  }
  #attribute() {
    const name = this.#name().toLowerCase();
    const operator = this.#take(/\s*([!~|^$*]?=)\s*/y)?.[1];
    if (!operator) {
      if (!this.#take(/\s*\]/y)) this.#fail("`]`");
      return (node) => node.attribute(name) !== undefined;
    }
    const value = this.#value();
    const ignoresCase = this.#take(/\s+[iI]/y) !== undefined;
    if (!this.#take(/\s*\]/y)) this.#fail("`]`");
    const folded = (text) => (ignoresCase ? text.toLowerCase() : text);
    return (node) => {
      const is = node.attribute(name);
      return is === undefined ? operator === "!=" : ATTRIBUTE[operator](folded(is), folded(value));
    };
  }
  #argument(rule) {
    if (!this.#take(/\(\s*/y)) this.#fail("`(`");
    const made = rule();
    if (!this.#take(/\s*\)/y)) this.#fail("`)`");
    return made;
  }
  #pseudo() {
    const start = this.#at;
    const name = this.#name().toLowerCase();
    if (Object.hasOwn(PSEUDO, name)) return PSEUDO[name];
    if (Object.hasOwn(NTH, name)) {
      const [a, b] = this.#argument(() => this.#steps());
      return (node) => position(NTH[name](node), node, a, b);
    }
    if (name === "not" || name === "is" || name === "matches" || name === "where") {
      const of = this.#argument(() => this.#group());
      return name === "not" ? (node) => !of(node) : of;
    }
    if (name === "has" || name === "haschild") {
      const of = this.#argument(() => this.#group());
      return name === "has" ? (node) => [...node.descendants()].some(of) : (node) => node.elements.some(of);
    }
    if (name === "contains" || name === "containsown") {
      const text = this.#argument(() => this.#value()).toLowerCase();
      const own = (node) => node.children.filter((it) => it.kind === TEXT).map((it) => it.name).join("");
      return (node) => (name === "contains" ? node.text : own(node)).toLowerCase().includes(text);
    }
    this.#at = start;
    return this.#fail("a pseudo-class that is supported");
  }
  #steps() {
    const word = this.#take(/odd|even/iy)?.[0].toLowerCase();
    if (word) return [2, word === "odd" ? 1 : 0];
    const steps = this.#take(/([+-]?\d*)n(?:\s*([+-])\s*(\d+))?/iy);
    if (steps) {
      const a = /^[+-]?$/.test(steps[1]) ? Number(`${steps[1]}1`) : Number(steps[1]);
      return [a, steps[3] ? Number(`${steps[2]}${steps[3]}`) : 0];
    }
    const number = this.#take(/[+-]?\d+/y);
    if (!number) this.#fail("a position such as 2n+1");
    return [0, Number(number[0])];
  }
}

// Selections.

const unique = (nodes) => [...new Set(nodes)];
const camel = (name) => name.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
const dashed = (name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
const dataOf = (text) => {
  if (text === "" || text === "null" || text === "undefined") return undefined;
  if (text === "true" || text === "false") return text === "true";
  if (text[0] === "{" || text[0] === "[") {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return String(Number(text)) === text && Number.isFinite(Number(text)) ? Number(text) : text;
};
const optionValue = (option) => (option ? (option.attribute("value") ?? inner(option)) : "");
const valueOf = (node) => {
  switch (node?.name) {
    case "input":
      return node.attribute("value") ?? (["radio", "checkbox"].includes(node.attribute("type")) ? "on" : "");
    case "button":
      return node.attribute("value") ?? "";
    case "textarea":
      return inner(node);
    case "option":
      return optionValue(node);
    case "select": {
      const selected = [...node.descendants()].filter((it) => it.name === "option" && it.attribute("selected") !== undefined);
      return node.attribute("multiple") === undefined ? optionValue(selected[0]) : selected.map(optionValue);
    }
    default:
      return undefined;
  }
};
const siblingsFrom = (node, step) => {
  const all = node.siblings;
  const at = all.indexOf(node);
  return step > 0 ? all.slice(at + 1) : all.slice(0, at).reverse();
};
const parentsOf = (node) => {
  const found = [];
  for (let above = node.parent; above?.kind === ELEMENT; above = above.parent) found.push(above);
  return found;
};

export class Selection {
  #nodes;
  #previous;
  constructor(nodes, previous, address) {
    this.#nodes = nodes;
    this.#previous = previous;
    this.url = address ?? previous?.url ?? "";
  }
  static nodesOf(selection) {
    return selection.#nodes;
  }
  #made(nodes) {
    return new Selection(unique(nodes), this);
  }
  // A selector, selection, element or function as a function of node and index.
  #condition(given, method) {
    if (typeof given === "string") return matcher(given);
    if (given instanceof Selection) return (node) => given.#nodes.includes(node);
    if (given instanceof Element) return (node) => Element.nodeOf(given) === node;
    if (typeof given === "function") return (node, index) => Boolean(given(index, this.#made([node])));
    native.fail(`the argument of ${method}() must be a selector, a selection, an element or a function`);
  }
  #related(rule, selector, method) {
    const found = unique(this.#nodes.flatMap(rule));
    return this.#made(selector === undefined ? found : found.filter(this.#condition(selector, method)));
  }
  #until(rule, until, filter, method) {
    const ends = until === undefined ? () => false : this.#condition(until, method);
    const upTo = (node) => {
      const all = rule(node);
      const end = all.findIndex((it) => ends(it));
      return end < 0 ? all : all.slice(0, end);
    };
    return this.#related(upTo, filter, method);
  }
  #root() {
    let root = this.#nodes[0];
    while (root?.parent) root = root.parent;
    return root;
  }

  add(given) {
    if (typeof given !== "string") {
      const more = given instanceof Selection ? given.#nodes : given instanceof Element ? [Element.nodeOf(given)] : undefined;
      if (!more) native.fail("the argument of add() must be a selector, a selection or an element");
      return this.#made([...this.#nodes, ...more]);
    }
    const root = this.#root();
    return this.#made([...this.#nodes, ...(root ? [...root.descendants()].filter(matcher(given)) : [])]);
  }
  attr(name, otherwise) {
    return this.#nodes[0]?.attribute(String(name).toLowerCase()) ?? otherwise;
  }
  children(selector) {
    return this.#related((node) => node.elements, selector, "children");
  }
  closest(given) {
    const matches = this.#condition(given, "closest");
    return this.#made(this.#nodes.map((node) => [node, ...parentsOf(node)].find((it) => matches(it))).filter(Boolean));
  }
  contents() {
    return this.#made(this.#nodes.flatMap((node) => node.children));
  }
  data(name) {
    const node = this.#nodes[0];
    if (!node?.attributes || Object.keys(node.attributes).length === 0) return undefined;
    if (name !== undefined) {
      const text = node.attribute(`data-${dashed(String(name))}`);
      return text === undefined ? undefined : dataOf(text);
    }
    const all = Object.entries(node.attributes).filter(([key]) => key.startsWith("data-") && key.length > 5);
    return Object.fromEntries(all.map(([key, value]) => [camel(key.slice(5)), dataOf(value)]));
  }
  each(callback) {
    if (typeof callback !== "function") native.fail("the argument of each() must be a function");
    this.#nodes.forEach((node, index) => callback(index, new Element(node, this)));
    return this;
  }
  end() {
    return this.#previous ?? new Selection([], undefined, this.url);
  }
  eq(index) {
    const found = this.#nodes.at(index);
    return this.#made(found ? [found] : []);
  }
  filter(given) {
    return this.#made(this.#nodes.filter(this.#condition(given, "filter")));
  }
  find(given) {
    const matches = this.#condition(given, "find");
    return this.#made(this.#nodes.flatMap((node) => [...node.descendants()].filter((it) => matches(it))));
  }
  single(selector) {
    const matches = this.#condition(selector, "single");
    for (const node of this.#nodes) for (const it of node.descendants()) if (matches(it)) return this.#made([it]);
    return this.#made([]);
  }
  first() {
    return this.eq(0);
  }
  last() {
    return this.eq(-1);
  }
  get(index) {
    if (index === undefined) return this.#nodes.map((node) => new Element(node, this));
    const node = this.#nodes.at(index);
    return node && new Element(node, this);
  }
  has(given) {
    const matches = this.#condition(given, "has");
    return this.#made(this.#nodes.filter((node) => [...node.descendants()].some((it) => matches(it))));
  }
  html() {
    return this.#nodes.length === 0 ? undefined : inner(this.#nodes[0]);
  }
  index(given) {
    const node = this.#nodes[0];
    if (given === undefined) return node ? node.siblings.indexOf(node) : -1;
    if (typeof given === "string") return node ? [...this.#root().descendants()].filter(matcher(given)).indexOf(node) : -1;
    const of = given instanceof Selection ? given.#nodes[0] : given instanceof Element ? Element.nodeOf(given) : undefined;
    return this.#nodes.indexOf(of);
  }
  is(given) {
    return this.#nodes.some(this.#condition(given, "is"));
  }
  map(callback) {
    if (typeof callback !== "function") native.fail("the argument of map() must be a function");
    return this.#nodes.map((node, index) => callback(index, this.#made([node])));
  }
  next(selector) {
    return this.#related((node) => siblingsFrom(node, 1).slice(0, 1), selector, "next");
  }
  nextAll(selector) {
    return this.#related((node) => siblingsFrom(node, 1), selector, "nextAll");
  }
  nextUntil(until, filter) {
    return this.#until((node) => siblingsFrom(node, 1), until, filter, "nextUntil");
  }
  prev(selector) {
    return this.#related((node) => siblingsFrom(node, -1).slice(0, 1), selector, "prev");
  }
  prevAll(selector) {
    return this.#related((node) => siblingsFrom(node, -1), selector, "prevAll");
  }
  prevUntil(until, filter) {
    return this.#until((node) => siblingsFrom(node, -1), until, filter, "prevUntil");
  }
  parent(selector) {
    return this.#related((node) => parentsOf(node).slice(0, 1), selector, "parent");
  }
  parents(selector) {
    return this.#related(parentsOf, selector, "parents");
  }
  parentsUntil(until, filter) {
    return this.#until(parentsOf, until, filter, "parentsUntil");
  }
  siblings(selector) {
    return this.#related((node) => node.siblings.filter((it) => it !== node), selector, "siblings");
  }
  not(given) {
    const matches = this.#condition(given, "not");
    return this.#made(this.#nodes.filter((node, index) => !matches(node, index)));
  }
  size() {
    return this.#nodes.length;
  }
  slice(start, end) {
    return this.#made(this.#nodes.slice(start, end));
  }
  text() {
    return this.#nodes.map((node) => node.text).join("");
  }
  toArray() {
    return this.#nodes.map((node) => this.#made([node]));
  }
  val() {
    return valueOf(this.#nodes[0]);
  }
  serializeArray() {
    const fields = "input,select,textarea,keygen";
    const all = this.is("form") ? this.find(fields) : this.filter(fields);
    const sent = all.#nodes.filter((node) => {
      const type = node.attribute("type") ?? "";
      return (
        node.attribute("name") &&
        node.attribute("disabled") === undefined &&
        !["submit", "button", "reset", "image", "file"].includes(type) &&
        (node.attribute("checked") !== undefined || !["checkbox", "radio"].includes(type))
      );
    });
    return sent.map((node) => ({ name: node.attribute("name"), value: valueOf(node) }));
  }
  serializeObject() {
    return Object.fromEntries(this.serializeArray().map(({ name, value }) => [name, value]));
  }
  serialize() {
    const pairs = Object.entries(this.serializeObject()).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    const all = pairs.flatMap(([name, value]) => [value ?? ""].flat().flatMap((one) => [name, String(one)]));
    return native.of("http").formEncode(all);
  }
}

// Elements: one node, by the names of the DOM as functions.

export class Element {
  #node;
  #selection;
  constructor(node, selection) {
    this.#node = node;
    this.#selection = selection;
    const accessors = ACCESSORS[node.name];
    const one = { it: (other) => this.#wrap(other), all: (others) => this.#all(others) };
    if (accessors) Object.assign(this, accessors(node, this, one));
  }
  static nodeOf(element) {
    return element.#node;
  }
  #wrap(node) {
    return node ? new Element(node, this.#selection) : undefined;
  }
  #all(nodes) {
    return nodes.map((node) => this.#wrap(node));
  }
  selection() {
    return new Selection([this.#node], undefined, this.#selection.url);
  }
  nodeName() {
    return { [TEXT]: "#text", [COMMENT]: "#comment", [DOCUMENT]: "#document" }[this.#node.kind] ?? this.#node.name;
  }
  nodeType() {
    return String(this.#node.kind);
  }
  nodeValue() {
    return [TEXT, COMMENT].includes(this.#node.kind) ? this.#node.name : undefined;
  }
  textContent() {
    return this.#node.text;
  }
  innerHTML() {
    return inner(this.#node);
  }
  toString() {
    return outer(this.#node);
  }
  id() {
    return this.#node.attribute("id") ?? "";
  }
  className() {
    return this.#node.attribute("class");
  }
  classList() {
    return (this.#node.attribute("class") ?? "").split(/\s+/).filter(Boolean);
  }
  lang() {
    return this.#node.attribute("lang");
  }
  getAttribute(name) {
    return this.#node.attribute(String(name).toLowerCase());
  }
  hasAttribute(name) {
    return this.getAttribute(name) !== undefined;
  }
  hasAttributes() {
    return Object.keys(this.#node.attributes ?? {}).length > 0;
  }
  getAttributeNode(name) {
    return this.attributes()[String(name).toLowerCase()];
  }
  attributes() {
    const made = {};
    for (const [name, value] of Object.entries(this.#node.attributes ?? {})) {
      const constants = { prefix: () => "", namespaceURI: () => "", localName: () => name };
      made[name] = { name, value, ownerElement: this, ...constants };
    }
    return made;
  }
  hasChildNodes() {
    return this.#node.children.length > 0;
  }
  childNodes() {
    return this.#all(this.#node.children);
  }
  children() {
    return this.#all(this.#node.elements);
  }
  childElementCount() {
    return this.#node.elements.length;
  }
  firstChild() {
    return this.#wrap(this.#node.children[0]);
  }
  lastChild() {
    return this.#wrap(this.#node.children.at(-1));
  }
  firstElementChild() {
    return this.#wrap(this.#node.elements[0]);
  }
  lastElementChild() {
    return this.#wrap(this.#node.elements.at(-1));
  }
  #sibling(step, nodes) {
    return this.#wrap(nodes[nodes.indexOf(this.#node) + step]);
  }
  previousSibling() {
    return this.#sibling(-1, this.#node.parent?.children ?? []);
  }
  nextSibling() {
    return this.#sibling(1, this.#node.parent?.children ?? []);
  }
  previousElementSibling() {
    return this.#wrap(siblingsFrom(this.#node, -1)[0]);
  }
  nextElementSibling() {
    return this.#wrap(siblingsFrom(this.#node, 1)[0]);
  }
  parentNode() {
    return this.#wrap(this.#node.parent);
  }
  parentElement() {
    return this.#node.parent?.kind === ELEMENT ? this.#wrap(this.#node.parent) : undefined;
  }
  ownerDocument() {
    let root = this.#node;
    while (root.parent) root = root.parent;
    return this.#wrap(root);
  }
  namespaceURI() {
    return "";
  }
  isDefaultNamespace() {
    return true;
  }
  isSameNode(other) {
    return other instanceof Element && other.#node === this.#node;
  }
  isEqualNode(other) {
    return other instanceof Element && outer(other.#node) === outer(this.#node);
  }
  contains(other) {
    for (let at = other?.#node; at; at = at.parent) if (at === this.#node) return true;
    return false;
  }
  matches(selector) {
    return matcher(selector)(this.#node);
  }
  querySelector(selector) {
    return this.querySelectorAll(selector)[0];
  }
  querySelectorAll(selector) {
    return this.#all([...this.#node.descendants()].filter(matcher(selector)));
  }
  getElementsByClassName(name) {
    return this.#all([...this.#node.descendants()].filter((it) => (it.attribute("class") ?? "").split(/\s+/).includes(name)));
  }
  getElementsByTagName(name) {
    return this.#all([...this.#node.descendants()].filter((it) => name === "*" || it.name === name.toLowerCase()));
  }
}

// Attributes as functions: `name`, `name:attribute`, `?flag`, `#number=default`, `@URL`, and `name{a,b,c}` for one of these values,
// the last one by default (`?` for none at all). The names, defaults and gaps are k6's.
const WORD = /^([?#@]?)(\w+)(?::([\w-]+))?(?:=(-?\d+))?(?:\{(.*)\})?$/;

const reflected = (words) => {
  const made = words.split(" ").filter(Boolean).map((word) => {
    const [, kind, name, attribute = name.toLowerCase(), number = "0", choices] = WORD.exec(word);
    return { kind, name, attribute, number: Number(number), choices: choices?.split(",") };
  });
  return (node, element) => {
    const functions = {};
    for (const { kind, name, attribute, number, choices } of made) {
      functions[name] = () => {
        const text = node.attribute(attribute);
        if (choices) return choices.includes(text) && text !== "?" ? text : choices.at(-1) === "?" ? undefined : choices.at(-1);
        if (kind === "?") return text !== undefined;
        if (kind === "#") return /^[+-]?\d+$/.test(text) ? Number(text) : number;
        return kind === "@" && text !== undefined ? resolved(text, element) : (text ?? "");
      };
    }
    return functions;
  };
};

const resolved = (text, element) => {
  try {
    return native.of("url").parseUrl(text, element.selection().url || undefined)[0];
  } catch {
    return text;
  }
};

const ENCTYPES = "{multipart/form-data,text/plain,application/x-www-form-urlencoded}";
const REFERRER = "referrerPolicy{no-referrer,no-referrer-when-downgrade,origin,origin-when-cross-origin,unsafe-url,}";
const CROSS_ORIGIN = "crossOrigin{anonymous,use-credentials,?}";
const LINK = `@href target download rel hrefLang type accessKey ${REFERRER}`;
const MEDIA = `@src ?controls ?autoplay ?loop ?muted preload{metadata,none,auto} ${CROSS_ORIGIN} mediaGroup currentSrc:src ?defaultMuted:muted`;
const CELL = "#colSpan=1 #rowSpan=1 headers";
const INPUTS =
  "button,checkbox,color,date,datetime-local,email,file,hidden,image,month,number,password,radio,range,reset,search,submit,tel,time,url,week,text";
const WORDS = {
  a: LINK,
  area: LINK,
  audio: MEDIA,
  base: "@href target",
  blockquote: "@cite",
  button: "name accessKey ?disabled ?autofocus #tabIndex type{button,menu,reset,submit}",
  canvas: "#width=150 #height=150",
  data: "value",
  del: "cite datetime",
  embed: "height width @src type",
  fieldset: "name ?disabled",
  form: `name @action enctype${ENCTYPES} encoding:enctype${ENCTYPES} target ?noValidate autocomplete{off,on} acceptCharset:accept-charset`,
  iframe: `name @src width height ?allowfullscreen ${REFERRER}`,
  img: `@src @currentSrc:src alt srcset sizes #width #height useMap ?isMap ${CROSS_ORIGIN} name ${REFERRER}`,
  input: `name accessKey ?disabled ?autofocus value type{${INPUTS}} ?required ?checked ?defaultChecked:checked defaultValue:value placeholder ?readonly ?multiple pattern min max step accept alt @src width height dirName autocomplete{off,on} #maxLength=-1 #size #tabIndex`,
  ins: "cite datetime",
  keygen: "?autofocus challenge ?disabled keytype{DSA,EC,RSA} name",
  label: "htmlFor:for",
  legend: "accessKey",
  li: "#value type{1,a,A,i,I,disc,square,circle,}",
  link: `@href rel type media hreflang target ${CROSS_ORIGIN} ${REFERRER}`,
  map: "name",
  meta: "name content httpEquiv:http-equiv{default-style,refresh,content-type}",
  meter: "#min #max #high #low #optimum",
  object: "@data type name useMap width height ?typeMustMatch #tabIndex",
  ol: "?reversed #start type{a,A,i,I,1}",
  optgroup: "?disabled label",
  option: "?selected ?defaultSelected:selected",
  output: "htmlFor:for name",
  param: "name value",
  pre: "name value",
  script: `@src type charset ?async ?defer ?noModule crossOrigin`,
  select: "name ?disabled ?multiple ?required ?autofocus #tabIndex",
  source: "@src type srcset sizes media keySystem",
  style: "media",
  table: "?sortable",
  td: CELL,
  textarea:
    "value defaultValue:value accessKey #tabIndex ?readOnly ?required placeholder #cols #rows wrap{hard,off,soft} #maxLength autocomplete{off,on} autocapitalize{none,off,characters,words,sentences}",
  th: `${CELL} abbr scope{row,col,colgroup,rowgroup,} ?sorted`,
  time: "datetime",
  track: "@src kind{captions,descriptions,chapters,metadata,subtitle} label srclang ?default",
  ul: "type",
  video: MEDIA,
};

const URL_PARTS = "href origin protocol username password host hostname port pathname search hash".split(" ");

// One part of the URL of a link. A relative one without a page has no origin, and its path is what it says.
const partOf = (node, element, part) => {
  const href = node.attribute("href");
  if (href === undefined) return part === "protocol" ? ":" : "";
  const read = (base) => native.of("url").parseUrl(href, base)[URL_PARTS.indexOf(part)];
  try {
    const text = read(element.selection().url || undefined);
    return part === "protocol" ? text.slice(0, -1) : text;
  } catch {
    if (part === "protocol") return ":";
    if (!["pathname", "search", "hash"].includes(part)) return "";
  }
  try {
    const text = read("http://localhost/");
    return part === "pathname" && !href.startsWith("/") ? text.slice(1) : text;
  } catch {
    return "";
  }
};

const words = (text) => (text === undefined || text === "" ? [] : text.split(" "));
const listOf = (name) => name.split(",").map((it) => it.trim());
const closest = (node, names) => [node, ...parentsOf(node)].find((it) => listOf(names).includes(it.name));
const above = (node, names) => parentsOf(node).find((it) => listOf(names).includes(it.name));
const within = (node, names) => [...(node?.descendants() ?? [])].filter((it) => listOf(names).includes(it.name));
const rootOf = (node) => parentsOf(node).at(-1) ?? node;
const byId = (node, id) => [...rootOf(node).descendants()].find((it) => it.attribute("id") === id);
const valueOrHtml = (node) => node.attribute("value") ?? inner(node);
const ownerForm = (node) => {
  const id = node.attribute("form");
  return closest(node, "form") ?? (id ? byId(node, id) : undefined);
};

const link = (node, element) => ({
  text: () => node.text,
  relList: () => words(node.attribute("rel")),
  ...Object.fromEntries(URL_PARTS.slice(1).map((part) => [part, () => partOf(node, element, part)])),
});

// What buttons and inputs override of their form.
const submitted = (node, element) => {
  const own = (name) => node.attribute(`form${name}`) ?? ownerForm(node)?.attribute(name);
  return {
    formAction: () => {
      const page = element.selection().url;
      const action = own("action") ?? "";
      return page ? (action === "" ? page : resolved(action, element)) : action;
    },
    formEnctype: () => (["multipart/form-data", "text/plain"].includes(own("enctype")) ? own("enctype") : "application/x-www-form-urlencoded"),
    formMethod: () => ((own("method") ?? "").toLowerCase() === "post" ? "post" : "get"),
    formNoValidate: () => own("novalidate") !== undefined,
    formTarget: () => own("target") ?? "",
  };
};

const media = (node, element, one) => ({ textTracks: () => one.all(within(node, "track")) });
const rows = (node, element, one) => ({ rows: () => one.all(within(node, "tr")) });
const cell = (node) => ({
  cellIndex: () => (above(node, "tr") ? within(above(node, "tr"), "th,td").indexOf(node) : -1),
});

// What is more than an attribute. `one` makes elements: `it(node)`, `all(nodes)`.
const MORE = {
  a: link,
  area: link,
  audio: media,
  video: media,
  button: (node, element) => ({ ...submitted(node, element), value: () => valueOrHtml(node) }),
  datalist: (node, element, one) => ({ options: () => one.all(within(node, "option")) }),
  fieldset: (node, element, one) => ({
    type: () => "fieldset",
    elements: () => one.all(within(node, "input,select,button,textarea")),
    validity: () => undefined,
  }),
  form: (node, element, one) => {
    const elements = () => within(node, "input,select,button,textarea,fieldset");
    return {
      elements: () => one.all(elements()),
      length: () => elements().length,
      method: () => (node.attribute("method") === "post" ? "post" : "get"),
    };
  },
  input: (node, element, one) => ({
    ...submitted(node, element),
    list: () => {
      const id = node.attribute("list");
      if (!id || ["hidden", "checkbox", "radio", "file", "button"].includes(node.attribute("type"))) return undefined;
      return one.it(within(rootOf(node), "datalist").find((it) => it.attribute("id") === id));
    },
  }),
  keygen: () => ({ type: () => "keygen" }),
  label: (node, element, one) => ({
    control: () => (node.attribute("for") === undefined ? undefined : one.it(byId(node, node.attribute("for")))),
  }),
  link: (node) => ({ relList: () => words(node.attribute("rel")) }),
  map: (node, element, one) => ({
    areas: () => one.all(within(node, "area")),
    images: () => {
      const id = node.attribute("id");
      if (id === undefined) return [];
      return one.all(within(rootOf(node), "img,object").filter((it) => it.attribute("usemap") === `#${id}`));
    },
  }),
  option: (node, element, one) => ({
    text: () => node.text,
    value: () => valueOrHtml(node),
    label: () => node.attribute("label") ?? node.text,
    index: () => {
      const holder = above(node, "select,datalist");
      return holder ? within(holder, "option").indexOf(node) : 0;
    },
    disabled: () => node.attribute("disabled") !== undefined || above(node, "optgroup")?.attribute("disabled") !== undefined,
    form: () => {
      const id = above(node, "select")?.attribute("form");
      return one.it(above(node, "form") ?? (id === undefined ? undefined : within(rootOf(node), "form").find((it) => it.attribute("id") === id)));
    },
  }),
  output: (node) => ({ type: () => "output", value: () => node.text, defaultValue: () => node.text }),
  progress: (node) => {
    const number = (name, least) => {
      const value = Number(node.attribute(name) ?? NaN);
      return value >= 0 ? value : least;
    };
    const max = () => number("max", 1);
    const part = (otherwise) => (Number.isNaN(number("value", NaN)) ? otherwise : number("value", NaN) / max());
    return { max, value: () => part(0), position: () => part(-1) };
  },
  script: (node) => ({ text: () => node.text }),
  select: (node, element, one) => {
    const options = () => within(node, "option");
    const selected = () => options().filter((it) => it.attribute("selected") !== undefined);
    return {
      options: () => one.all(options()),
      length: () => options().length,
      selectedOptions: () => one.all(selected()),
      selectedIndex: () => options().indexOf(selected()[0]),
      size: () => (node.attribute("multiple") === undefined ? 1 : 4),
      type: () => (node.attribute("multiple") === undefined ? "select" : "select-multiple"),
      value: () => (selected().length ? valueOrHtml(selected()[0]) : ""),
    };
  },
  style: (node) => ({ type: () => node.attribute("type") || "text/css" }),
  table: (node, element, one) => {
    const first = (name) => () => one.it(node.elements.find((it) => it.name === name));
    return {
      ...rows(node, element, one),
      caption: first("caption"),
      tHead: first("thead"),
      tFoot: first("tfoot"),
      tBodies: () => one.all(within(node, "tbody")),
    };
  },
  tbody: rows,
  tfoot: rows,
  thead: rows,
  td: cell,
  th: cell,
  textarea: (node) => ({ length: () => (node.attribute("value") ?? "").length, type: () => "textarea" }),
  title: (node) => ({ text: () => node.text }),
  tr: (node, element, one) => ({
    cells: () => one.all(within(node, "td,th")),
    sectionRowIndex: () => within(above(node, "thead,tbody,tfoot"), "tr").indexOf(node),
    rowIndex: () => within(above(node, "table"), "tr").indexOf(node),
  }),
};

const WITH_FORM = "button fieldset input keygen label legend object output select textarea".split(" ");
const WITH_LABELS = "button input keygen meter output progress select textarea".split(" ");

const labelsOf = (node) => {
  const id = node.attribute("id");
  const around = closest(node, "label");
  const named = id ? within(rootOf(node), "label").filter((it) => it.attribute("for") === id) : [];
  return [...new Set([...(around ? [around] : []), ...named])];
};

const ACCESSORS = {};
for (const name of new Set([...Object.keys(WORDS), ...Object.keys(MORE), ...WITH_FORM, ...WITH_LABELS])) {
  const attributes = reflected(WORDS[name] ?? "");
  ACCESSORS[name] = (node, element, one) => ({
    ...attributes(node, element),
    ...(WITH_FORM.includes(name) ? { form: () => one.it(ownerForm(node)) } : {}),
    ...(WITH_LABELS.includes(name) ? { labels: () => one.all(labelsOf(node)) } : {}),
    ...MORE[name]?.(node, element, one),
  });
}

// The selection of a whole page.
export const parse = (source, address) => new Selection([treeOf(String(source))], undefined, address);

export default { parse, Selection, Element };
