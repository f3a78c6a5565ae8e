// Ranked lists side by side; a passage that stands in two neighbouring lists is joined by a line.
// Every text is put in as textContent: documents never become markup here.
const boards = new WeakMap();
const TONES = {
  vss: "var(--st-violet-color)", bm25: "var(--st-orange-color)", hybrid: "var(--st-primary-color)",
  a: "var(--st-blue-color)", b: "var(--st-green-color)",
};

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

function badge(hit, index, other, otherTitle) {
  const there = other.findIndex((o) => o.id === hit.id);
  const [cls, text, say] =
    there < 0 ? ["only", "only here", `not in ${otherTitle}`]
    : there === index ? ["same", "same rank", `also rank ${there + 1} in ${otherTitle}`]
    : there > index ? ["up", `▲ ${there - index}`, `rank ${there + 1} in ${otherTitle}`]
    : ["down", `▼ ${index - there}`, `rank ${there + 1} in ${otherTitle}`];
  const node = make("span", "badge " + cls, text);
  node.title = say;
  return [node, there < 0, say];
}

function details(hit, send) {
  const box = make("div", "full");
  box.append(make("h4", "", `Passage · ${hit.facts}`));
  box.append(marked(make("pre"), hit.text, hit.textMarks));
  for (const part of hit.why || []) {
    box.append(make("h4", "", part.title));
    for (const line of part.lines || []) box.append(make("p", "", line));
    if (part.rows) {
      const table = make("table");
      const row = (cells, tag) => {
        const tr = make("tr");
        tr.append(...cells.map((cell) => make(tag, "", cell)));
        table.append(tr);
      };
      row(part.columns, "th");
      part.rows.forEach((cells) => row(cells, "td"));
      box.append(table);
    }
  }
  const actions = make("div", "actions");
  const inspect = make("button", "", "Open in Inspect");
  inspect.onclick = () => send({ inspect: hit.id });
  const copy = make("button", "", "Copy passage");
  copy.onclick = async () => {
    try { await navigator.clipboard.writeText(hit.text); copy.textContent = "Copied"; }
    catch { copy.textContent = "Copying is blocked here"; }
    setTimeout(() => { copy.textContent = "Copy passage"; }, 1500);
  };
  actions.append(inspect, copy);
  box.append(actions);
  return box;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const board = parentElement.querySelector(".board");
  const state = boards.get(board) || { open: null };
  boards.set(board, state);
  if (state.query !== data.query) { state.open = null; state.query = data.query; }
  const send = (value) => setTriggerValue("action", value);
  const columns = data.columns;
  board.style.gridTemplateColumns = columns.map(() => "minmax(0, 1fr)").join(" minmax(28px, 72px) ");

  const draw = () => {
    const parts = [];
    columns.forEach((column, c) => {
      const other = columns[c === 0 ? 1 : c - 1] || { hits: [], title: "" };
      const col = make("section", "col");
      col.setAttribute("aria-label", `${column.title} results`);
      col.style.setProperty("--tone", TONES[column.tone] || TONES.hybrid);
      const head = make("div", "head");
      head.append(make("b", "", column.title), make("span", "", column.metric));
      col.append(head);
      if (!column.hits.length) col.append(make("div", "empty", column.empty));
      column.hits.forEach((hit, i) => {
        const item = make("article", "hit");
        item.dataset.id = hit.id;
        const key = column.title + hit.id;
        const button = make("button");
        const line = make("div", "line");
        line.append(make("span", "rank", i + 1), make("span", "origin", hit.origin), make("span", "score", hit.score));
        let say = "";
        if (columns.length > 1) {
          const [mark, solo, words] = badge(hit, i, other.hits, other.title);
          line.append(mark);
          say = words;
          if (solo) item.classList.add("solo");
        }
        button.append(line);
        if (hit.context) button.append(make("div", "context", hit.context));
        button.append(marked(make("div", "snippet"), hit.snippet, hit.marks));
        button.setAttribute("aria-expanded", state.open === key);
        button.setAttribute("aria-label", `${column.title} rank ${i + 1}: ${hit.origin}, ${column.metric} ${hit.score}, ${say}`);
        button.onclick = () => { state.open = state.open === key ? null : key; draw(); board.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus(); };
        button.dataset.key = key;
        item.append(button);
        if (state.open === key) item.append(details(hit, send));
        col.append(item);
      });
      if (c > 0) parts.push(make("span", "gap"));
      parts.push(col);
    });
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("aria-hidden", "true");
    board.replaceChildren(...parts, svg);
    link();
  };

  const link = () => {
    const svg = board.querySelector("svg");
    const cols = [...board.querySelectorAll(".col")];
    const frame = board.getBoundingClientRect();
    svg.replaceChildren();
    for (let c = 0; c + 1 < cols.length; c++) {
      for (const left of cols[c].querySelectorAll(".hit")) {
        const right = cols[c + 1].querySelector(`.hit[data-id="${left.dataset.id}"]`);
        if (!right) continue;
        const a = left.getBoundingClientRect(), b = right.getBoundingClientRect();
        const x1 = a.right - frame.left, y1 = a.top + 20 - frame.top;
        const x2 = b.left - frame.left, y2 = b.top + 20 - frame.top, bend = (x2 - x1) * 0.6;
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute("d", `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`);
        path.dataset.id = left.dataset.id;
        svg.append(path);
      }
    }
  };

  const light = (id) => {
    for (const node of board.querySelectorAll("[data-id]")) node.classList.toggle("on", node.dataset.id === id);
  };
  board.onpointerover = (event) => light(event.target.closest?.(".hit")?.dataset.id);
  board.onfocusin = board.onpointerover;
  board.onpointerleave = () => light(undefined);

  draw();
  const watch = new ResizeObserver(link);
  watch.observe(board);
  return () => watch.disconnect();
}
