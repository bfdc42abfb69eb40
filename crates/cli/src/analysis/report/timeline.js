// The timeline: bandwidth and tracks over one range of time, which can be zoomed and moved.

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
    if (calls.scope[index]) lines.push("in scope " + calls.scopes[calls.scope[index]]);
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
    for (const gap of data.timeline.gaps) {
      if (tracks[gap.track] !== track || gap.to < view.from || gap.from > view.to) continue;
      const [x0, x1] = [to.x(gap.from), Math.max(to.x(gap.to), to.x(gap.from) + 2)];
      pen.globalAlpha = 0.28;
      pen.fillStyle = color.error;
      pen.fillRect(x0, y, x1 - x0, tall);
      pen.globalAlpha = 1;
      drawn[1].push({ x0, x1, y0: y, y1: y + tall, lines: () => [many(gap.calls, "call") + " not recorded", "between " + when(Math.max(0, gap.from)) + " and " + when(gap.to)] });
    }
    drawSaid(pen, track, y, tall, to, color);
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
  /// Scopes as frames around their time, marks as lines across it.
  function drawSaid(pen, track, y, tall, to, color) {
    for (const said of data.timeline.said) {
      const end = said.kind === "mark" ? said.at : said.to ?? view.to;
      if (tracks[said.track] !== track || end < view.from || said.at > view.to) continue;
      const [x0, x1] = [Math.max(to.x(said.at), to.left - 4), Math.min(to.x(end), to.wide + 4)];
      pen.strokeStyle = said.failures ? color.error : color.focus;
      pen.lineWidth = 1.5;
      if (said.kind === "mark") {
        pen.beginPath(); pen.moveTo(x0, y - 3); pen.lineTo(x0, y + tall + 3); pen.stroke();
        drawn[1].push({ x0: x0 - 1, x1: x0 + 1, y0: y - 3, y1: y + tall + 3, lines: () => ["mark: " + said.text, when(said.at)] });
      } else {
        pen.strokeRect(x0, y - 2, Math.max(x1 - x0, 2), tall + 4);
        drawn[1].push({ x0, x1: Math.max(x1, x0 + 2), y0: y - 3, y1: y + tall + 3, lines: () => saidLines(said) });
      }
      pen.lineWidth = 1;
    }
  }
  const saidLines = said => ["scope " + said.text, "from " + when(Math.max(0, said.at)) + (said.to === null ? ", still open" : ", " + time(said.to - said.at) + " long"),
    ...(said.failures ? [el("div", { class: "bad-text" }, many(said.failures, "failed expectation"))] : [])];

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

  function listSaid() {
    const { said, more_said: more } = data.timeline;
    by("said-box").hidden = !said.length;
    if (!said.length) return;
    by("said-table").append(table(said, [
      { title: "What", value: row => row.kind },
      { title: "Text", value: row => row.text, is: "wrap" },
      { title: "When", value: row => row.at, show: row => row.at < 0 ? "before the first call" : when(row.at), is: "number" },
      { title: "Lasted", value: row => row.to === null ? -1 : row.to - row.at, show: row => row.kind === "mark" ? "" : row.to === null ? "still open" : time(row.to - row.at), is: "number" },
      { title: "Failed expectations", value: row => row.failures, show: row => failed(row.failures), is: "number" },
      { title: "Track", value: row => tracks[row.track].name },
    ], "Marks and scopes" + (more ? " (" + number(more) + " more are not listed)" : "")));
  }

  function start() {
    listTracks();
    listSaid();
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
      data.rules.length ? el("span", {}, el("i", { class: "swatch mark-finding" }), "has findings") : "",
      data.timeline.said.length ? el("span", {}, el("i", { class: "swatch said" }), "marks and scopes") : "",
      data.timeline.gaps.length ? el("span", {}, el("i", { class: "swatch gap" }), "calls are missing") : "");
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
