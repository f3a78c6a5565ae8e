// Ranked lists side by side; a passage that stands in two neighbouring lists is joined by a line.
// Every text is put in as textContent: documents never become markup here.
const states = new WeakMap();
const TONES = {
  vss: "var(--st-violet-color)", bm25: "var(--st-orange-color)", hybrid: "var(--st-primary-color)",
  union: "var(--st-primary-color)", a: "var(--st-blue-color)", b: "var(--st-red-color)",
};
const KEYS = [["/", "query"], ["↑ ↓", "passages"], ["← →", "the same passage in the next list"], ["Enter", "why"], ["Esc", "close"]];
const SVG = "http://www.w3.org/2000/svg";
const calm = matchMedia("(prefers-reduced-motion: reduce)");

function make(tag, cls, text) {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  if (text !== undefined) node.textContent = text;
  return node;
}

function marked(node, text, ranges) {
  let at = 0;
  for (const [from, to] of ranges) {
    if (from < at) continue;
    node.append(text.slice(at, from), make("mark", "", text.slice(from, to)));
    at = to;
  }
  node.append(text.slice(at));
  return node;
}

function originLine(origin) {
  const node = make("span", "origin");
  const cut = origin.replace(/\/+$/, "").lastIndexOf("/") + 1;
  if (cut > 0) node.append(make("span", "folder", origin.slice(0, cut)));
  node.append(make("span", "name", origin.slice(cut)));
  node.title = origin;
  return node;
}

function figureStrip(strip, data) {
  strip.hidden = !data.figures.length;
  const parts = data.figures.map((figure) => {
    const node = make("div", "figure");
    node.title = figure.says;
    node.append(make("span", "label", figure.label), make("b", "", figure.value));
    return node;
  });
  if (data.split && data.split.some(Boolean)) {
    const bar = make("div", "split");
    const [left, both, right] = data.split;
    const last = data.columns.length - 1;
    const say = `${left} only ${data.columns[0].title}, ${both} in both, ${right} only ${data.columns[last].title}`;
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", say);
    bar.title = say;
    [[left, TONES[data.columns[0].tone]], [both, ""], [right, TONES[data.columns[last].tone]]].forEach(([n, tone]) => {
      if (!n) return;
      const piece = make("i", tone ? "" : "both");
      piece.style.flexGrow = n;
      if (tone) piece.style.background = tone;
      bar.append(piece);
    });
    parts.unshift(bar);
  }
  if (parts.length) {
    const link = make("button", "link", "Copy link");
    link.type = "button";
    link.title = "The address of this page holds the store, the query and all settings.";
    link.onclick = () => copied(link, location.href, "Copy link");
    parts.push(link);
  }
  strip.replaceChildren(...parts);
}

async function copied(button, text, label) {
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
  catch { button.textContent = "Copying is blocked here"; }
  setTimeout(() => { button.textContent = label; }, 1500);
}

function explained(part, opened, wish) {
  const box = make("section", "part");
  box.append(make("h4", "", part.title));
  for (const line of part.lines) box.append(make("p", "", line));
  if (part.rows.length) {
    const table = make("table");
    const row = (cells, tag, bar) => {
      const tr = make("tr");
      tr.append(...cells.map((cell) => make(tag, "", cell)));
      if (bar !== undefined) {
        if (!bar) tr.className = "none";
        const last = tr.lastChild;
        last.classList.add("bar");
        last.style.setProperty("--share", `${Math.max(0, Math.min(1, bar)) * 100}%`);
      }
      table.append(tr);
      return tr;
    };
    row(part.columns, "th");
    part.rows.forEach((cells, i) => row(cells, "td", part.bars[i]));
    if (part.total.length) row(part.total, "td").className = "total";
    const scroll = make("div", "scroll");
    scroll.append(table);
    box.append(scroll);
  }
  if (part.sentences && opened.sentences) {
    const list = make("ol", "sentences");
    for (const [from, to, similarity] of opened.sentences) {
      const item = make("li");
      item.append(make("b", "", similarity.toFixed(3)), make("span", "", opened.text.slice(from, to)));
      list.append(item);
    }
    box.append(make("p", "quiet", "Nearest sentences, by cosine similarity (1 is the same direction):"), list);
  } else if (part.sentences) {
    const button = make("button", "small", "Which sentences are nearest?");
    button.type = "button";
    button.dataset.key = "sentences";
    button.onclick = () => { button.textContent = "Embedding the sentences …"; wish(); };
    box.append(button);
  }
  return box;
}

function passage(opened) {
  const node = make("pre", "text");
  node.tabIndex = 0;
  const nearest = (opened.sentences || []).slice(0, 3).map(([from, to]) => [from, to]).sort((a, b) => a[0] - b[0]);
  let at = 0;
  const within = (from, to) => opened.marks.filter(([a, b]) => a >= from && b <= to).map(([a, b]) => [a - from, b - from]);
  for (const [from, to] of nearest) {
    if (from < at) continue;
    marked(node, opened.text.slice(at, from), within(at, from));
    node.append(marked(make("span", "near"), opened.text.slice(from, to), within(from, to)));
    at = to;
  }
  return marked(node, opened.text.slice(at), within(at, opened.text.length));
}

function details(hit, card, data, wishes) {
  const box = make("div", "full");
  const opened = data.opened?.card === card ? data.opened : null;
  if (!opened) {
    box.append(make("p", "quiet", "Working it out …"));
    return box;
  }
  for (const part of opened.parts) box.append(explained(part, opened, () => wishes.sentences(card)));
  box.append(make("h4", "", "Passage"), make("p", "quiet", opened.facts), passage(opened));
  const actions = make("div", "actions");
  const inspect = make("button", "", "Open in Inspect");
  inspect.onclick = () => wishes.inspect(hit.id, card);
  const copy = make("button", "", "Copy passage");
  copy.onclick = () => copied(copy, opened.text, "Copy passage");
  for (const button of [inspect, copy]) button.type = "button";
  actions.append(inspect, copy);
  box.append(actions);
  return box;
}

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const [strip, tabs, board, hint] = [".strip", ".tabs", ".board", ".hint"].map((name) => parentElement.querySelector(name));
  const state = states.get(board) || { open: null, shown: 0, drawn: "" };
  states.set(board, state);
  if (state.query !== data.query) Object.assign(state, { open: null, query: data.query });
  if (state.shown >= data.columns.length) state.shown = 0;
  const root = board.getRootNode();
  const wishes = {
    sentences: (card) => setStateValue("sentences", { query: data.query, card }),
    inspect: (id, card) => setTriggerValue("action", { inspect: id, column: Number(card.split(":")[0]) }),
  };
  const columns = data.columns;

  const toggle = (card) => {
    state.open = state.open === card ? null : card;
    draw();
    setStateValue("open", state.open ? { query: data.query, card } : null);
  };

  const cardOf = (hit, c, i, column) => {
    const item = make("article", "hit");
    const card = `${c}:${hit.id}`;
    item.dataset.id = hit.id;
    item.dataset.card = card;
    if (hit.reason) item.classList.add("lost");
    if (hit.badges.length && hit.badges.every((badge) => badge.kind === "only")) item.classList.add("solo");
    const button = make("button", "face");
    button.type = "button";
    const first = make("span", "line");
    first.append(make("span", "rank", hit.rank), originLine(hit.origin));
    if (hit.share !== null) {
      const bar = make("span", "meter");
      bar.append(make("i"));
      bar.firstChild.style.width = `${Math.max(0, Math.min(1, hit.share)) * 100}%`;
      first.append(bar);
    }
    const score = make("span", "score", hit.score);
    score.title = column.metric;
    first.append(score, make("span", "chevron"));
    const second = make("span", "line second");
    second.append(make("span", "context", hit.context));
    for (const badge of hit.badges) {
      const node = make("span", `badge ${badge.kind}`, badge.text);
      node.title = badge.says;
      second.append(node);
    }
    button.append(first, second);
    if (hit.reason) button.append(make("span", "reason", hit.reason));
    if (hit.snippet) button.append(marked(make("span", "snippet"), hit.snippet, hit.marks));
    button.setAttribute("aria-expanded", state.open === card);
    const says = hit.badges.map((badge) => badge.says).concat(hit.reason || []).join(", ");
    button.setAttribute("aria-label",
      `${column.title} rank ${hit.rank}: ${hit.origin}, ${column.metric}: ${hit.score}${says ? `, ${says}` : ""}`);
    button.dataset.key = card;
    button.onclick = () => toggle(card);
    item.append(button);
    if (state.open === card) item.append(details(hit, card, data, wishes));
    return item;
  };

  const draw = () => {
    const focused = root.activeElement?.dataset?.key;
    const before = new Map([...board.querySelectorAll(".hit")]
      .filter((node) => node.offsetWidth).map((node) => [node.dataset.card, node.getBoundingClientRect().top]));
    const parts = [];
    columns.forEach((column, c) => {
      const col = make("section", "col");
      col.setAttribute("aria-label", `${column.title} results`);
      col.classList.toggle("shown", c === state.shown);
      col.style.setProperty("--tone", TONES[column.tone] || TONES.hybrid);
      const head = make("header", "head");
      head.append(make("b", "", column.title), make("span", "", column.metric));
      head.title = column.metric;
      if (columns.some((one) => one.note)) head.append(make("span", "note", column.note || "default settings"));
      col.append(head);
      if (!column.hits.length) col.append(make("div", "empty", column.empty));
      column.hits.forEach((hit, i) => col.append(cardOf(hit, c, i, column)));
      if (column.lost) {
        col.append(make("div", "skip", "⋯"));
        col.append(cardOf(column.lost, c, column.hits.length, column));
      }
      if (c > 0) parts.push(make("span", "gap"));
      parts.push(col);
    });
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("aria-hidden", "true");
    const wide = columns.length > 2 && state.open ? Number(state.open.split(":")[0]) : -1;
    const widths = columns.map((_, c) => `minmax(0, ${c === wide ? 2 : 1}fr)`);
    board.style.setProperty("--columns", widths.join(" minmax(26px, 56px) "));
    board.replaceChildren(...parts, svg);
    board.classList.toggle("three", columns.length > 2);
    tabs.replaceChildren(...(columns.length < 2 ? [] : columns.map(tab)));
    const at = (key) => root.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (focused) (at(focused) || (state.open && at(state.open)))?.focus({ preventScroll: true });
    move(before);
  };

  const tab = (column, c) => {
    const button = make("button", c === state.shown ? "on" : "", `${column.title} · ${column.hits.length}`);
    button.type = "button";
    button.setAttribute("aria-pressed", c === state.shown);
    button.style.setProperty("--tone", TONES[column.tone] || TONES.hybrid);
    button.onclick = () => { state.shown = c; draw(); };
    return button;
  };

  // A passage that stays glides to its new place, and its line with it.
  const move = (before) => {
    link();
    if (calm.matches || !before.size) return;
    let moved = false;
    for (const node of board.querySelectorAll(".hit")) {
      if (!node.offsetWidth) continue;
      const was = before.get(node.dataset.card);
      const dy = was === undefined ? 0 : was - node.getBoundingClientRect().top;
      const from = was === undefined ? { opacity: 0.25 } : { transform: `translateY(${dy}px)` };
      if (was !== undefined && Math.abs(dy) < 1) continue;
      node.animate([from, { opacity: 1, transform: "none" }], { duration: 200, easing: "ease-out" });
      moved = true;
    }
    const end = performance.now() + 230;
    const follow = () => { link(); if (performance.now() < end) requestAnimationFrame(follow); };
    if (moved) requestAnimationFrame(follow);
  };

  const link = () => {
    const svg = board.querySelector("svg");
    const cols = [...board.querySelectorAll(".col")];
    const frame = board.getBoundingClientRect();
    svg.replaceChildren();
    const place = (c, id) => cols[c]?.querySelector(`.hit[data-card="${c}:${id}"]`)?.getBoundingClientRect();
    data.links.forEach((pairs, c) => {
      for (const [left, right] of pairs) {
        const a = place(c, left), b = place(c + 1, right);
        if (!a || !b || !a.width || !b.width) continue;
        const [x1, y1] = [a.right - frame.left, a.top + 19 - frame.top];
        const [x2, y2] = [b.left - frame.left, b.top + 19 - frame.top];
        const bend = (x2 - x1) * 0.55;
        const path = document.createElementNS(SVG, "path");
        path.setAttribute("d", `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`);
        const ends = [[x1, y1], [x2, y2]].map(([x, y]) => {
          const dot = document.createElementNS(SVG, "circle");
          for (const [name, value] of [["cx", x], ["cy", y], ["r", 3]]) dot.setAttribute(name, value);
          return dot;
        });
        for (const node of [path, ...ends]) node.dataset.cards = `${c}:${left} ${c + 1}:${right}`;
        svg.append(path, ...ends);
      }
    });
    light(state.lit);
  };

  // Light a card and, along the lines, the same passage in the other lists.
  const light = (card) => {
    state.lit = card;
    const chain = new Set(card ? [card] : []);
    const lines = [...board.querySelectorAll("[data-cards]")];
    for (let round = 0; round < columns.length; round++) {
      for (const line of lines) {
        const ends = line.dataset.cards.split(" ");
        if (ends.some((end) => chain.has(end))) ends.forEach((end) => chain.add(end));
      }
    }
    for (const line of lines) line.classList.toggle("on", chain.has(line.dataset.cards.split(" ")[0]));
    for (const node of board.querySelectorAll(".hit")) node.classList.toggle("on", chain.has(node.dataset.card));
  };
  board.onpointerover = (event) => light(event.target.closest?.(".hit")?.dataset.card);
  board.onfocusin = board.onpointerover;
  board.onpointerleave = () => light(undefined);

  board.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const face = root.activeElement?.closest?.(".face");
    if (event.key === "Escape" && state.open) {
      const card = state.open;
      toggle(card);
      board.querySelector(`[data-key="${CSS.escape(card)}"]`)?.focus();
      event.preventDefault();
      return;
    }
    if (!face) return;
    const cols = [...board.querySelectorAll(".col")].map((col) => [...col.querySelectorAll(".face")]);
    const c = cols.findIndex((faces) => faces.includes(face)), i = cols[c].indexOf(face);
    const partner = (to) => {
      const pairs = data.links[Math.min(c, to)] || [], own = Number(face.dataset.key.split(":")[1]);
      const pair = pairs.find((ids) => ids[to > c ? 0 : 1] === own);
      return (pair && cols[to].find((other) => other.dataset.key === `${to}:${pair[to > c ? 1 : 0]}`)) || cols[to][Math.min(i, cols[to].length - 1)];
    };
    const goal = {
      ArrowDown: cols[c][i + 1], j: cols[c][i + 1], ArrowUp: cols[c][i - 1], k: cols[c][i - 1],
      Home: cols[c][0], End: cols[c].at(-1),
      ArrowRight: cols[c + 1]?.length ? partner(c + 1) : null, ArrowLeft: cols[c - 1]?.length ? partner(c - 1) : null,
    }[event.key];
    if (goal) { goal.focus(); event.preventDefault(); }
  };

  const slash = (event) => {
    const at = event.composedPath()[0];
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(at?.tagName) || at?.isContentEditable;
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = document.querySelector(`.st-key-${CSS.escape(data.focus)} input`);
    if (box) { event.preventDefault(); box.focus(); box.select(); }
  };
  if (data.focus) addEventListener("keydown", slash);

  figureStrip(strip, data);
  hint.hidden = !data.focus || !columns.length;
  hint.replaceChildren(...KEYS.flatMap(([key, does]) => [make("kbd", "", key), ` ${does}   `]));
  const drawn = JSON.stringify({ ...data, figures: 0 });
  if (state.drawn !== drawn) { state.drawn = drawn; draw(); }
  const watch = new ResizeObserver(link);
  watch.observe(board);
  return () => { watch.disconnect(); removeEventListener("keydown", slash); };
}
