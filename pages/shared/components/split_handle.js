// Moves the border between the two columns of `.st-key-split`; the width is a custom property of the page.
const NAME = "ragnar-split", FIRST = 38;

const read = () => { try { return Number(localStorage.getItem(NAME)) || FIRST; } catch { return FIRST; } };

export default function ({ parentElement }) {
  const handle = parentElement.querySelector(".ragnar-split");
  const put = (percent, keep) => {
    const width = Math.round(Math.max(20, Math.min(70, percent)) * 10) / 10;
    document.documentElement.style.setProperty("--ragnar-split", `${width}%`);
    handle.setAttribute("aria-valuenow", width);
    if (keep) try { localStorage.setItem(NAME, width); } catch { /* private mode: the width lasts as long as the page */ }
  };
  put(read());
  const at = (event) => {
    const area = handle.closest(".st-key-split").getBoundingClientRect();
    return ((event.clientX - area.left) / area.width) * 100;
  };
  handle.onpointerdown = (event) => { handle.setPointerCapture(event.pointerId); handle.classList.add("dragged"); event.preventDefault(); handle.focus(); };
  handle.onpointermove = (event) => { if (handle.hasPointerCapture(event.pointerId)) put(at(event), true); };
  handle.onpointerup = handle.onpointercancel = () => handle.classList.remove("dragged");
  handle.ondblclick = () => put(FIRST, true);
  handle.onkeydown = (event) => {
    const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    put(read() + step, true);
  };
}
