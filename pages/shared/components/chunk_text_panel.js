// Figures beside the text. While a slider moves they are worked out from the cuts made here (tokens by the ratio that
// the server last counted); otherwise they are the server's.
const SVG = "http://www.w3.org/2000/svg";
const KIND_NAMES = { edge: "edge", heading: "heading", paragraph: "paragraph", row: "table row", cell: "table cell",
  sentence: "sentence", line: "line", word: "word", character: "character" };

const whole = (x) => Math.round(x).toLocaleString("en");
const percent = (x) => `${x > 0 && x < .01 ? "<1" : Math.round(100 * x)} %`;
const money = (x) => (x === 0 ? "none" : x < .01 ? "< 1 ¢" : `$${x.toFixed(2)}`);

function duration(seconds) {
  if (seconds === null) return "up to the service";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function readSide(sent) {
  const bytes = rawBytes(sent.tokens);
  return {
    ...sent, starts: unpacked(sent.starts), ends: unpacked(sent.ends), at: unpacked(sent.at), kinds: rawBytes(sent.kinds),
    inside: unpacked(sent.inside),
    tokens: new Int32Array(bytes.buffer, 0, bytes.length / 4),
  };
}

// A side as it would be with these cuts; `base` is what the server last said of this side.
function liveSide(cut, base, length) {
  const count = cut.ranges.length / 2, starts = new Int32Array(count), ends = new Int32Array(count);
  const tokens = new Int32Array(count);
  let total = 0, before = 0, beforeTokens = 0;
  for (let k = 0; k < base.starts.length; k++) { before += base.ends[k] - base.starts[k]; beforeTokens += base.tokens[k]; }
  const ratio = before ? beforeTokens / before : .25;
  for (let k = 0; k < count; k++) {
    starts[k] = cut.ranges[2 * k];
    ends[k] = cut.ranges[2 * k + 1];
    total += ends[k] - starts[k];
    tokens[k] = Math.round((ends[k] - starts[k]) * ratio);
  }
  const grown = before ? total / before : 1, { seconds, dollars } = base.figures;
  return {
    starts, ends, at: cut.at, kinds: cut.kinds, inside: cut.inside, tokens, live: true, contexts: [], context: [], tooLong: [], broken: base.broken,
    figures: {
      chunks: count, duplication: length ? total / length : 0, inside: cut.at.length ? cut.inside.length / cut.at.length : 0,
      tokens: total * ratio, seconds: seconds === null ? null : seconds * grown, dollars: dollars * grown,
    },
  };
}

function paintFigures(view) {
  const { sides } = view, body = element("tbody"), sure = view.counted;
  const about = (side, text) => (side.live || !sure ? `≈ ${text}` : text);
  const rows = [
    ["Chunks", (s) => whole(s.figures.chunks)],
    ["Median length", (s) => whole(median(s.starts.map((start, k) => s.ends[k] - start)))],
    ["Duplication", (s) => `${s.figures.duplication.toFixed(2)}×`, "Characters in all chunks over characters in the document"],
    ["Cuts inside a sentence", (s) => percent(s.figures.inside), "Cuts at a word, a character, in a table cell or between the wrapped lines of a sentence", (s) => s.figures.inside > .1],
    ["Tokens to embed", (s) => about(s, whole(s.figures.tokens)), "Context counted with each chunk"],
    ["Time to embed", (s) => (s.figures.seconds === null ? duration(null) : s.figures.seconds < 1 ? "< 1 s" : `≈ ${duration(s.figures.seconds)}`)],
    ["Price", (s) => money(s.figures.dollars)],
  ];
  for (const [name, value, title, warn] of rows) {
    const row = element("tr"), head = element("td", "", name);
    if (title) head.title = title;
    row.append(head, ...sides.map((side) => element("td", warn?.(side) ? "warn" : "", value(side))));
    body.append(row);
  }
  const parts = [body];
  if (sides.length > 1) {
    const head = element("thead"), row = element("tr");
    row.append(element("td"), element("th", "a", "A"), element("th", "b", "B"));
    head.append(row);
    parts.unshift(head);
  }
  view.figures.replaceChildren(...parts);
}

function median(values) {
  const sorted = Float64Array.from(values).sort();
  return sorted.length ? sorted[sorted.length >> 1] : 0;
}

function paintLengths(view) {
  const { sides, limit } = view, width = 248, bins = 32;
  const longest = Math.max(1, ...sides.map((side) => side.tokens.reduce((a, b) => Math.max(a, b), 0)));
  const top = nice(limit && limit < 2.5 * longest ? Math.max(longest, limit * 1.08) : longest);
  view.lengths.replaceChildren(...sides.map((side, which) => {
    const drawing = document.createElementNS(SVG, "svg"), height = sides.length > 1 ? 50 : 70;
    const counts = new Int32Array(bins), beyond = new Int32Array(bins);
    for (const tokens of side.tokens) {
      const bin = Math.min(bins - 1, Math.floor(tokens / top * bins));
      counts[bin]++;
      if (limit && tokens > limit) beyond[bin]++;
    }
    const most = Math.max(1, ...counts), add = (name, attributes, text) => {
      const made = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      if (text !== undefined) made.textContent = text;
      drawing.append(made);
    };
    drawing.setAttribute("viewBox", `0 -11 ${width} ${height + 25}`);
    drawing.setAttribute("class", "ab"[which]);
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", `Lengths of the chunks${sides.length > 1 ? ` of ${"AB"[which]}` : ""}: ${side.tokens.length} chunks, the longest ${side.tokens.reduce((a, b) => Math.max(a, b), 0)} tokens${limit ? `, the model reads ${limit}` : ""}`);
    counts.forEach((count, i) => {
      if (!count) return;
      const tall = Math.max(2, count / most * height);
      const over = 2 * beyond[i] > count;
      add("rect", { x: i * width / bins + .75, y: height - tall, width: width / bins - 1.5, height: tall, rx: 1.5, class: over ? "over" : "" });
    });
    add("line", { x1: 0, x2: width, y1: height + .5, y2: height + .5 });
    add("text", { x: 0, y: height + 12 }, sides.length > 1 ? `${"AB"[which]} · 0` : "0");
    add("text", { x: width, y: height + 12, "text-anchor": "end" }, whole(top));
    if (limit && limit <= top) {
      const x = limit / top * width;
      add("line", { x1: x, x2: x, y1: -2, y2: height, class: "limit" });
      add("text", { x: x < width / 2 ? x + 4 : x - 4, y: -3, "text-anchor": x < width / 2 ? "start" : "end", class: "limit" }, `the model reads ${whole(limit)}`);
    } else if (limit) add("text", { x: width, y: -3, "text-anchor": "end" }, `the model reads ${whole(limit)}, far off`);
    return drawing;
  }));
}

function nice(x) {
  const step = 10 ** Math.floor(Math.log10(x));
  return [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((m) => m * step).find((m) => m >= x);
}

function paintKinds(view) {
  const { sides } = view, counts = sides.map((side) => CUT_KINDS.map((_, kind) => side.kinds.reduce((n, k) => n + (k === kind), 0)));
  const parts = sides.map((side, which) => {
    const stack = element("div", "stack");
    counts[which].forEach((count, kind) => {
      if (!count) return;
      const bar = element("i", `k${kind}`);
      bar.style.flex = String(count);
      bar.title = `${KIND_NAMES[CUT_KINDS[kind]]}: ${count}`;
      stack.append(bar);
    });
    return stack;
  });
  const list = element("table");
  CUT_KINDS.forEach((name, kind) => {
    if (!counts.some((count) => count[kind])) return;
    const row = element("tr"), head = element("td", `k${kind}`);
    head.append(element("i", "dot"), KIND_NAMES[name]);
    row.append(head, ...sides.map((side, which) => {
      const all = side.kinds.length || 1;
      return element("td", "", sides.length > 1 ? percent(counts[which][kind] / all) : `${whole(counts[which][kind])} · ${percent(counts[which][kind] / all)}`);
    }));
    list.append(row);
  });
  if (!list.children.length) { view.kinds.replaceChildren(element("span", "", "No cuts: the whole document is one chunk.")); return; }
  view.kinds.replaceChildren(...parts, list);
}

// Lists of places that deserve a look, each a link into the text. `go(position)` jumps.
function paintLinks(view, go) {
  const side = view.sides[view.edited], found = [];
  if (side && !side.live) {
    const tables = side.broken.filter(([kind]) => kind === "table"), code = side.broken.filter(([kind]) => kind === "code");
    const count = (n, one, many) => `${whole(n)} ${n === 1 ? one : many}`;
    if (side.tooLong.length) found.push([`${count(side.tooLong.length, "chunk", "chunks")} longer than the model reads`, side.tooLong.map((k) => side.starts[k]), side.tooLong.map((k) => `${k + 1}`)]);
    if (tables.length) found.push([`${count(tables.length, "table", "tables")} that no chunk holds whole`, tables.map((b) => b[1])]);
    if (code.length) found.push([`${count(code.length, "block of code", "blocks of code")} that no chunk holds whole`, code.map((b) => b[1])]);
    const inside = [...side.inside];
    if (inside.length) found.push([`${count(inside.length, "cut", "cuts")} inside a sentence`, inside]);
    if (view.differ) {
      const [a, b] = view.differ, places = [...a, ...b].sort((x, y) => x - y);
      if (places.length) found.push([`${count(places.length, "cut differs", "cuts differ")}: ${a.length} only in A, ${b.length} only in B`, places]);
      else found.push(["A and B cut at the same places", []]);
    }
    view.troubles = [...side.tooLong.map((k) => side.starts[k]), ...side.broken.map((b) => b[1])];
  }
  if (side?.live) return;
  if (!found.length) found.push(["Nothing: no cut inside a sentence, no table or code cut apart, no chunk too long.", []]);
  view.links.replaceChildren(...found.map(([title, places, names]) => {
    const issue = element("div", places.length ? "issue" : "issue calm");
    issue.append(element("span", "", title));
    if (!places.length) return issue;
    const steps = element("span", "steps");
    let at = -1;
    for (const [sign, step, name] of [["‹", -1, "previous"], ["›", 1, "next"]]) {
      const button = element("button", "", sign);
      button.type = "button";
      button.setAttribute("aria-label", `${name}: ${title}`);
      button.onclick = () => { at = at < 0 && step < 0 ? places.length - 1 : (at + step + places.length) % places.length; go(places[at]); };
      steps.append(button);
    }
    issue.append(steps);
    if (names) {
      const list = element("span", "names");
      names.slice(0, 12).forEach((label, i) => {
        const button = element("button", "", label);
        button.type = "button";
        button.setAttribute("aria-label", `Chunk ${label}`);
        button.onclick = () => go(places[i]);
        list.append(button);
      });
      if (names.length > 12) list.append(element("small", "", `and ${names.length - 12} more`));
      issue.append(list);
    }
    return issue;
  }));
}
