// The text is cut at every chunk border; each piece knows which chunks cover it. Text nodes only.
const views = new WeakMap();

function make(tag, cls, text) {
  const node = document.createElement(tag);
  node.className = cls;
  if (text !== undefined) node.textContent = text;
  return node;
}

function pieces(data) {
  const borders = new Set([0, data.text.length]);
  for (const [, start, end] of data.chunks) {
    for (const at of [start, end]) if (at > 0 && at < data.text.length) borders.add(at);
  }
  const cuts = [...borders].sort((a, b) => a - b);
  return cuts.slice(0, -1).map((from, i) => {
    const to = cuts[i + 1];
    const over = data.chunks.filter(([, start, end]) => start < to && end > from);
    return { from, to, over, starts: data.chunks.filter(([, start]) => start === from) };
  });
}

function fill(page, data, pick) {
  const own = data.chunks.find(([id]) => id === data.chosen);
  const nodes = [];
  if (data.offset > 0) nodes.push(make("div", "cut", "…"));
  for (const { from, to, over, starts } of pieces(data)) {
    for (const [id] of starts) {
      const flag = make("button", id === data.chosen ? "flag own" : "flag", `chunk ${id}`);
      flag.type = "button";
      flag.onclick = () => pick(id);
      nodes.push(flag);
    }
    const mine = own && over.includes(own);
    const part = make("span", `part ${mine ? "own" : over.length ? "other" : "none"}${over.length > 1 ? " twice" : ""}`, data.text.slice(from, to));
    part.title = over.length ? over.map(([id]) => `chunk ${id}`).join(" and ") : "in no chunk";
    const other = over.find(([id]) => id !== data.chosen);
    if (!mine && other) part.onclick = () => { if (!String(getSelection())) pick(other[0]); };
    nodes.push(part);
  }
  if (data.offset + [...data.text].length < data.length) nodes.push(make("div", "cut", "…"));
  page.replaceChildren(...nodes);
  const first = page.querySelector(".flag.own") || page.querySelector(".own");
  page.scrollTop = first ? Math.max(0, first.offsetTop - page.offsetTop - 90) : 0;
}

function strip(canvas, data) {
  const style = getComputedStyle(canvas), ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width) return;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const draw = canvas.getContext("2d");
  draw.scale(ratio, ratio);
  const x = (at) => (at / Math.max(data.length, 1)) * width;
  const plain = style.getPropertyValue("--lane"), own = style.getPropertyValue("--own");
  const ordered = data.spans.map((span, i) => [...span, i]).sort((a, b) => (a[0] === data.chosen) - (b[0] === data.chosen));
  ordered.forEach(([id, start, end, i]) => {
    draw.fillStyle = id === data.chosen ? own : plain;
    const lane = i % 2 ? height / 2 + 1 : 0;
    const from = x(start), wide = Math.max(1, x(end) - from - (data.spans.length < width / 4 ? 1 : 0));
    draw.fillRect(from, id === data.chosen ? 0 : lane, Math.max(wide, id === data.chosen ? 3 : 1), id === data.chosen ? height : height / 2 - 1);
  });
}

export default function ({ data, parentElement, setTriggerValue }) {
  const page = parentElement.querySelector(".page"), canvas = parentElement.querySelector(".strip");
  const legend = parentElement.querySelector(".legend");
  const pick = (id) => { if (id !== data.chosen) setTriggerValue("chosen", id); };
  const view = views.get(page) || {};
  views.set(page, view);
  const signature = `${data.chosen} ${data.offset} ${data.text.length} ${data.chunks.join()}`;
  if (view.signature !== signature) {
    view.signature = signature;
    fill(page, data, pick);
    legend.replaceChildren(
      make("span", "key own", "this chunk"), make("span", "key own twice", "shared with a neighbour"),
      make("span", "key other", "neighbours: click to go there"));
  }
  canvas.onclick = (event) => {
    const at = (event.offsetX / canvas.clientWidth) * data.length;
    let best = null;
    for (const span of data.spans) if (at >= span[1] && (at < span[2] || !best)) best = span;
    if (best) pick(best[0]);
  };
  strip(canvas, data);
  view.watch?.disconnect();
  const watch = (view.watch = new ResizeObserver(() => strip(canvas, data)));
  watch.observe(canvas);
  return () => watch.disconnect();
}
