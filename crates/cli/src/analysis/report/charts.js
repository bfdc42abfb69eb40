// What charts share, and the histograms.

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
