function marked(text, marks) {
  const parts = [];
  let from = 0;
  for (const [start, end] of marks) {
    const mark = document.createElement("mark");
    mark.textContent = text.slice(start, end);
    parts.push(text.slice(from, start), mark);
    from = end;
  }
  parts.push(text.slice(from));
  return parts;
}

function element(name, className, ...content) {
  const made = document.createElement(name);
  made.className = className;
  made.append(...content);
  return made;
}

export default function ({ data, parentElement }) {
  const bus = window.__ragnarTexts?.bus;
  const tell = (name, detail) => bus?.dispatchEvent(new CustomEvent(name, { detail: { id: data.id, ...detail } }));
  const grid = element("div", "grid");
  grid.style.setProperty("--columns", data.columns);
  const two = new Set(data.results.map((one) => one.side)).size > 1;
  for (const { side, method, note, passages, empty } of data.results) {
    const head = element("div", "head", element("b", "", method), element("span", "", note));
    if (two) head.prepend(element("i", "", side.toUpperCase()));
    const group = element("div", `group ${side}`, head);
    group.dataset.side = side;
    group.dataset.method = method;
    passages.forEach((passage, rank) => {
      const line = element("div", "line", element("b", "", String(rank + 1)), element("span", "", passage.facts), element("span", "", passage.score));
      const button = element("button", rank ? "passage" : "passage best", line, element("div", "text", ...marked(passage.text, passage.marks)));
      button.type = "button";
      button.title = "Show in the document";
      button.onclick = () => tell("jump", { at: passage.at });
      group.append(button);
    });
    if (!passages.length) group.append(element("div", "none", empty));
    grid.append(group);
  }
  parentElement.querySelector(".hits").replaceChildren(grid);
  tell("hits", { hits: data.results.flatMap((one) => one.passages.slice(0, 3).map((passage) => passage.at)) });
  return () => tell("hits", { hits: [] });
}
