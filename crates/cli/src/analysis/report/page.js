// The sections of the page, from top to bottom.

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
    data.processes.map(row => [el("h3", {}, row.executable + ", process " + row.pid), el("p", { class: "values" }, ["library: " + (row.library || "not known"), "build id: " + (row.build_id || "not known"), ...row.settings].join("\n"))])));
}
const failed = count => count ? el("span", { class: "bad-text" }, number(count)) : "0";

// ---- Findings ----

function showButton(call, words = "Show") {
  if (call === null || call === undefined || data.calls.time[call] === null) return "";
  return el("button", { type: "button", class: "small", title: "Show in the timeline", "aria-label": "Show in the timeline", on: { click: () => chart.show(call) } }, words);
}

/// The call with the argument that is wrong marked, and what stands in the array where it is one.
function marked(of) {
  const [, call, rest] = of.values.match(/^(.*\))(?:: |; wrong argument: )(.*)$/s) || [];
  if (!call || !of.argument) return [of.values];
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
