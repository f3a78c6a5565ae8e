// The bench: what a person does, what the server answers, and when what is painted.
const views = new WeakMap();
const FIELDS = ["target_size", "target_overlap", "max_snap_dist", "segment_by_heading_levels", "strategy", "unit", "context", "keep_whole", "table_context"];
const MOST_CHUNKS = 50_000;

function texts() {
  window.__ragnarTexts ??= { map: new Map(), bus: new EventTarget() };
  return window.__ragnarTexts;
}

function newView(root) {
  const find = (selector) => root.querySelector(selector);
  const view = {
    bench: find(".bench"), map: find(".map"), facts: find(".facts"), doc: find(".doc"), body: find(".text"), marks: find(".marks"),
    figures: find(".figures"), lengths: find(".lengths"), kinds: find(".kinds"), links: find(".links"), problem: find(".problem"),
    find, sides: [], edited: 0, chosen: -1, hovered: -1, nodes: [], frames: new Map(), lives: 0,
  };
  const levels = find(".levels");
  for (let level = 1; level <= 6; level++) {
    const button = element("button", "", String(level));
    button.type = "button";
    button.dataset.value = level;
    button.setAttribute("aria-label", `Level ${level}`);
    levels.append(button);
  }
  return view;
}

// Once a frame, however often it is asked for.
function soon(view, name, work) {
  if (view.frames.has(name)) return;
  view.frames.set(name, requestAnimationFrame(() => { view.frames.delete(name); work(); }));
}

const edited = (view) => view.wish[view.wish.edit];

// --- what the controls show -------------------------------------------------------------------------------------

function showControls(view) {
  const { find, wish } = view, settings = edited(view), tokens = settings.unit === "tokens";
  view.bench.classList.toggle("two", Boolean(wish.b));
  view.bench.classList.toggle("edit-b", wish.edit === "b");
  for (const button of view.bench.querySelectorAll(".sides button")) press(button, button.dataset.side === wish.edit);
  find(".compare").textContent = wish.b ? "Remove B" : "Compare with B";
  const size = find("#size"), snap = find("#snap"), most = tokens ? 1000 : 4000;
  Object.assign(size, { min: tokens ? 20 : 100, max: Math.max(most, settings.target_size ?? 0), step: tokens ? 10 : 50 });
  Object.assign(snap, { max: Math.max(tokens ? 200 : 800, settings.max_snap_dist ?? 0), step: tokens ? 5 : 10 });
  set(size, settings.target_size ?? most);
  set(find("#size-n"), settings.target_size ?? "");
  find("#size-n").placeholder = "no limit";
  find(".dial .unit").textContent = tokens ? "tokens" : "chars";
  set(find("#overlap"), Math.round(100 * settings.target_overlap));
  set(find("#overlap-n"), +(100 * settings.target_overlap).toFixed(2));
  showSnap(view);
  for (const button of find(".levels").children) press(button, settings.segment_by_heading_levels.includes(+button.dataset.value));
  for (const button of find(".strategy").children) press(button, settings.strategy === button.dataset.value);
  for (const button of find(".unit-of").children) press(button, settings.unit === button.dataset.value);
  for (const name of ["context", "keep_whole", "table_context"]) find(`#${name}`).checked = settings[name];
  for (const button of find(".presets").children) press(button, same(view.presets[button.textContent], settings));
}

function showSnap(view) {
  const { find } = view, settings = edited(view), auto = settings.max_snap_dist === null;
  const distance = settings.max_snap_dist ?? ((settings.target_size ?? 0) * (1 - settings.target_overlap)) / 3;
  set(find("#snap"), distance);
  set(find("#snap-n"), Math.round(distance));
  find("#snap-auto").checked = auto;
}

function set(input, value) {
  if (input.getRootNode().activeElement !== input || input.type === "range") input.value = value;
}

const press = (button, on) => button.setAttribute("aria-pressed", String(on));
const same = (a, b) => FIELDS.every((name) => JSON.stringify(a[name]) === JSON.stringify(b[name]));

// --- what the controls do ---------------------------------------------------------------------------------------

function listen(view) {
  const { find } = view;
  const change = (changes, done) => {
    Object.assign(edited(view), changes);
    if (done) showControls(view); else showSnap(view);
    preview(view);
    if (done) commit(view); else askWhileMoving(view);
  };
  const dial = (name, read, exact) => {
    const range = find(`#${name}`), number = find(`#${name}-n`);
    range.oninput = () => { number.value = range.value; change(read(range.value), false); };
    range.onchange = () => change(read(range.value), true);
    number.onchange = () => change(read(exact(number.value)), true);
    number.onkeydown = (event) => { if (event.key === "Enter") number.blur(); };
  };
  dial("size", (value) => ({ target_size: value === "" ? null : +value }), (text) => (text === "" ? "" : Math.max(1, Math.round(+text))));
  dial("overlap", (value) => ({ target_overlap: +value / 100 }), (text) => Math.min(95, Math.max(0, +text)));
  dial("snap", (value) => ({ max_snap_dist: +value }), (text) => Math.max(0, Math.round(+text)));
  find("#snap-auto").onchange = (event) => {
    change({ max_snap_dist: event.target.checked ? null : +find("#snap").value }, true);
  };
  find(".levels").onclick = ({ target }) => {
    if (!target.dataset.value) return;
    const level = +target.dataset.value, before = edited(view).segment_by_heading_levels;
    const levels = before.includes(level) ? before.filter((one) => one !== level) : [...before, level].sort();
    change({ segment_by_heading_levels: levels }, true);
  };
  find(".strategy").onclick = ({ target }) => target.dataset.value && change({ strategy: target.dataset.value }, true);
  find(".unit-of").onclick = ({ target }) => {
    const unit = target.dataset.value, settings = edited(view);
    if (!unit || unit === settings.unit) return;
    // About four characters a token: the size stays about the same.
    const by = unit === "tokens" ? 1 / 4 : 4, scaled = (x) => (x === null ? null : Math.max(1, Math.round((x * by) / 10) * 10));
    change({ unit, target_size: scaled(settings.target_size), max_snap_dist: scaled(settings.max_snap_dist) }, true);
  };
  for (const name of ["context", "keep_whole", "table_context"]) find(`#${name}`).onchange = ({ target }) => change({ [name]: target.checked }, true);
  find(".presets").onclick = ({ target }) => {
    if (target.tagName === "BUTTON") change(structuredClone(view.presets[target.textContent]), true);
  };
  find(".reset").onclick = () => change(structuredClone(Object.values(view.presets)[0]), true);
  find(".compare").onclick = () => {
    const { wish } = view;
    if (wish.b) Object.assign(wish, { b: null, edit: "a" });
    else Object.assign(wish, { b: { ...structuredClone(wish.a), target_size: Math.max(1, Math.round((wish.a.target_size ?? 3200) / 2)) }, edit: "b" });
    showControls(view);
    commit(view);
  };
  find(".sides").onclick = ({ target }) => {
    if (!target.dataset.side || target.dataset.side === view.wish.edit) return;
    view.wish.edit = target.dataset.side;
    view.edited = Math.min(view.sides.length - 1, view.wish.edit === "b" ? 1 : 0);
    view.chosen = -1;
    showControls(view);
    paintAll(view);
    commit(view);
  };
}

function local(view) {
  const { strategy, unit, target_size: size, target_overlap: overlap } = edited(view);
  const few = size === null || view.source?.length / (size * (1 - overlap)) < MOST_CHUNKS;
  return strategy === "ragnar" && unit === "characters" && view.source && few;
}

// Cut here and paint in the next frame: this is what makes the text follow the slider.
function preview(view) {
  if (!local(view)) return;
  soon(view, "preview", () => {
    const at = view.wish.edit === "b" && view.sides.length > 1 ? 1 : 0, base = view.said[at];
    if (!base || !local(view)) return;
    view.sides[at] = liveSide(cutHere(view.source, edited(view)), base, view.source.length);
    view.edited = at;
    paintPlaces(view, false);
    soon(view, "panel", () => paintPanel(view));
    view.doc.dataset.live = ++view.lives;
  });
}

// Where only the server can cut, ask it while the slider moves, one question at a time.
function askWhileMoving(view) {
  if (local(view)) return;
  if (view.waiting) view.again = true; else commit(view);
}

function commit(view) {
  view.wish.seq++;
  view.waiting = true;
  view.again = false;
  view.send("wish", structuredClone(view.wish));
}

// --- painting ---------------------------------------------------------------------------------------------------

function paintAll(view, textIsPainted = false) {
  paintPanel(view);
  paintPlaces(view, textIsPainted);
}

function paintPlaces(view, textIsPainted) {
  // The chosen place stays where it is in the text, whatever number its chunk has now.
  if (view.chosen >= 0) view.chosen = chunkAt(view, view.chosenAt);
  if (!textIsPainted) {
    view.hovered = -1;
    paintText(view);
  }
  paintStrip(view);
  showFacts(view);
}

function paintPanel(view) {
  paintFigures(view);
  paintLengths(view);
  paintKinds(view);
  paintLinks(view, (at) => jump(view, at));
}

function showFacts(view) {
  const side = view.sides[view.edited], k = view.hovered >= 0 ? view.hovered : view.chosen, { facts, map } = view;
  const count = side?.starts.length ?? 0;
  map.setAttribute("aria-valuemax", count);
  map.setAttribute("aria-valuenow", k + 1);
  facts.replaceChildren();
  if (!count) return;
  if (k < 0) {
    facts.textContent = "Point at the text or the strip to see a chunk; arrow keys on the strip go from one to the next.";
    map.setAttribute("aria-valuetext", `${count} chunks`);
    return;
  }
  const from = side.starts[k], to = side.ends[k], swatch = element("i", "swatch");
  swatch.style.background = TINTS[k % 4];
  const name = element("b", "", `Chunk ${whole(k + 1)} of ${whole(count)}`);
  const next = k + 1 < count ? Math.max(0, to - side.starts[k + 1]) : 0;
  const parts = [
    ` · ${whole(from)}–${whole(to)} · ${whole(to - from)} characters · ${side.live || !view.counted ? "≈ " : ""}${whole(side.tokens[k])} tokens`,
    next ? ` · shares ${whole(next)} with the next` : "",
    side.context.length && side.contexts[side.context[k]] ? ` · in ${plainContext(side.contexts[side.context[k]])}` : "",
  ];
  facts.append(swatch, name, parts.join(""));
  facts.title = facts.textContent;
  map.setAttribute("aria-valuetext", facts.textContent);
}

function plainContext(context) {
  const lines = context.split("\n").filter((line) => !/^[\s|:-]*$/.test(line));
  return lines.map((line) => (line.startsWith("|") ? `table of ${line.split(/(?<!\\)\|/).map((cell) => cell.trim()).filter(Boolean).join(", ")}` : line.replace(/^#+\s*/, "").trim()))
    .map((line) => line.replace(/\\([!-/:-@[-`{-~])/g, "$1")).join(" › ");
}

// --- pointing and going -----------------------------------------------------------------------------------------

function chunkAt(view, at) {
  const side = view.sides[view.edited];
  const k = side ? upperBound(side.ends, at) : 0;
  return side && k < side.starts.length && side.starts[k] <= at ? k : -1;
}

function choose(view, k, scroll) {
  view.chosen = k;
  view.chosenAt = view.sides[view.edited]?.starts[k];
  view.hovered = -1;
  if (scroll && k >= 0) scrollToPosition(view, view.sides[view.edited].starts[k]);
  paintText(view);
  paintStrip(view);
  showFacts(view);
}

function jump(view, at) {
  choose(view, chunkAt(view, at), false);
  if (view.chosen >= 0) view.chosenAt = at;
  scrollToPosition(view, at);
}

function scrollToPosition(view, at) {
  if (!view.nodes.length) return;
  const [node] = place(view, at);
  const settle = () => {
    const box = caretBox(view, at) ?? node.parentElement.getBoundingClientRect();
    view.doc.scrollTop += box.top - view.doc.getBoundingClientRect().top - Math.min(120, view.doc.clientHeight / 4);
  };
  settle();
  // Blocks that come into view get their real height one frame later.
  requestAnimationFrame(() => { settle(); requestAnimationFrame(settle); });
}

function positionUnder(view, event) {
  const root = view.doc.getRootNode(), options = root instanceof ShadowRoot ? { shadowRoots: [root] } : {};
  const found = document.caretPositionFromPoint?.(event.clientX, event.clientY, options);
  const i = found?.offsetNode?.nodeType === Node.TEXT_NODE ? view.nodes.indexOf(found.offsetNode) : -1;
  return i < 0 ? -1 : view.source.point(view.nodeStarts[i] + found.offset);
}

function point(view) {
  const { map, doc } = view;
  const along = (event) => {
    const box = map.getBoundingClientRect();
    return Math.max(0, Math.min(view.source.length - 1, Math.floor((event.clientX - box.left) / box.width * view.source.length)));
  };
  map.onpointerdown = (event) => {
    if (!view.source?.length) return;
    map.setPointerCapture(event.pointerId);
    const box = map.getBoundingClientRect();
    if (view.sides.length > 1) {
      const which = (event.clientY - box.top) / box.height < .45 ? "a" : "b";
      if (which !== view.wish.edit) view.find(`.sides [data-side=${which}]`).click();
    }
    choose(view, chunkAt(view, along(event)), true);
  };
  map.onpointermove = (event) => { if (map.hasPointerCapture(event.pointerId)) soon(view, "scrub", () => choose(view, chunkAt(view, along(event)), true)); };
  const step = (event, keys) => {
    const count = view.sides[view.edited]?.starts.length ?? 0;
    const to = { Home: 0, End: count - 1 }[event.key] ?? view.chosen + (keys[event.key] ?? 0);
    if (!count || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    choose(view, Math.max(0, Math.min(count - 1, to)), true);
  };
  map.onkeydown = (event) => step(event, { ArrowRight: 1, ArrowDown: 1, j: 1, ArrowLeft: -1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10, Home: 0, End: 0 });
  doc.onkeydown = (event) => step(event, { j: 1, k: -1, ArrowRight: 1, ArrowLeft: -1 });
  doc.onclick = (event) => { const at = positionUnder(view, event); if (at >= 0) choose(view, chunkAt(view, at), false); };
  doc.onpointermove = (event) => soon(view, "hover", () => {
    const at = positionUnder(view, event), k = at < 0 ? -1 : chunkAt(view, at);
    if (k === view.hovered) return;
    view.hovered = k;
    paintText(view);
    showFacts(view);
  });
  doc.onpointerleave = () => { view.hovered = -1; paintText(view); showFacts(view); };
  doc.onscroll = () => soon(view, "scroll", () => { paintText(view); paintStrip(view); });
}

const equal = (a, b) => a?.length === b?.length && a.every((one, i) => one === b[i]);

// --- what the server says ---------------------------------------------------------------------------------------

function hear(view, data) {
  const source = texts().map.get(data.id);
  if (!source) return false;
  const first = !view.wish, newText = view.source?.id !== data.id;
  view.presets = data.presets;
  if (first) {
    view.find(".presets").replaceChildren(...Object.keys(data.presets).map((name) => Object.assign(element("button", "", name), { type: "button" })));
  }
  view.problem.hidden = !data.problem;
  view.problem.textContent = data.problem ?? "";
  view.waiting = false;
  if (newText) layText(view, readText(source));
  view.said = data.sides.map(readSide);
  view.limit = data.limit;
  view.counted = data.counted;
  // An answer to an older wish is only painted where nothing newer was cut here.
  const late = !first && !newText && data.wish.seq < view.wish.seq;
  if (!late) view.wish = structuredClone(data.wish);
  if (!late || !local(view)) {
    const drawn = view.sides[view.edited], known = !newText && drawn?.live && equal(drawn.at, view.said[view.edited]?.at);
    view.sides = [...view.said];
    view.differ = data.differ?.map(unpacked);
    view.edited = view.wish.edit === "b" && view.sides.length > 1 ? 1 : 0;
    if (!late) showControls(view);
    // Cut here already and the same: the text is painted, only the figures are new.
    paintAll(view, known && !view.differ);
  }
  Object.assign(view.doc.dataset, { chunks: view.sides[view.edited]?.starts.length ?? 0, version: data.wish.seq, document: data.id });
  if (view.again) commit(view);
  return true;
}

export default function ({ data, parentElement, setStateValue }) {
  const key = parentElement.querySelector(".doc");
  let view = views.get(key);
  if (!view) {
    view = newView(parentElement);
    views.set(key, view);
    listen(view);
    point(view);
  }
  view.send = setStateValue;
  view.leave?.();
  const { bus } = texts();
  const draw = () => { if (!hear(view, data)) bus.addEventListener("text", draw, { once: true }); };
  draw();
  const go = ({ detail }) => { if (detail.id === view.source?.id) { jump(view, detail.at); view.doc.focus({ preventScroll: true }); view.bench.querySelector(".map").scrollIntoView({ block: "start", behavior: "smooth" }); } };
  const mark = ({ detail }) => { if (detail.id === view.source?.id) { view.hits = detail.hits; paintStrip(view); } };
  bus.addEventListener("jump", go);
  bus.addEventListener("hits", mark);
  const watch = new ResizeObserver(() => soon(view, "resize", () => { if (view.source) { paintText(view); paintStrip(view); } }));
  watch.observe(view.map);
  view.leave = () => {
    watch.disconnect();
    bus.removeEventListener("text", draw);
    bus.removeEventListener("jump", go);
    bus.removeEventListener("hits", mark);
  };
  return view.leave;
}
