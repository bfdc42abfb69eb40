// Small words of the page of `aclshim report`. Every text of the trace is somebody else's: it gets into the page as text only.
// The parts are put together by page.rs, in one function.
const data = JSON.parse(document.getElementById("data").textContent);
const by = id => document.getElementById(id);

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") for (const [event, run] of Object.entries(value)) made.addEventListener(event, run);
    else if (name === "class") made.className = value;
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ""));
  return made;
}
const svg = (tag, attributes, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};
const plain = new Intl.NumberFormat("en");
const number = value => value === null || value === undefined ? "–" : plain.format(value);
const many = (count, one, more = one + "s") => number(count) + " " + (count === 1 ? one : more);
function scaled(value, steps) {
  let [unit, factor] = steps[0];
  for (const [name, from] of steps) if (value >= from) [unit, factor] = [name, from];
  const amount = value / factor;
  return (amount >= 100 ? Math.round(amount) : Number(amount.toPrecision(3))) + " " + unit;
}
const BYTES = [["B", 1], ["KiB", 1024], ["MiB", 1024 ** 2], ["GiB", 1024 ** 3], ["TiB", 1024 ** 4], ["PiB", 1024 ** 5], ["EiB", 1024 ** 6]];
const TIMES = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
const bytes = value => value === null || value === undefined ? "–" : value === 0 ? "0 B" : scaled(value, BYTES);
function time(ns) {
  if (ns === null || ns === undefined) return "–";
  if (ns < 0) return "−" + time(-ns);
  if (ns >= 120e9) {
    const seconds = Math.round(ns / 1e9);
    return ns >= 7200e9 ? Math.floor(seconds / 3600) + " h " + Math.floor(seconds % 3600 / 60) + " min" : Math.floor(seconds / 60) + " min " + seconds % 60 + " s";
  }
  return ns === 0 ? "0 ns" : scaled(ns, TIMES);
}
// Nanoseconds since 1970 as text do not fit into a number.
const moment = text => {
  const date = new Date(Number(BigInt(text) / 1000000n));
  return isNaN(date) ? text + " ns after 1970" : date.toISOString().replace("T", " ").replace("Z", " UTC");
};
const when = at => at === null || at === undefined ? "time not known" : at === 0 ? "0" : "+" + time(at);
const codes = new Map(data.codes.map(code => [code.code, code]));
const codeName = code => {
  const known = codes.get(code);
  return known && known.name ? code + " (" + known.name + ")" : String(code);
};
const result = code => code === null || code === undefined ? "has not returned" : code === 0 ? "0" : codeName(code);
const rowOf = name => data.rules.find(rule => rule.name === name);

/// A table; columns are {title, value, show, is: "number" | "wrap" | undefined}. A click on a title sorts.
function table(rows, columns, caption, sorted) {
  const body = el("tbody");
  const heads = columns.map((column, at) => el("th", { scope: "col", class: column.is === "number" ? "number" : "" },
    column.value ? el("button", { type: "button", on: { click: () => sort(at) } }, column.title) : column.title));
  let order = { at: -1, down: false };
  function fill(shown) {
    body.replaceChildren(...shown.map(row => el("tr", {}, columns.map(column => {
      const content = column.show ? column.show(row) : column.value(row);
      return el("td", { class: column.is || "", "data-title": column.title }, Array.isArray(content) ? el("span", {}, content) : content ?? "");
    }))));
  }
  function sort(at) {
    const value = columns[at].value;
    const down = order.at === at ? !order.down : columns[at].is === "number";
    order = { at, down };
    const of = row => { const found = value(row); return found === null || found === undefined ? -1 : found; };
    const compare = (a, b) => typeof of(a) === "number" && typeof of(b) === "number" ? of(a) - of(b) : String(of(a)).localeCompare(String(of(b)), "en");
    fill([...rows].sort((a, b) => down ? compare(b, a) : compare(a, b)));
    heads.forEach((head, index) => index === at ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
  }
  fill(rows);
  if (sorted !== undefined) sort(sorted);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, el("table", {}, el("thead", {}, el("tr", {}, heads)), body));
}
const nothing = text => el("p", { class: "nothing" }, text);
