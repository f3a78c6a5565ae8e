// A list box of passages: pointer, arrow keys, j and k, Home and End. The choice is bound to the chunk id.
const lists = new WeakMap();

function make(cls, text, tag = "div") {
  const node = document.createElement(tag);
  node.className = cls;
  if (text !== undefined) node.textContent = text;
  return node;
}

function marked(row) {
  const text = make("text");
  let at = 0;
  for (const [from, to] of row.marks) {
    text.append(row.text.slice(at, from), make("", row.text.slice(from, to), "mark"));
    at = to;
  }
  text.append(row.text.slice(at));
  return text;
}

function option(row, number) {
  const item = make("row");
  item.id = `passage-${row.id}`;
  item.role = "option";
  item.dataset.id = row.id;
  const top = make("top");
  if (number) top.append(make("rank", number, "b"));
  top.append(make(row.group ? "origin heading" : "origin", row.origin));
  if (row.note) top.append(make("note", row.note));
  if (row.score) top.append(make("score", row.score));
  item.append(top, marked(row));
  return item;
}

function content(data) {
  if (!data.rows.length) return [make("empty", data.empty)];
  const nodes = [];
  let group = "";
  data.rows.forEach((row, i) => {
    if (row.group && row.group !== group) {
      group = row.group;
      const heading = make("group", group);
      heading.role = "presentation";
      nodes.push(heading);
    }
    nodes.push(option(row, data.rank ? data.rank + i : 0));
  });
  return nodes;
}

function write(address, state) {
  const url = new URL(location.href);
  state.path ??= url.pathname;
  // The list of a page that is being left must not write into the next one's address.
  if (state.path !== url.pathname) return;
  for (const [name, value] of Object.entries(address)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

const typing = (node) => node && (/^(INPUT|TEXTAREA|SELECT)$/.test(node.tagName) || node.isContentEditable);

export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".list"), bar = parentElement.querySelector(".bar");
  const state = lists.get(box) || { signature: null, id: null, seq: 0 };
  lists.set(box, state);
  box.setAttribute("aria-label", data.label);
  box.classList.toggle("compact", data.compact);
  const rows = () => [...box.querySelectorAll(".row")];

  const show = (id, scroll) => {
    state.id = id;
    box.removeAttribute("aria-activedescendant");
    for (const row of rows()) {
      const on = Number(row.dataset.id) === id;
      row.setAttribute("aria-selected", on);
      if (!on) continue;
      box.setAttribute("aria-activedescendant", row.id);
      if (!scroll) continue;
      const top = row.offsetTop - box.offsetTop - 34, bottom = row.offsetTop - box.offsetTop + row.offsetHeight + 6;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
    }
  };
  const turn = (step) => setTriggerValue("turned", step);
  const pick = (id) => {
    if (id === state.id) return;
    show(id, true);
    clearTimeout(state.timer);
    const seq = ++state.seq;
    state.timer = setTimeout(() => setTriggerValue("chosen", { id, seq }), 60);
  };

  const signature = JSON.stringify([data.rows, data.rank, data.empty]);
  if (state.signature !== signature) {
    state.signature = signature;
    clearTimeout(state.timer);
    box.replaceChildren(...content(data));
    box.scrollTop = 0;
    Object.assign(state, { id: null, seq: data.seq });
  }
  // An answer to an older choice must not undo a newer key press.
  if (data.seq >= state.seq) {
    state.seq = data.seq;
    if (state.id !== data.chosen) show(data.chosen, true);
    write(data.address, state);
  }

  bar.replaceChildren();
  bar.hidden = !data.summary;
  if (data.summary) {
    bar.append(make("summary", data.summary));
    if (data.earlier || data.later) {
      for (const [step, sign, label, on] of [[-1, "‹", "Earlier passages", data.earlier], [1, "›", "Later passages", data.later]]) {
        const button = make("turn", sign, "button");
        button.type = "button";
        button.disabled = !on;
        button.setAttribute("aria-label", label);
        button.onclick = () => turn(step);
        bar.append(button);
      }
    }
  }

  const step = (key) => {
    const all = rows();
    const at = all.findIndex((row) => Number(row.dataset.id) === state.id);
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: all.length - 1 }[key];
    if (to === undefined || !all.length) return false;
    if (to >= all.length && data.later) turn(1);
    else if (to < 0 && at === 0 && data.earlier) turn(-1);
    else pick(Number(all[Math.max(0, Math.min(all.length - 1, to))].dataset.id));
    return true;
  };
  const plain = (event) => !event.ctrlKey && !event.metaKey && !event.altKey;
  box.onclick = (event) => {
    const row = event.target.closest(".row");
    if (row) { box.focus({ preventScroll: true }); pick(Number(row.dataset.id)); }
  };
  box.onkeydown = (event) => {
    if (plain(event) && step(event.key)) { event.preventDefault(); event.stopPropagation(); }
  };
  state.keys?.abort();
  if (!data.search) return undefined;

  // The clean-up may run after the next call: it must end this listener and not that one.
  const keys = (state.keys = new AbortController());
  const search = () => document.querySelector(`.st-key-${data.search} input`);
  addEventListener("keydown", (event) => {
    const active = document.activeElement, field = search();
    if (!plain(event) || !field) return;
    if (active === field) {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") { if (step(event.key)) event.preventDefault(); }
      else if (event.key === "Escape" && field.value) {
        // The setter that React put over the input's own would hide the change from it.
        Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, "");
        field.dispatchEvent(new Event("input", { bubbles: true }));
        field.blur();
        event.preventDefault();
      }
      return;
    }
    if (typing(active) || document.querySelector("[role=dialog]")) return;
    if (event.key === "/") { event.preventDefault(); field.focus(); field.select(); return; }
    if (event.key === "Escape" && field.value) { field.focus(); field.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true })); return; }
    const free = !active || active === document.body || active.closest?.("[data-testid=stMain]") === active;
    if (free && step(event.key)) event.preventDefault();
  }, { signal: keys.signal });
  return () => keys.abort();
}
