// Drawing on the text and on the strip. Colours are CSS highlights: no node is added to the text and nothing is laid
// out anew when a slider moves. Only what is near the visible part is painted, so length does not matter.
const TINTS = ["#eab308", "#14b8a6", "#818cf8", "#f472b6"];
const TONES = ["fair", "good", "good", "good", "poor", "good", "fair", "poor", "bad"];
const LONGEST_BLOCK = 3000;

function unpacked(text) {
  const bytes = atob(text), out = [];
  let at = 0;
  for (let i = 0; i < bytes.length; i++) {
    const step = bytes.charCodeAt(i);
    at += step;
    if (step < 255) out.push(at);
  }
  return Int32Array.from(out);
}

function rawBytes(text) {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

// What the carrier sent, made ready once a document: positions are code points, `unit` and `point` convert.
function readText(sent) {
  if (!sent.ready) {
    for (const name of ["astral", "headings", "tables", "code", "lineEnds", "joined", "suspicious"]) sent[name] = unpacked(sent[name]);
    sent.lists = sent.lists.map(unpacked);
    const wide = sent.astral.map((at, i) => at + i);
    sent.unit = (at) => at + lowerBound(sent.astral, at);
    sent.point = (unit) => unit - lowerBound(wide, unit);
    sent.ready = true;
  }
  return sent;
}

// Blocks of some thousand characters that end at a line: few enough to lay out 1 MB quickly, and what is far out of
// sight is not laid out at all.
function layText(view, source) {
  const { text } = source, page = document.createDocumentFragment();
  Object.assign(view, { source, nodes: [], nodeStarts: [], chosen: -1, hovered: -1, hits: [], troubles: [] });
  for (let from = 0; from < text.length;) {
    let to = Math.min(text.length, from + LONGEST_BLOCK);
    if (to < text.length) {
      const near = text.slice(from, to);
      to = from + (near.lastIndexOf("\n\n") + 2 > 2 ? near.lastIndexOf("\n\n") + 2 : near.lastIndexOf("\n") + 1 || near.lastIndexOf(" ") + 1 || LONGEST_BLOCK);
      if (/[\uD800-\uDBFF]/.test(text[to - 1])) to--;
    }
    const block = document.createElement("div"), node = document.createTextNode(text.slice(from, to));
    const lines = node.data.split("\n").reduce((sum, line) => sum + Math.ceil((line.length || 1) / 58), -1);
    block.style.containIntrinsicBlockSize = `auto ${Math.max(1, lines) * 22}px`;
    block.append(node);
    page.append(block);
    view.nodes.push(node);
    view.nodeStarts.push(from);
    from = to;
  }
  view.body.replaceChildren(page);
  view.body.classList.toggle("empty", !text.length);
  view.bench.classList.toggle("none", !text.length);
  if (!text.length) view.body.textContent = "This document is empty, so it has no chunks. Choose another one above.";
  view.doc.scrollTop = 0;
}

function place(view, at) {
  const unit = view.source.unit(at), i = Math.max(0, upperBound(view.nodeStarts, unit) - 1);
  return [view.nodes[i], Math.min(unit - view.nodeStarts[i], view.nodes[i].length)];
}

function stretch(view, from, to) {
  const [startContainer, startOffset] = place(view, from), [endContainer, endOffset] = place(view, to);
  return new StaticRange({ startContainer, startOffset, endContainer, endOffset });
}

// The code points shown now, a screen more on either side.
function visiblePart(view) {
  if (!view.nodes.length) return [0, 0];
  const frame = view.doc.getBoundingClientRect();
  const first = blockAt(view, frame.top - frame.height / 2), last = blockAt(view, frame.bottom + frame.height / 2);
  const end = view.nodeStarts[last] + view.nodes[last].length;
  return [view.source.point(view.nodeStarts[first]), view.source.point(end)];
}

function blockAt(view, y) {
  let low = 0, high = view.nodes.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (view.nodes[middle].parentElement.getBoundingClientRect().top <= y) low = middle; else high = middle - 1;
  }
  return low;
}

function paintText(view) {
  const side = view.sides[view.edited];
  const tints = TINTS.map(() => new Highlight()), shared = new Highlight();
  const chosen = TINTS.map(() => Object.assign(new Highlight(), { priority: 2 }));
  view.part = visiblePart(view);
  if (side && view.nodes.length) {
    const [from, to] = view.part, { starts, ends } = side;
    for (let k = upperBound(ends, from); k < starts.length && starts[k] < to; k++) {
      tints[k % 4].add(stretch(view, Math.max(starts[k], from), Math.min(ends[k], to)));
      if (k + 1 < starts.length && starts[k + 1] < ends[k] && ends[k] > from) {
        shared.add(stretch(view, Math.max(starts[k + 1], from), Math.min(ends[k], to)));
      }
    }
    const k = view.hovered >= 0 ? view.hovered : view.chosen;
    if (k >= 0 && k < starts.length) chosen[k % 4].add(stretch(view, starts[k], ends[k]));
  }
  tints.forEach((tint, i) => CSS.highlights.set(`ragnar-chunk-${i}`, tint));
  CSS.highlights.set("ragnar-overlap", shared);
  chosen.forEach((tint, i) => CSS.highlights.set(`ragnar-chosen-${i}`, tint));
  paintMarks(view);
}

// A bracket at every cut in sight, and in the margin what kind of boundary it is.
function paintMarks(view) {
  const side = view.sides[view.edited], drawn = document.createDocumentFragment();
  if (side && view.nodes.length) {
    const frame = view.doc.getBoundingClientRect(), [from, to] = view.part;
    const lines = new Map(), top = frame.top - 40, bottom = frame.bottom + 40;
    const offset = view.doc.scrollTop - frame.top, left = view.doc.clientLeft + frame.left;
    const mark = (at, tone, label, edges) => {
      const box = caretBox(view, at);
      if (!box || box.bottom < top || box.top > bottom) return;
      const bracket = document.createElement("i"), y = box.top + offset;
      bracket.className = `${edges} ${tone}`;
      bracket.style.cssText = `left:${box.left - left}px;top:${y}px;height:${box.height}px`;
      drawn.append(bracket);
      const key = Math.round(y / 4), known = lines.get(key);
      if (!known) lines.set(key, { y, height: box.height, tone, labels: [label] });
      else if (!known.labels.includes(label)) known.labels.push(label);
    };
    for (let i = lowerBound(side.at, from); i < side.at.length && side.at[i] <= to && lines.size < 120; i++) {
      const at = side.at[i], starts = side.starts[lowerBound(side.starts, at)] === at;
      const edges = `${starts ? "start" : ""} ${side.ends[lowerBound(side.ends, at)] === at ? "end" : ""}`;
      mark(at, TONES[side.kinds[i]], CUT_KINDS[side.kinds[i]], edges);
    }
    if (view.sides.length > 1) {
      const other = view.sides[1 - view.edited].at, name = `only ${view.edited ? "A" : "B"}`;
      view.marks.style.setProperty("--other", view.edited ? "var(--a)" : "var(--b)");
      for (let i = lowerBound(other, from); i < other.length && other[i] <= to && lines.size < 160; i++) {
        if (side.at[lowerBound(side.at, other[i])] !== other[i]) mark(other[i], "other", name, "start end");
      }
    }
    for (const { y, height, tone, labels } of lines.values()) {
      const label = document.createElement("span");
      label.className = tone;
      label.style.top = `${y + (height - 15) / 2}px`;
      label.textContent = labels.join(", ");
      drawn.append(label);
    }
  }
  view.marks.replaceChildren(drawn);
}

function caretBox(view, at) {
  const [node, offset] = place(view, at), range = document.createRange();
  if (offset < node.length) {
    range.setStart(node, offset);
    range.setEnd(node, offset + 1);
    const box = range.getClientRects()[0];
    if (box?.height) return box;
  }
  if (offset === 0) return null;
  range.setStart(node, offset - 1);
  range.setEnd(node, Math.min(offset, node.length));
  const before = [...range.getClientRects()].at(-1);
  return before?.height ? { left: before.right, top: before.top, bottom: before.bottom, height: before.height } : null;
}

// Two lanes a side: chunks alternate between them; what two chunks share is darker. Below: the trouble spots.
function paintStrip(view) {
  const { map, sides } = view, ratio = devicePixelRatio || 1, width = map.clientWidth, height = map.clientHeight;
  if (!width || !view.source) return;
  if (map.width !== Math.round(width * ratio)) map.width = Math.round(width * ratio);
  if (map.height !== Math.round(height * ratio)) map.height = Math.round(height * ratio);
  const pen = map.getContext("2d"), length = view.source.length || 1, scale = width / length;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const style = getComputedStyle(view.bench), ink = style.getPropertyValue("--st-text-color");
  const foot = 10, each = (height - foot) / Math.max(1, sides.length);
  sides.forEach((side, which) => {
    const top = which * each + 3, lane = (each - 5) / 2, pale = sides.length > 1 && which !== view.edited;
    // One path a colour: thousands of bars cost four fills.
    const bars = [...TINTS.map(() => new Path2D()), new Path2D()], drawn = [-1, -1];
    const at = which === view.edited ? view.chosen : -1;
    for (let k = 0; k < side.starts.length; k++) {
      const x = side.starts[k] * scale, end = side.ends[k] * scale;
      if (end < drawn[k % 2] + .5) continue;
      drawn[k % 2] = end;
      const y = top + (k % 2) * (lane + 1), w = Math.max(.7, end - x - (end - x > 3 ? 1 : 0));
      if (w > 6) bars[k % 4].roundRect(x, y, w, lane, 3); else bars[k % 4].rect(x, y, w, lane);
      const shared = k + 1 < side.starts.length ? side.starts[k + 1] * scale : end;
      if (end - shared > 1.5) bars[4].rect(shared, y, end - shared - 1, lane);
    }
    pen.globalAlpha = pale ? .4 : at >= 0 ? .55 : .9;
    TINTS.forEach((tint, i) => { pen.fillStyle = tint; pen.fill(bars[i]); });
    pen.globalAlpha = pale ? .1 : .2;
    pen.fillStyle = ink;
    pen.fill(bars[4]);
    if (at >= 0 && at < side.starts.length) {
      const x = side.starts[at] * scale;
      pen.globalAlpha = 1;
      pen.fillStyle = TINTS[at % 4];
      pen.fillRect(x, top + (at % 2) * (lane + 1), Math.max(2, (side.ends[at] - side.starts[at]) * scale - 1), lane);
    }
    if (sides.length > 1) {
      pen.globalAlpha = 1;
      pen.fillStyle = ink;
      pen.font = "700 11px sans-serif";
      pen.strokeStyle = style.getPropertyValue("--st-background-color");
      pen.lineWidth = 3;
      pen.strokeText("AB"[which], 4, top + lane + 4);
      pen.fillText("AB"[which], 4, top + lane + 4);
    }
  });
  pen.globalAlpha = 1;
  pen.fillStyle = style.getPropertyValue("--bad");
  for (const at of view.troubles ?? []) pen.fillRect(at * scale - 1, height - 8, 2, 5);
  pen.fillStyle = style.getPropertyValue("--st-primary-color");
  for (const at of view.hits ?? []) {
    pen.beginPath();
    pen.arc(at * scale, height - 5, 3, 0, 7);
    pen.fill();
  }
  const [from, to] = shownPart(view);
  pen.strokeStyle = ink;
  pen.lineWidth = 1.5;
  pen.globalAlpha = .75;
  pen.beginPath();
  pen.roundRect(from * scale + .75, .75, Math.max(4, (to - from) * scale - 1.5), height - 1.5, 4);
  pen.stroke();
  pen.globalAlpha = 1;
}

// Roughly what is on screen, without the margin that `visiblePart` adds.
function shownPart(view) {
  if (!view.nodes.length) return [0, 0];
  const frame = view.doc.getBoundingClientRect();
  return [positionAt(view, frame.top), positionAt(view, frame.bottom)];
}

function positionAt(view, y) {
  const i = blockAt(view, y), box = view.nodes[i].parentElement.getBoundingClientRect();
  const part = box.height ? Math.min(1, Math.max(0, (y - box.top) / box.height)) : 0;
  return view.source.point(Math.round(view.nodeStarts[i] + part * view.nodes[i].length));
}
