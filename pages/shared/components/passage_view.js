// Shows a passage. Of rendered Markdown only known elements are rebuilt, with no attribute but a link's address, so
// that nothing in a document can run, load or style anything, whatever the renderer let through.
const KNOWN = new Set(("P H1 H2 H3 H4 H5 H6 UL OL LI BLOCKQUOTE PRE CODE EM STRONG S DEL A BR HR " +
  "TABLE THEAD TBODY TR TH TD").split(" "));

function rebuilt(from, into) {
  for (const node of from.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) into.append(node.data);
    else if (node.nodeType === Node.ELEMENT_NODE) {
      if (!KNOWN.has(node.tagName)) { into.append(node.textContent); continue; }
      const made = document.createElement(node.tagName);
      if (node.tagName === "A") {
        const href = node.getAttribute("href") || "";
        if (/^(https?:\/\/|mailto:)/i.test(href)) {
          made.href = href;
          made.target = "_blank";
          made.rel = "noopener noreferrer nofollow";
          made.title = href;
        }
      }
      if (node.tagName === "OL" && /^\d{1,9}$/.test(node.getAttribute("start") || "")) made.start = Number(node.getAttribute("start"));
      into.append(rebuilt(node, made));
    }
  }
  return into;
}

function expression(words) {
  const alone = /^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}]/u;
  const parts = words.map((word) => {
    const safe = word.replace(/[.*+?^${}()|[\]\\\/-]/g, "\\$&");
    return alone.test(word) ? `(?<![\\p{L}\\p{N}])${safe}(?![\\p{L}\\p{N}])` : safe;
  });
  try { return new RegExp(parts.join("|"), "giu"); } catch { return null; }
}

function mark(root, words) {
  const wanted = words.length ? expression(words) : null;
  if (!wanted) return;
  const texts = [], walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const node of texts) {
    const parts = [];
    let at = 0;
    for (const hit of node.data.matchAll(wanted)) {
      const made = document.createElement("mark");
      made.textContent = hit[0];
      parts.push(node.data.slice(at, hit.index), made);
      at = hit.index + hit[0].length;
    }
    if (parts.length) node.replaceWith(...parts, node.data.slice(at));
  }
}

export default function ({ data, parentElement }) {
  const box = parentElement.querySelector(".passage");
  box.classList.toggle("raw", data.text !== null);
  if (data.text !== null) box.replaceChildren(data.text);
  else {
    const inert = new DOMParser().parseFromString(data.html || "", "text/html");
    box.replaceChildren(...rebuilt(inert.body, document.createElement("div")).childNodes);
  }
  mark(box, data.words);
}
