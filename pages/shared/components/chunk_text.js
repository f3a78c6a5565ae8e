// The document stays in the browser; only the chunks' ranges travel. Colours are CSS highlights: no node is
// added and nothing is laid out anew when a slider moves.
const TINTS = ["#eab308", "#14b8a6", "#818cf8", "#f472b6"];
const views = new WeakMap();

function texts() {
  window.__ragnarTexts ??= { map: new Map(), bus: new EventTarget() };
  return window.__ragnarTexts;
}

function load(view, id) {
  if (view.id === id) return true;
  const text = texts().map.get(id);
  if (text === undefined) return false;
  Object.assign(view, { id, text, nodes: [], starts: [], chosen: -1 });
  const page = document.createDocumentFragment();
  const add = (from, to) => {
    if (to <= from) return;
    const block = document.createElement("div"), node = document.createTextNode(text.slice(from, to));
    block.append(node);
    page.append(block);
    view.nodes.push(node);
    view.starts.push(from);
  };
  let from = 0;
  for (const gap of text.matchAll(/\n{2,}/g)) { add(from, gap.index + gap[0].length); from = gap.index + gap[0].length; }
  add(from, text.length);
  view.doc.replaceChildren(page);
  view.doc.scrollTop = 0;
  return true;
}

function place(view, at) {
  let low = 0, high = view.starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (view.starts[middle] <= at) low = middle; else high = middle - 1;
  }
  return [view.nodes[low], Math.min(at - view.starts[low], view.nodes[low].length)];
}

function range(view, from, to) {
  const [startContainer, startOffset] = place(view, from), [endContainer, endOffset] = place(view, to);
  return new StaticRange({ startContainer, startOffset, endContainer, endOffset });
}

function paint(view) {
  const { ranges } = view, count = ranges.length / 2;
  const tints = TINTS.map(() => new Highlight()), overlap = new Highlight(), chosen = new Highlight();
  chosen.priority = 2;
  if (view.nodes.length) {
    for (let k = 0; k < count; k++) {
      tints[k % 4].add(range(view, ranges[2 * k], ranges[2 * k + 1]));
      if (k + 1 < count && ranges[2 * k + 2] < ranges[2 * k + 1]) overlap.add(range(view, ranges[2 * k + 2], ranges[2 * k + 1]));
    }
    if (view.chosen >= 0 && view.chosen < count) chosen.add(range(view, ranges[2 * view.chosen], ranges[2 * view.chosen + 1]));
  }
  tints.forEach((tint, i) => CSS.highlights.set(`ragnar-chunk-${i}`, tint));
  CSS.highlights.set("ragnar-overlap", overlap);
  CSS.highlights.set("ragnar-chosen", chosen);
  strip(view);
}

function strip(view) {
  const { map, ranges } = view, ratio = devicePixelRatio || 1, width = map.clientWidth, height = map.clientHeight;
  if (!width) return;
  map.width = width * ratio;
  map.height = height * ratio;
  const pen = map.getContext("2d"), length = view.text.length || 1, lane = height / 2;
  pen.scale(ratio, ratio);
  for (let k = 0; k < ranges.length / 2; k++) {
    const x = ranges[2 * k] / length * width, w = Math.max(.6, (ranges[2 * k + 1] - ranges[2 * k]) / length * width - .5);
    pen.globalAlpha = view.chosen < 0 || view.chosen === k ? 1 : .45;
    pen.fillStyle = TINTS[k % 4];
    pen.fillRect(x, (k % 2) * lane + 1, w, lane - 2);
  }
}

function choose(view, at, scroll) {
  const { ranges } = view;
  let found = -1;
  for (let k = 0; k < ranges.length / 2; k++) if (ranges[2 * k] <= at && at < ranges[2 * k + 1]) { found = k; break; }
  show(view, found, scroll);
}

function show(view, k, scroll) {
  view.chosen = k;
  paint(view);
  view.facts.replaceChildren();
  if (k < 0) { view.facts.textContent = "Point at the text or the strip to see a chunk."; return; }
  const { ranges } = view, from = ranges[2 * k], to = ranges[2 * k + 1];
  const next = 2 * k + 2 < ranges.length ? Math.max(0, to - ranges[2 * k + 2]) : 0;
  const name = document.createElement("b");
  name.textContent = `Chunk ${k + 1} of ${ranges.length / 2}`;
  const context = view.contexts[k] ? ` · in ${view.contexts[k]}` : "";
  const shared = next ? ` · shares ${next.toLocaleString()} with the next` : "";
  view.facts.append(name, ` · ${(to - from).toLocaleString()} characters${shared}${context}`);
  if (scroll) {
    const [node] = place(view, from);
    view.doc.scrollTop = node.parentElement.offsetTop - view.doc.offsetTop - 12;
    const live = document.createRange();
    live.setStart(...place(view, from));
    live.collapse(true);
    const box = live.getBoundingClientRect(), frame = view.doc.getBoundingClientRect();
    if (box.height) view.doc.scrollTop += box.top - frame.top - 24;
  }
}

function caret(view, event) {
  const root = view.doc.getRootNode();
  const position = document.caretPositionFromPoint?.(event.clientX, event.clientY, { shadowRoots: root instanceof ShadowRoot ? [root] : [] });
  const i = position ? view.nodes.indexOf(position.offsetNode) : -1;
  return i < 0 ? -1 : view.starts[i] + position.offset;
}

export default function ({ data, parentElement }) {
  const doc = parentElement.querySelector(".doc");
  let view = views.get(doc);
  if (!view) {
    view = { doc, map: parentElement.querySelector("canvas"), facts: parentElement.querySelector(".facts"), chosen: -1 };
    views.set(doc, view);
  }
  const draw = () => {
    if (!load(view, data.id)) { texts().bus.addEventListener("text", draw, { once: true }); return; }
    view.ranges = Int32Array.from(data.ranges);
    view.contexts = data.contexts;
    show(view, view.chosen < view.ranges.length / 2 ? view.chosen : -1, false);
    view.doc.dataset.chunks = view.ranges.length / 2;
    view.doc.dataset.version = data.version;
  };
  draw();
  view.map.onclick = (event) => {
    const box = view.map.getBoundingClientRect();
    choose(view, Math.floor((event.clientX - box.left) / box.width * view.text.length), true);
  };
  view.map.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, j: 1, ArrowLeft: -1, ArrowUp: -1, k: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    show(view, Math.max(0, Math.min(view.ranges.length / 2 - 1, view.chosen + step)), true);
  };
  view.doc.onclick = (event) => { const at = caret(view, event); if (at >= 0) choose(view, at, false); };
  const watch = new ResizeObserver(() => view.text !== undefined && strip(view));
  watch.observe(view.map);
  return () => watch.disconnect();
}
