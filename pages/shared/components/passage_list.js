// A list box of passages: pointer, arrow keys, j and k, Home and End. The choice is bound to the chunk id.
const lists = new WeakMap();

function make(cls, text) {
  const node = document.createElement("div");
  node.className = cls;
  if (text !== undefined) node.textContent = text;
  return node;
}

export default function ({ data, parentElement, setStateValue }) {
  const box = parentElement.querySelector(".list");
  const state = lists.get(box) || { signature: null, id: null };
  lists.set(box, state);
  const rows = () => [...box.querySelectorAll(".row")];
  const show = (id, scroll) => {
    state.id = id;
    for (const row of rows()) {
      const on = Number(row.dataset.id) === id;
      row.setAttribute("aria-selected", on);
      if (on) { box.setAttribute("aria-activedescendant", row.id); if (scroll) row.scrollIntoView({ block: "nearest" }); }
    }
  };
  if (state.signature !== data.signature) {
    state.signature = data.signature;
    box.replaceChildren(...(data.rows.length ? data.rows.map((row, i) => {
      const item = make("row");
      item.id = `passage-${row.id}`;
      item.role = "option";
      item.dataset.id = row.id;
      const top = make("top"), rank = document.createElement("b");
      rank.textContent = i + 1;
      top.append(rank, make("origin", row.origin), make("score", row.score));
      const text = make("text");
      let at = 0;
      for (const [from, to] of row.marks) {
        const mark = document.createElement("mark");
        mark.textContent = row.text.slice(from, to);
        text.append(row.text.slice(at, from), mark);
        at = to;
      }
      text.append(row.text.slice(at));
      item.append(top, text);
      return item;
    }) : [make("empty", data.empty)]));
    state.id = null;
  }
  if (data.chosen !== null && state.id !== data.chosen) show(data.chosen, true);
  const pick = (id) => {
    show(id, true);
    clearTimeout(state.timer);
    state.timer = setTimeout(() => setStateValue("chosen", id), 60);
  };
  box.onclick = (event) => { const row = event.target.closest(".row"); if (row) { box.focus({ preventScroll: true }); pick(Number(row.dataset.id)); } };
  box.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const all = rows();
    const at = all.findIndex((row) => Number(row.dataset.id) === state.id);
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all.length) return;
    event.preventDefault();
    pick(Number(all[Math.max(0, Math.min(all.length - 1, to))].dataset.id));
  };
}
