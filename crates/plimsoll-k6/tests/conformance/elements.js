import html from "k6/html";

// Each element with every attribute that one of them reads, and bare.
const ATTRIBUTES =
  "href='/p/a?q=1#f' src='/s' data='/d' target='t' download='d' rel='x y' hreflang='de' type='button' name='n' accesskey='k' media='m' tabindex='3' " +
  "disabled autofocus value='7' required formaction='/fa' formmethod='POST' formenctype='text/plain' formtarget='ft' formnovalidate controls autoplay loop " +
  "muted preload='none' crossorigin='anonymous' mediagroup='g' poster='/po' colspan='2' rowspan='3' headers='h' abbr='ab' scope='row' sorted cite='/c' " +
  "datetime='2020-01-01' width='5' height='6' action='/ac' enctype='multipart/form-data' method='post' novalidate autocomplete='off' accept-charset='utf-8' " +
  "srcdoc='sd' sandbox='sb' allowfullscreen referrerpolicy='origin' alt='al' srcset='ss' sizes='sz' usemap='#n' ismap checked placeholder='ph' readonly " +
  "multiple pattern='pa' min='1' max='9' step='2' accept='ac' maxlength='4' minlength='2' size='8' for='n' content='co' http-equiv='he' typemustmatch " +
  "reversed start='4' label='la' charset='cs' async defer nomodule sortable rows='2' cols='3' wrap='hard' kind='captions' srclang='sl' default selected " +
  "high='8' low='2' optimum='5' challenge='ch' keytype='EC' keysystem='ks' dirname='dn' span='2' coords='1,2' shape='rect' autocapitalize='words' list='dl'";

const TAGS =
  "a area audio base button canvas data datalist del embed fieldset form iframe img input ins keygen label legend li link map meta meter object ol optgroup " +
  "option output param pre progress q script select source style table tbody td textarea tfoot th thead time title tr track ul video";

const WRAPPED = {
  area: ["<map>", "</map>"],
  legend: ["<form><fieldset>", "</fieldset></form>"],
  option: ["<form><select>", "</select></form>"],
  optgroup: ["<select>", "</select>"],
  param: ["<object>", "</object>"],
  source: ["<video>", "</video>"],
  tbody: ["<table>", "</table>"],
  tfoot: ["<table>", "</table>"],
  thead: ["<table>", "</table>"],
  tr: ["<table><tbody><tr></tr>", "</tbody></table>"],
  td: ["<table><tbody><tr><th></th>", "</tr></tbody></table>"],
  th: ["<table><tbody><tr><td></td>", "</tr></tbody></table>"],
  button: ["<form action='/of' method='post'><label>l", "</label></form>"],
  input: ["<form action='/of' method='post'><label>l", "</label></form>"],
  output: ["<form><label>l", "</label></form>"],
};

// Members of every element are compared by `html.js` and `exports.js`.
const common = new Set(Object.getOwnPropertyNames(html.parseHTML("<i></i>").find("i").get(0)));
for (let at = Object.getPrototypeOf(html.parseHTML("<i></i>").find("i").get(0)); at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
  for (const name of Object.getOwnPropertyNames(at)) common.add(name);
}

const shown = (value) => {
  if (Array.isArray(value)) return `[${value.map(shown)}]`;
  if (value && typeof value.nodeName === "function") return `<${value.nodeName()}>`;
  return value === undefined || value === null ? "none" : JSON.stringify(value);
};

const members = (element) => {
  const found = new Set();
  for (let at = element; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) {
      // Go's embedded structs.
      if (!common.has(name) && name !== "element" && !name.endsWith("_element") && !name.endsWith("Element")) found.add(name);
    }
  }
  return [...found].sort();
};

export default function () {
  for (const tag of TAGS.split(" ")) {
    const [before, after] = WRAPPED[tag] ?? ["", ""];
    for (const [kind, attributes] of [["full", ATTRIBUTES], ["bare", ""]]) {
      const content = ["tbody", "tfoot", "thead"].includes(tag) ? "<tr><td>y</td></tr>" : "x";
      const text = `<div>${before}<${tag} ${attributes}>${content}</${tag}>${after}<datalist id="dl"><option>z</option></datalist><b id="n"></b></div>`;
      const element = html.parseHTML(text).find(tag).get(0);
      if (element === undefined) {
        console.log(`${tag} ${kind}: none`);
        continue;
      }
      for (const name of members(element)) {
        let value;
        try {
          value = shown(element[name]());
        } catch (error) {
          value = "throws";
        }
        console.log(`${tag} ${kind} ${name}: ${value}`);
      }
    }
  }
}
