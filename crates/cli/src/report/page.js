// The page of `aclshim report`. Every text of the trace is somebody else's: it gets into the page as text only.
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const by = id => document.getElementById(id);

// ---- Small words ----

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

// ---- Head, losses, summary ----

function head() {
  const names = [...new Set(data.processes.map(process => process.name))];
  const shown = names.slice(0, 3).join(", ") + (names.length > 3 ? " and " + (names.length - 3) + " more" : "");
  by("title").textContent = shown ? "Copies of " + shown : "aclshim report";
  document.title = shown ? "aclshim: " + shown : "aclshim report";
  by("origin").textContent = data.begin_ns ? moment(data.begin_ns) + ", " + time(data.span_ns) + " from the first call to the end of the last"
    : data.totals.calls ? "The time of the calls is not known" : "No call was recorded";
  by("made").textContent = "Made by aclshim " + data.version + " from " + data.sources.join(", ")
    + (data.begin_ns ? ". The first call began at " + moment(data.begin_ns) : "") + ".";
}

function losses() {
  const box = by("losses");
  if (!data.losses.length) {
    box.append(el("div", { class: "banner fine" }, "Nothing was lost: every call that was seen is in this page."));
  } else {
    box.append(el("div", { class: "banner bad" }, el("h2", {}, "Not everything is in this page"),
      el("ul", {}, data.losses.map(loss => el("li", {}, el("strong", {}, (loss.count ? number(loss.count) + " " : "") + loss.what), " ", loss.remedy, " ", el("span", { class: "quiet" }, loss.of))))));
  }
  if (data.notes.length) box.append(el("div", { class: "banner" }, el("ul", {}, data.notes.map(note => el("li", {}, note)))));
}

const SEVERITIES = ["error", "violation", "perf", "portability"];
function summary() {
  const { totals } = data;
  const tile = (title, value, small, kind) => el("div", { class: kind || "" }, el("dt", {}, title), el("dd", {}, value, small ? el("small", {}, small) : ""));
  const share = totals.calls ? (100 * totals.errors / totals.calls).toPrecision(2) + " % of all" : "";
  by("tiles").append(
    tile("Processes", number(data.processes.length + data.more_processes)),
    tile("Calls", number(totals.calls), totals.nested ? number(totals.nested) + " more inside others" : ""),
    tile("Copied and set", bytes(totals.bytes), data.span_ns ? scaled(totals.bytes / data.span_ns * 1e9, BYTES) + "/s" : ""),
    tile("Time", time(data.begin_ns ? data.span_ns : null), "first call to last"),
    tile("Failed calls", number(totals.errors), totals.errors ? share : "", totals.errors ? "is-error" : ""),
    ...SEVERITIES.map((severity, at) => tile(el("span", { class: "severity" }, severity), number(totals.findings[at]),
      ["refused by the vendor", "against the documents", "correct, but slow", "refused elsewhere"][at], totals.findings[at] ? "is-" + severity : "")));
  if (!data.processes.length) return;
  const columns = [
    { title: "Program", value: row => row.name, show: row => el("span", { title: row.executable }, row.name), is: "wrap" },
    { title: "Process", value: row => row.pid, is: "number" },
    { title: "Host", value: row => row.host },
    { title: "Rank", value: row => row.rank },
    { title: "Product", value: row => row.product || "not known" },
    { title: "CANN", value: row => row.cann || "not known" },
    { title: "Form", value: row => row.form },
    { title: "From", value: row => row.span_ns ? row.span_ns[0] : "", show: row => row.span_ns ? moment(row.span_ns[0]).replace(/\.\d+/, "") : "not known" },
    { title: "Span", value: row => row.span_ns ? Number(BigInt(row.span_ns[1]) - BigInt(row.span_ns[0])) : null, show: row => row.span_ns ? time(Number(BigInt(row.span_ns[1]) - BigInt(row.span_ns[0]))) : "–", is: "number" },
    { title: "Calls", value: row => row.calls, show: row => number(row.calls), is: "number" },
    { title: "Bytes", value: row => row.bytes, show: row => bytes(row.bytes), is: "number" },
    { title: "Failed", value: row => row.errors, show: row => failed(row.errors), is: "number" },
    { title: "Findings", value: row => row.findings.reduce((a, b) => a + b), show: row => number(row.findings.reduce((a, b) => a + b)), is: "number" },
  ];
  by("processes").append(table(data.processes, columns, "Processes"));
  if (data.more_processes) by("processes").append(nothing("And " + many(data.more_processes, "process", "processes") + " more, which are in all sums."));
  by("processes").append(el("details", {}, el("summary", { class: "quiet" }, "Library and settings in force"),
    data.processes.map(row => [el("h3", {}, row.executable + ", process " + row.pid), el("p", { class: "values" }, ["library: " + (row.library || "not known"), ...row.settings].join("\n"))])));
}
const failed = count => count ? el("span", { class: "bad-text" }, number(count)) : "0";

// ---- Findings ----

function showButton(call, words = "Show") {
  if (call === null || call === undefined || data.calls.time[call] === null) return "";
  return el("button", { type: "button", class: "small", title: "Show in the timeline", "aria-label": "Show in the timeline", on: { click: () => chart.show(call) } }, words);
}

/// The call with the argument that is wrong marked, and what stands in the array where it is one.
function marked(of) {
  const end = of.values.lastIndexOf("): ");
  if (end < 0 || !of.argument) return [of.values];
  const [call, rest] = [of.values.slice(0, end + 1), of.values.slice(end + 3)];
  const at = call.search(new RegExp("[(, ]" + of.argument + " = ")) + 1;
  if (!at) return [of.values];
  const stop = call.slice(at).search(/[,)]/) + at;
  return [call.slice(0, at), el("mark", {}, call.slice(at, stop)), call.slice(stop), ...(rest === of.argument ? [] : [": ", el("mark", {}, rest)])];
}

function example(of) {
  const returned = of.is_refused ? "Refused with " + result(of.returned) : of.returned === null ? "Has not returned" : "Returned " + result(of.returned);
  return el("div", { class: "example" }, el("p", { class: "values" }, marked(of)), of.outcome ? el("p", {}, of.outcome) : "",
    el("p", { class: "quiet" }, [returned, "process " + of.pid, "thread " + of.thread, "call " + number(of.number), when(of.time)].join(" · ")),
    of.stack.length ? el("ul", {}, of.stack.map(frame => el("li", {}, "from " + frame))) : "", showButton(of.call, "Show in the timeline"));
}

function finding(rule) {
  const fact = (title, value, kind) => value ? [el("dt", {}, title), el("dd", { class: kind || "" }, value)] : [];
  const site = (of, at) => el("details", { class: "site", open: at === 0 },
    el("summary", {}, el("code", {}, of.place), " calls ", el("code", {}, of.function), of.count ? " · " + many(of.count, "time") : "", data.processes.length > 1 ? " · " + of.program : ""),
    of.examples.map(example),
    of.count > of.examples.length ? el("p", { class: "quiet" }, "The other " + many(of.count - of.examples.length, "call") + " of this place are counted, not listed.") : "");
  return el("details", { class: "rule " + rule.severity, id: rule.name, "data-severity": rule.severity },
    el("summary", {}, el("span", { class: "severity" }, rule.severity), el("span", { class: "rule-name" }, rule.name), el("span", { class: "statement" }, rule.statement), el("span", { class: "count" }, many(rule.count, "call"))),
    el("div", { class: "rule-body" },
      el("dl", { class: "facts" }, fact("What to do", rule.fix, "fix"), fact("Source", rule.sources.join("; ")), fact("Holds for", rule.products),
        fact("The vendor returns", rule.codes.map(codeName).join(", ")),
        rule.known ? fact("Known or muted", many(rule.known, "call") + ", which are not listed") : "",
        fact("Link", el("a", { href: "#" + encodeURIComponent(rule.name) }, "#" + rule.name))),
      rule.sites.map(site),
      rule.more_sites ? el("p", { class: "quiet" }, "And " + many(rule.more_sites, "call site") + " more.") : ""));
}

function findings() {
  const list = by("finding-list");
  if (!data.rules.length) {
    by("finding-filter").hidden = true;
    return list.append(nothing(data.totals.calls ? "No rule is broken." : "There are no calls."));
  }
  list.append(...data.rules.map(finding));
  const present = SEVERITIES.filter(severity => data.rules.some(rule => rule.severity === severity));
  for (const severity of present) {
    const count = data.rules.filter(rule => rule.severity === severity).length;
    const button = el("button", { type: "button", "aria-pressed": "true", on: { click: () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", shown);
      for (const of of list.querySelectorAll("details.rule")) if (of.dataset.severity === severity) of.hidden = !shown;
    } } }, el("span", { class: "severity " + severity }, severity), " " + count);
    by("finding-filter").append(button);
  }
  by("finding-filter").append(el("button", { type: "button", on: { click: event => {
    const all = [...list.querySelectorAll("details.rule")];
    const open = !all.every(of => of.open);
    all.forEach(of => of.open = open);
    event.target.textContent = open ? "Close all" : "Open all";
  } } }, "Open all"));
}

function openLinked() {
  let name = location.hash.slice(1);
  try { name = decodeURIComponent(name); } catch { /* as it stands */ }
  const target = name && by(name);
  if (target && target.matches("details.rule")) {
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
    target.querySelector("summary").focus({ preventScroll: true });
  }
}

const ruleLinks = names => [...names.slice(0, 4).flatMap((name, at) => [at ? ", " : "", rowOf(name) ? el("a", { href: "#" + name }, name) : name]),
  names.length > 4 ? " or another of " + (names.length - 4) : ""];
function failures() {
  if (!data.failures.length) return by("failure-list").append(nothing(data.totals.calls ? "Every call that returned, returned 0." : "There are no calls."));
  by("failure-list").append(table(data.failures, [
    { title: "Calls", value: row => row.count, show: row => number(row.count), is: "number" },
    { title: "Function", value: row => row.function, show: row => el("code", {}, row.function) },
    { title: "Returned", value: row => row.code, show: row => el("code", {}, codeName(row.code)) },
    { title: "Meaning", value: row => (codes.get(row.code) || {}).meaning || "", show: row => (codes.get(row.code) || {}).meaning || "a code that this version does not know", is: "wrap" },
    { title: "Why", show: row => row.rules.length ? [row.is_known ? "" : "perhaps ", ...ruleLinks(row.rules)] : "not known", is: "wrap" },
    { title: "", show: row => showButton(row.call) },
  ], "Failed calls by function and code", 0));
}

// ---- Charts ----

/// The colours in force: of the scheme, or of paper.
const colors = () => {
  const style = getComputedStyle(document.documentElement);
  const of = name => style.getPropertyValue("--" + name).trim();
  return { text: of("text"), quiet: of("quiet"), line: of("line"), soft: of("soft"), card: of("card"), error: of("error"), finding: of("violation"), focus: of("focus"), d: data.directions.map((_, at) => of("d" + at)) };
};
const tip = by("tip");
function showTip(x, y, lines) {
  if (!lines) return void (tip.hidden = true);
  tip.replaceChildren(...lines.map((line, at) => at === 0 ? el("b", {}, line) : line instanceof Node ? line : el("div", {}, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 4)) + "px";
  tip.style.top = Math.max(4, y + 18 + height > innerHeight ? y - height - 12 : y + 18) + "px";
}
/// Steps of 1, 2 and 5 that give about so many.
function niceStep(range, count) {
  const rough = Math.max(range / Math.max(count, 1), 1e-9);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find(step => step * power >= rough * 0.999);
}

/// The next round number of bytes.
function roundUp(value) {
  if (!(value > 0)) return value;
  const [, unit] = [...BYTES].reverse().find(([, from]) => value >= from) || BYTES[0];
  return unit * [1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800, 1024].find(step => step >= value / unit * 0.999 || step === 1024);
}

const chart = (() => {
  const tracks = data.timeline.tracks;
  const { width_ns: width, origin_ns: origin } = data.timeline;
  const calls = data.calls;
  for (const track of tracks) {
    let at = 0;
    track.from = track.bins.step.map(step => (at += step, origin + at * width));
    track.listed = [];
  }
  calls.time.forEach((at, index) => {
    if (at === null) return;
    tracks[calls.thread[index]].listed.push(index);
    if (calls.stream[index] !== null) tracks[calls.stream[index]].listed.push(index);
  });
  for (const track of tracks) {
    track.listed.sort((a, b) => calls.time[a] - calls.time[b] || a - b);
    let longest = 0;
    for (const index of track.listed) longest = Math.max(longest, calls.duration[index] || 0);
    track.longest = longest;
  }
  const pad = Math.max(data.span_ns * 0.01, 200);
  const whole = { from: -pad, to: data.span_ns + pad };
  const view = { ...whole };
  const LEAST = 100;
  const FEW = 16;
  const order = (a, b) => (a.process ?? 1e9) - (b.process ?? 1e9) || a.name.localeCompare(b.name, "en", { numeric: true });
  const lanes = ["thread", "stream"].flatMap(kind => tracks.filter(track => track.kind === kind).sort(order));
  let showAll = false;
  let chosen = null;
  let pending = false;
  const canvases = [by("bandwidth"), by("tracks")];
  const drawn = [[], []];

  const shownLanes = () => {
    if (showAll || lanes.length <= FEW) return lanes;
    const busiest = new Set([...lanes].sort((a, b) => b.calls - a.calls).slice(0, FEW));
    return lanes.filter(lane => busiest.has(lane));
  };

  function prepare(canvas, height) {
    const wide = canvas.clientWidth;
    const ratio = Math.min(devicePixelRatio || 1, 3);
    canvas.style.height = height + "px";
    const [w, h] = [Math.round(wide * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, wide, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    return pen;
  }
  const gutter = wide => wide >= 760 ? 190 : 0;

  function layout(canvas) {
    const wide = canvas.clientWidth;
    const left = gutter(wide);
    const plot = Math.max(wide - left, 10);
    const perPixel = (view.to - view.from) / plot;
    return { wide, left, plot, perPixel, x: at => left + (at - view.from) / perPixel };
  }

  function axis(pen, to, height, color) {
    const step = niceStep(view.to - view.from, Math.max(2, to.plot / (to.left ? 120 : 80)));
    pen.fillStyle = color.quiet;
    pen.strokeStyle = color.line;
    pen.lineWidth = 1;
    pen.textAlign = "center";
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      const x = Math.round(to.x(at)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, 18);
      pen.lineTo(x, height);
      pen.stroke();
      const label = axisLabel(Math.round(at / step) * step, step);
      const half = pen.measureText(label).width / 2 + 2;
      pen.fillText(label, Math.min(Math.max(x, to.left + half), to.wide - half), 9);
    }
    pen.textAlign = "left";
  }
  function axisLabel(at, step) {
    if (Math.abs(at) < step / 2) return "0";
    const [unit, factor] = [...TIMES].reverse().find(([, from]) => Math.abs(at) >= from) || TIMES[0];
    const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / factor) + 1e-9)));
    return (at / factor).toFixed(digits) + " " + unit;
  }

  function drawBandwidth() {
    const canvas = canvases[0];
    const height = 170;
    const pen = prepare(canvas, height);
    const color = colors();
    const to = layout(canvas);
    const slot = 3;
    const count = Math.max(1, Math.floor(to.plot / slot));
    const each = (view.to - view.from) / count;
    const rows = tracks.filter(track => track.kind === "direction");
    const sums = rows.map(() => new Float64Array(count));
    const spread = (row, begin, end, amount) => {
      const [from, till] = [(begin - view.from) / each, (end - view.from) / each];
      for (let column = Math.max(0, Math.floor(from)); column < Math.min(count, Math.ceil(till)); column++) {
        const part = Math.min(till, column + 1) - Math.max(from, column);
        if (part > 0) sums[row][column] += amount * part / (till - from);
      }
    };
    if (data.is_complete) {
      const rowOf = new Map(rows.map((track, row) => [track.direction, row]));
      calls.time.forEach((at, index) => {
        if (at === null || at > view.to || calls.code[index] !== 0 || calls.flags[index] & 1) return;
        spread(rowOf.get(calls.direction[index]), at, at + Math.max(calls.duration[index] || 0, 1), calls.bytes[index]);
      });
    } else {
      rows.forEach((track, row) => {
        for (let at = first(track.from, view.from - width); at < track.from.length && track.from[at] < view.to; at++) {
          if (track.bins.bytes[at]) spread(row, track.from[at], track.from[at] + width, track.bins.bytes[at]);
        }
      });
    }
    let most = 0;
    for (let column = 0; column < count; column++) most = Math.max(most, sums.reduce((sum, row) => sum + row[column], 0));
    const base = height - 6;
    const top = 26;
    axis(pen, to, base, color);
    drawn[0] = [];
    let marks = 0;
    // The scale ends at a round number.
    const rate = roundUp(most / each * 1e9);
    most = rate * each / 1e9;
    const w = to.plot / count;
    for (let column = 0; column < count; column++) {
      let y = base;
      const lines = [];
      rows.forEach((track, row) => {
        const value = sums[row][column];
        if (!value) return;
        const tall = Math.max(1, (base - top) * value / most);
        y -= tall;
        pen.fillStyle = color.d[track.direction];
        pen.fillRect(to.left + column * w, y, w - (w > 2 ? 0.4 : 0), tall);
        marks++;
        lines.push(track.name + ": " + scaled(value / each * 1e9, BYTES) + "/s");
      });
      if (lines.length) drawn[0].push({ x0: to.left + column * w, x1: to.left + (column + 1) * w, y0: top, y1: base, lines: () => [when(view.from + column * each), ...lines] });
    }
    scaleOf(pen, to, rate, top, base, color);
    canvas.dataset.marks = marks;
  }

  /// How much the height of the bandwidth means; where there is no room beside it, over the bars.
  function scaleOf(pen, to, rate, top, base, color) {
    if (!rate) {
      pen.fillStyle = color.quiet;
      return pen.fillText("No bytes were moved in this range.", to.left + 8, 70);
    }
    for (const part of [0.5, 1]) {
      const y = Math.round(base - (base - top) * part) + 0.5;
      pen.strokeStyle = color.line;
      pen.beginPath(); pen.moveTo(to.left, y); pen.lineTo(to.wide, y); pen.stroke();
      const label = scaled(rate * part, BYTES) + "/s";
      const wide = pen.measureText(label).width;
      const [x, middle] = to.left ? [to.left - 8 - wide, y] : [3, y + 9];
      pen.fillStyle = color.card;
      pen.fillRect(x - 3, middle - 8, wide + 6, 16);
      pen.fillStyle = color.quiet;
      pen.fillText(label, x, middle);
    }
  }

  /// The position of the first entry that is not before `value`.
  function first(sorted, value) {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }

  const callLines = index => {
    const code = calls.code[index];
    const lines = [data.functions[calls.function[index]].name,
      bytes(calls.bytes[index]) + ", " + data.directions[calls.direction[index]],
      (calls.duration[index] === null ? "how long is not known" : "took " + time(calls.duration[index])) + ", began at " + when(calls.time[index]),
      code ? el("div", { class: "bad-text" }, "returned " + result(code)) : "returned " + result(code)];
    const { rules } = { rules: calls.rule_sets[calls.rules[index]] };
    if (rules.length) lines.push(el("div", { class: "bad-text" }, "breaks " + rules.join(", ")));
    const flags = calls.flags[index];
    if (flags & 1) lines.push("made inside another call");
    if (flags & 2) lines.push("refused by a rule, not forwarded");
    if (flags & 4) lines.push("made to fail, or delayed, by a setting or a test");
    lines.push(tracks[calls.thread[index]].name + (calls.stream[index] === null ? "" : ", " + tracks[calls.stream[index]].name) + ", call " + number(calls.number[index]));
    lines.push("from " + calls.places[calls.site[index]]);
    return lines;
  };

  function drawTracks() {
    const canvas = canvases[1];
    const rows = shownLanes();
    const wideEnough = gutter(canvas.clientWidth) > 0;
    const [label, bar, gap] = [wideEnough ? 0 : 16, 22, 7];
    const heads = ["thread", "stream"].filter(kind => rows.some(row => row.kind === kind));
    const height = 26 + heads.length * 22 + rows.length * (label + bar + gap) + 4;
    const pen = prepare(canvas, height);
    const color = colors();
    const to = layout(canvas);
    axis(pen, to, height, color);
    drawn[1] = [];
    let y = 26;
    let kind = "";
    for (const track of rows) {
      if (track.kind !== kind) {
        kind = track.kind;
        pen.fillStyle = color.quiet;
        pen.font = "600 12px system-ui, sans-serif";
        pen.fillText(kind === "thread" ? "Threads" : "Streams (when calls were made on them)", 2, y + 10);
        pen.font = "12px system-ui, sans-serif";
        y += 22;
      }
      pen.fillStyle = color.text;
      const name = (data.processes.length > 1 && track.process !== null ? processName(track.process) + " " : "") + track.name;
      if (wideEnough) {
        pen.save();
        pen.beginPath(); pen.rect(0, y, to.left - 10, bar); pen.clip();
        pen.fillText(name, 2, y + bar / 2);
        pen.restore();
      } else {
        pen.fillText(name, 2, y + label / 2);
      }
      y += label;
      pen.fillStyle = color.soft;
      pen.fillRect(to.left, y, to.plot, bar);
      pen.save();
      pen.beginPath(); pen.rect(to.left, y - 3, to.plot, bar + 6); pen.clip();
      drawTrack(pen, track, y, bar, to, color);
      pen.restore();
      y += bar + gap;
    }
    canvas.dataset.marks = drawn[1].length;
    canvas.dataset.from = view.from;
    canvas.dataset.to = view.to;
    by("range").textContent = when(Math.max(0, view.from)) + " to " + when(view.to) + ", " + time(view.to - view.from) + " wide";
    const more = by("more-tracks");
    more.hidden = lanes.length <= FEW;
    more.textContent = showAll ? "Show the busiest only" : "Show all " + lanes.length + " threads and streams";
  }
  const ranked = new Set(data.processes.map(row => row.rank)).size === data.processes.length && !data.more_processes;
  const processName = at => {
    const row = data.processes[at];
    return !row ? "process " + at : ranked && data.processes.length > 1 ? "rank " + row.rank : row.name + "[" + row.pid + "]";
  };

  function drawTrack(pen, track, y, tall, to, color) {
    const [from, till] = [first2(track, view.from - track.longest), first2(track, view.to)];
    const crowded = !data.is_complete || till - from > to.plot;
    if (crowded) drawBins(pen, track, y, tall, to, color);
    let last = -1e9;
    for (let at = from; at < till; at++) {
      const index = track.listed[at];
      const begin = calls.time[index];
      const end = begin + (calls.duration[index] || 0);
      if (end < view.from) continue;
      const x0 = to.x(begin);
      const long = to.x(end) - x0;
      const striking = calls.code[index] || calls.rule_sets[calls.rules[index]].length;
      // In a crowd only what can be seen or should be.
      if (crowded && long < 3 && !striking && index !== chosen) continue;
      const w = Math.max(long, 1.2);
      const nested = calls.flags[index] & 1;
      const [top, high] = nested ? [y + tall / 2, tall / 2] : [y, tall];
      pen.fillStyle = color.d[calls.direction[index]];
      if (!crowded || long >= 3) pen.fillRect(x0, top, w, high);
      if (long > 8) { pen.strokeStyle = color.card; pen.lineWidth = 1; pen.strokeRect(x0 + 0.5, top + 0.5, w - 1, high - 1); }
      if (long > 70 && !nested) {
        pen.save();
        pen.beginPath(); pen.rect(Math.max(x0, to.left), top, Math.min(x0 + w, to.wide) - Math.max(x0, to.left) - 4, high); pen.clip();
        pen.fillStyle = color.card;
        pen.fillText(data.functions[calls.function[index]].name.replace("aclrt", "") + "  " + bytes(calls.bytes[index]), Math.max(x0, to.left) + 6, top + high / 2 + 0.5);
        pen.restore();
      }
      if (!crowded || long >= 3 || width > 8 * to.perPixel && x0 - last >= 1) {
        if (calls.code[index]) mark(pen, x0 + Math.min(w / 2, 4), y - 3, 1, color.error);
        if (calls.rule_sets[calls.rules[index]].length) mark(pen, x0 + Math.min(w / 2, 4), y + tall + 3, -1, color.finding);
        if (striking) last = x0;
      }
      if (index === chosen) { pen.strokeStyle = color.focus; pen.lineWidth = 3; pen.strokeRect(x0 - 2, y - 1, w + 4, tall + 2); pen.lineWidth = 1; }
      drawn[1].push({ x0, x1: x0 + w, y0: y - 3, y1: y + tall + 3, nested, lines: () => callLines(index), call: index });
    }
  }
  function first2(track, value) {
    let [low, high] = [0, track.listed.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (calls.time[track.listed[middle]] < value) low = middle + 1; else high = middle;
    }
    return low;
  }
  /// A small triangle that points down (1) or up (-1).
  function mark(pen, x, y, way, fill) {
    pen.fillStyle = fill;
    pen.beginPath();
    pen.moveTo(x - 3.5, y); pen.lineTo(x + 3.5, y); pen.lineTo(x, y + 6 * way);
    pen.fill();
  }

  function drawBins(pen, track, y, tall, to, color) {
    const bins = track.bins;
    const room = Math.max(width, to.perPixel);
    let group = null;
    const flush = () => {
      if (!group) return;
      const { x0, x1, sum } = group;
      const part = Math.min(1, sum.busy / (room * (width > to.perPixel ? 1 : x1 - x0)));
      // By the root, so that a small share can still be seen.
      const high = Math.max(3, tall * Math.sqrt(part));
      pen.fillStyle = color.d[sum.direction];
      pen.globalAlpha = 0.75;
      pen.fillRect(x0, y + tall - high, x1 - x0, high);
      for (const [count, fill, top] of [[sum.errors, color.error, y - 3], [sum.findings, color.finding, y + tall]]) {
        if (!count) continue;
        pen.fillStyle = fill;
        pen.globalAlpha = 0.35 + 0.65 * Math.min(1, count / Math.max(1, sum.calls));
        pen.fillRect(x0, top, x1 - x0, 3);
      }
      pen.globalAlpha = 1;
      drawn[1].push({ x0, x1, y0: y, y1: y + tall, lines: () => [
        many(sum.calls, "call") + " in " + time(sum.till - sum.from), bytes(sum.bytes) + ", " + Math.round(100 * part) + " % of the time in calls",
        "longest " + time(sum.longest) + " (" + data.functions[sum.function].name + ", " + data.directions[sum.direction] + ")",
        ...(sum.errors ? [el("div", { class: "bad-text" }, many(sum.errors, "failed call"))] : []),
        ...(sum.findings ? [el("div", { class: "bad-text" }, many(sum.findings, "call") + " with findings")] : []), when(sum.from)] });
      group = null;
    };
    for (let at = first(track.from, view.from - width); at < track.from.length && track.from[at] < view.to; at++) {
      const x0 = Math.floor(to.x(track.from[at]));
      const x1 = Math.max(x0 + 1, Math.floor(to.x(track.from[at] + width)));
      if (group && (group.x0 !== x0 || group.x1 !== x1)) flush();
      group ??= { x0, x1, sum: { calls: 0, busy: 0, bytes: 0, errors: 0, findings: 0, longest: -1, direction: 5, function: 0, from: track.from[at], till: 0 } };
      const { sum } = group;
      sum.till = track.from[at] + width;
      for (const column of ["calls", "busy", "bytes", "errors", "findings"]) sum[column] += bins[column][at];
      if (bins.longest[at] > sum.longest) [sum.longest, sum.direction, sum.function] = [bins.longest[at], bins.direction[at], bins.function[at]];
    }
    flush();
  }

  function draw() {
    pending = false;
    drawBandwidth();
    drawTracks();
  }
  function redraw() {
    if (!pending) { pending = true; requestAnimationFrame(draw); }
  }
  function set(from, to) {
    const all = whole.to - whole.from;
    const range = Math.min(Math.max(to - from, LEAST), all);
    const begin = Math.min(Math.max((from + to) / 2 - range / 2, whole.from), whole.to - range);
    const changed = view.from !== begin || view.to !== begin + range;
    [view.from, view.to] = [begin, begin + range];
    redraw();
    return changed;
  }
  /// Zooms around a moment; whether anything changed.
  function zoom(factor, around = (view.from + view.to) / 2) {
    const range = Math.min(Math.max((view.to - view.from) * factor, LEAST), whole.to - whole.from);
    const share = (around - view.from) / (view.to - view.from);
    return set(around - share * range, around + (1 - share) * range);
  }
  const pan = share => { const by = (view.to - view.from) * share; return set(view.from + by, view.to + by); };

  function show(index) {
    chosen = index;
    const wide = Math.max((calls.duration[index] || 0) * 12, 2000);
    const middle = calls.time[index] + (calls.duration[index] || 0) / 2;
    if (!shownLanes().includes(tracks[calls.thread[index]])) showAll = true;
    set(middle - wide / 2, middle + wide / 2);
    by("timeline").scrollIntoView();
    by("tracks").focus({ preventScroll: true });
  }

  function listen(canvas, which) {
    const moments = new Map();
    const at = event => { const to = layout(canvas); return view.from + (event.clientX - canvas.getBoundingClientRect().left - to.left) * to.perPixel; };
    const hit = event => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let best = null;
      for (const of of drawn[which]) {
        if (y < of.y0 || y > of.y1 || x < of.x0 - 3 || x > of.x1 + 3) continue;
        const far = Math.max(of.x0 - x, x - of.x1, 0) - (of.call !== undefined ? 0.5 : 0) - (of.nested && y > (of.y0 + of.y1) / 2 ? 1 : 0);
        if (!best || far <= best.far) best = { of, far };
      }
      showTip(event.clientX, event.clientY, best && best.of.lines());
    };
    canvas.addEventListener("wheel", event => {
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      const amount = sideways ? event.deltaX || event.deltaY : event.deltaY;
      const changed = sideways ? pan(amount / 800) : zoom(Math.exp(Math.max(-1, Math.min(1, amount / 300))), at(event));
      // Where there is nothing more to zoom out of, the page scrolls on.
      if (changed) event.preventDefault();
      showTip();
    }, { passive: false });
    canvas.addEventListener("pointerdown", event => {
      moments.set(event.pointerId, event);
      canvas.setPointerCapture(event.pointerId);
      canvas.classList.add("held");
    });
    canvas.addEventListener("pointermove", event => {
      const before = moments.get(event.pointerId);
      if (!before) return hit(event);
      const { perPixel } = layout(canvas);
      if (moments.size === 2) {
        const other = [...moments.values()].find(one => one.pointerId !== event.pointerId);
        const [was, is] = [Math.abs(before.clientX - other.clientX), Math.abs(event.clientX - other.clientX)];
        if (was > 10 && is > 10) zoom(was / is, at(other));
      } else if (event.clientX !== before.clientX) {
        set(view.from - (event.clientX - before.clientX) * perPixel, view.to - (event.clientX - before.clientX) * perPixel);
        showTip();
      }
      moments.set(event.pointerId, event);
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, event => {
      moments.delete(event.pointerId);
      canvas.classList.remove("held");
      if (name === "pointerup") hit(event);
    });
    canvas.addEventListener("pointerleave", () => showTip());
    canvas.addEventListener("dblclick", event => zoom(0.4, at(event)));
    canvas.addEventListener("keydown", event => {
      const act = { ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: () => set(whole.from, whole.to), Home: () => set(whole.from, whole.to) }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      act();
      event.preventDefault();
    });
  }

  function listTracks() {
    const box = by("track-table");
    if (lanes.length) box.append(table(lanes, [
      { title: "Track", value: row => row.name },
      { title: "Program", value: row => row.process === null ? "" : processName(row.process), is: "wrap" },
      { title: "Calls", value: row => row.calls, show: row => number(row.calls), is: "number" },
      { title: "Bytes", value: row => row.bytes, show: row => bytes(row.bytes), is: "number" },
      { title: "Time in calls", value: row => row.busy_ns, show: row => time(row.busy_ns), is: "number" },
      { title: "Failed", value: row => row.errors, show: row => failed(row.errors), is: "number" },
      { title: "With findings", value: row => row.findings, show: row => number(row.findings), is: "number" },
    ], "Threads and streams"));
    else by("track-table-box").hidden = true;
  }

  function start() {
    listTracks();
    if (!data.begin_ns) {
      for (const part of ["timeline-tools", "legend", "bandwidth-figure", "tracks-figure", "timeline-keys"]) by(part).hidden = true;
      return void (by("timeline-about").textContent = data.totals.calls ? "When these calls were made is not known: their clock was of another boot, and nobody has told its pace." : "There are no calls.");
    }
    by("timeline-about").textContent = "How long each call took, as its thread saw it: of an asynchronous call that is the time it took to submit it. "
      + (data.is_complete ? "Every call is shown." : "Of so many calls the slowest, and those that failed or have findings, are drawn one by one (at most some thousand); all others as the share of time that was spent in calls (its root, so that little can be seen too), in steps of " + time(width) + ".")
      + (data.totals.untimed ? " The time of " + many(data.totals.untimed, "call") + " is not known: not shown here." : "");
    by("legend").append(...data.directions.map((name, at) => [name, at]).filter(([, at]) => tracks.some(track => track.direction === at))
      .map(([name, at]) => el("span", {}, el("i", { class: "swatch d" + at }), name)),
      data.totals.errors ? el("span", {}, el("i", { class: "swatch mark-error" }), "failed") : "",
      data.rules.length ? el("span", {}, el("i", { class: "swatch mark-finding" }), "has findings") : "");
    by("zoom-in").addEventListener("click", () => zoom(0.5));
    by("zoom-out").addEventListener("click", () => zoom(2));
    by("pan-left").addEventListener("click", () => pan(-0.3));
    by("pan-right").addEventListener("click", () => pan(0.3));
    by("zoom-all").addEventListener("click", () => set(whole.from, whole.to));
    by("more-tracks").addEventListener("click", () => { showAll = !showAll; redraw(); });
    canvases.forEach(listen);
    new ResizeObserver(redraw).observe(canvases[1]);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    draw();
  }
  return { start, show, redraw: () => data.begin_ns && draw(), tracks };
})();

// ---- Sizes and durations ----

/// Bars of equal width, with a logarithmic height: one call among millions can still be seen.
function bars(box, entries, label) {
  box.replaceChildren();
  if (!entries.length) return box.append(nothing("There is nothing to show."));
  const [W, H, left, base, top] = [640, 220, 46, 190, 14];
  const most = Math.max(...entries.map(entry => entry.count));
  const height = count => count ? (base - top) * (most > 1 ? 0.08 + 0.92 * Math.log10(count) / Math.log10(most) : 0.5) : 0;
  const each = Math.min((W - left) / entries.length, 60);
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label });
  for (let power = 0; 10 ** power <= Math.max(most, 1); power++) {
    const y = base - height(10 ** power);
    picture.append(svg("line", { class: "grid", x1: left, x2: W, y1: y, y2: y }), text(left - 6, y + 4, scaled(10 ** power, [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]]).trim(), "end"));
  }
  const every = Math.ceil(entries.length / Math.max(1, Math.floor((W - left) / 62)));
  entries.forEach((entry, at) => {
    const x = left + at * each;
    if (entry.count) {
      const column = svg("rect", { class: "column", x: x + each * 0.06, width: Math.max(each * 0.88, 1), y: base - height(entry.count), height: height(entry.count), rx: Math.min(2, each / 4) });
      const title = svg("title", {});
      title.textContent = entry.name + ": " + many(entry.count, "call");
      column.append(title);
      picture.append(column);
    }
    if (at % every === 0 && x < W - 36) picture.append(text(entries.length === 1 ? x + each / 2 : x, base + 16, entry.short, "start"));
  });
  picture.append(svg("line", { class: "grid", x1: left, x2: W, y1: base, y2: base }));
  function text(x, y, words, anchor) {
    const made = svg("text", { x, y, "text-anchor": anchor });
    made.textContent = words;
    return made;
  }
  box.append(picture, el("details", {}, el("summary", { class: "quiet" }, "As a table"), table(entries.filter(entry => entry.count), [
    { title: "From, to", show: entry => entry.name }, { title: "Calls", value: entry => entry.count, show: entry => number(entry.count), is: "number" }], label)));
}

function distributions() {
  const choice = by("function-choice");
  choice.append(el("option", { value: "-1" }, "All functions"), ...data.functions.map((row, at) => el("option", { value: at }, row.name + " (" + number(row.calls) + ")")));
  const add = (sums, key, count) => sums.set(key, (sums.get(key) || 0) + count);
  function draw() {
    const rows = Number(choice.value) < 0 ? data.functions : [data.functions[Number(choice.value)]];
    const sizes = new Map();
    const durations = new Map();
    for (const row of rows) {
      for (const [power, count] of row.sizes) add(sizes, power, count);
      for (const [from, to, count] of row.durations) add(durations, from + " " + to, count);
    }
    const powers = [...sizes.keys()];
    const [low, high] = [Math.min(...powers), Math.max(...powers)];
    const range = powers.length ? Array.from({ length: high - low + 1 }, (_, at) => low + at) : [];
    // Bucket 0 holds no bytes, bucket n holds sizes of n binary digits.
    bars(by("sizes"), range.map(power => {
      const from = power === 0 ? 0 : 2 ** (power - 1);
      return { short: bytes(from), name: from < 2 ? bytes(from) : bytes(from) + " to below " + bytes(2 * from), count: sizes.get(power) || 0 };
    }), "Calls by size");
    const spans = [...durations].map(([key, count]) => [...key.split(" ").map(Number), count]).sort((a, b) => a[0] - b[0]);
    const filled = [];
    for (const [from, to, count] of spans) {
      // Four buckets for each power of two: those in between are empty.
      let last = filled.length ? filled[filled.length - 1].to : from;
      while (last < from) {
        const step = Math.max(1, 2 ** Math.floor(Math.log2(last)) / 4);
        filled.push({ from: last, to: last + step, count: 0 });
        last += step;
      }
      filled.push({ from, to, count });
    }
    bars(by("durations"), filled.map(({ from, to, count }) => ({ short: time(from), name: time(from) + " to below " + time(to), count })), "Calls by duration");
  }
  choice.addEventListener("change", draw);
  draw();
}

// ---- Tables ----

function functionTable() {
  if (!data.functions.length) return by("function-table").append(nothing("No function was called."));
  const numeric = (title, key, show) => ({ title, value: row => row[key], show: row => show(row[key]), is: "number" });
  by("function-table").append(table(data.functions, [
    { title: "Function", value: row => row.name, show: row => el("code", { title: row.summary }, row.name) },
    numeric("Calls", "calls", number), numeric("Bytes", "bytes", bytes), numeric("Failed", "errors", failed),
    numeric("p50", "p50_ns", time), numeric("p99", "p99_ns", time), numeric("Longest", "max_ns", time),
  ], "Functions", 1));
}

function slowestTable() {
  const { calls } = data;
  if (!data.slowest.length) return by("slowest-table").append(nothing(data.totals.calls ? "How long calls took is not known." : "There are no calls."));
  by("slowest-table").append(table(data.slowest, [
    { title: "Took", value: at => calls.duration[at], show: at => time(calls.duration[at]), is: "number" },
    { title: "Function", value: at => data.functions[calls.function[at]].name, show: at => el("code", {}, data.functions[calls.function[at]].name) },
    { title: "Bytes", value: at => calls.bytes[at], show: at => bytes(calls.bytes[at]), is: "number" },
    { title: "Direction", value: at => data.directions[calls.direction[at]] },
    { title: "Returned", value: at => calls.code[at], show: at => calls.code[at] ? el("span", { class: "bad-text" }, result(calls.code[at])) : result(calls.code[at]) },
    { title: "When", value: at => calls.time[at], show: at => when(calls.time[at]), is: "number" },
    { title: "Thread", value: at => chart.tracks[calls.thread[at]].name },
    { title: "From", value: at => calls.places[calls.site[at]], show: at => el("code", {}, calls.places[calls.site[at]]), is: "wrap" },
    { title: "", show: at => showButton(at) },
  ], "Slowest calls", 0));
}

function siteTable() {
  if (!data.sites.length) return by("site-table").append(nothing("There are no calls."));
  by("site-table").append(table(data.sites, [
    { title: "Called from", value: row => row.place, show: row => el("code", {}, row.place), is: "wrap" },
    { title: "Function", value: row => row.functions.join(", "), show: row => el("code", {}, row.functions.join(", ")) },
    { title: "Calls", value: row => row.calls, show: row => number(row.calls), is: "number" },
    { title: "Bytes", value: row => row.bytes, show: row => bytes(row.bytes), is: "number" },
    { title: "Time in calls", value: row => row.busy_ns, show: row => time(row.busy_ns), is: "number" },
    { title: "Failed", value: row => row.errors, show: row => failed(row.errors), is: "number" },
    { title: "With findings", value: row => row.findings, show: row => number(row.findings), is: "number" },
  ], "Call sites", 4));
  if (data.more_sites) by("site-table").append(nothing("And " + many(data.more_sites, "call site") + " more, which took less time."));
}

by("main").hidden = by("nav").hidden = false;
head();
losses();
summary();
findings();
failures();
chart.start();
distributions();
functionTable();
slowestTable();
siteTable();
openLinked();
addEventListener("hashchange", openLinked);
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")].filter(of => of.closest("#findings"));
  closed.forEach(of => of.open = true);
  chart.redraw();
});
addEventListener("afterprint", () => { closed.forEach(of => of.open = false); chart.redraw(); });
document.documentElement.dataset.ready = "yes";
})();
