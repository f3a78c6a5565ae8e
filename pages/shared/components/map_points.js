// A scatter plot on a canvas. Picking looks at every point (100,000 take under a millisecond); points that do not change
// are drawn once into a picture of their own.
const LIGHT = ["#0f766e", "#c2410c", "#4f46e5", "#b8860b", "#be185d", "#0284c7", "#4d7c0f", "#9333ea", "#7c4a1e", "#db2777", "#475569", "#94a3b8"];
const DARK = ["#2dd4bf", "#fb923c", "#8b9cff", "#fcd34d", "#f472b6", "#38bdf8", "#a3e635", "#c084fc", "#d6a77a", "#fda4af", "#cbd5e1", "#64748b"];
const RAMP = { light: ["#d3dcd8", "#6fbfb4", "#0f766e", "#062f2b"], dark: ["#2c3a37", "#1d7d72", "#2dd4bf", "#d5fff8"] };
const MANY = 8000;
const maps = new WeakMap();

function unpack(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = view.getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const copy = bytes.slice(4 + size);
  return { ...header, xy: new Float32Array(copy.buffer, 0, header.n * 2), code: copy.subarray(header.n * 8, header.n * 9) };
}

function make(tag, cls, text) {
  const node = document.createElement(tag);
  node.className = cls;
  if (text !== undefined) node.textContent = text;
  return node;
}

function ramp(stops) {
  const rgb = stops.map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (rgb.length - 1), low = Math.min(rgb.length - 2, Math.floor(at)), part = at - low;
    return `rgb(${rgb[low].map((v, c) => Math.round(v + (rgb[low + 1][c] - v) * part)).join(" ")})`;
  });
}

function inside(x, y, loop) {
  let odd = false;
  for (let i = 0, j = loop.length - 1; i < loop.length; j = i++) {
    const [xi, yi] = loop[i], [xj, yj] = loop[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
  }
  return odd;
}

class Chart {
  constructor(root, legend) {
    this.root = root;
    this.legend = legend;
    this.canvas = root.querySelector("canvas");
    this.tip = root.querySelector(".tip");
    this.said = root.querySelector(".said");
    this.draw = this.canvas.getContext("2d");
    this.base = document.createElement("canvas");
    this.overlay = { hits: [], picked: [], texts: {}, star: null, front: null };
    this.texts = new Map();
    this.pointers = new Map();
    this.lasso = null;
    this.tool = "move";
    this.hover = -1;
    this.only = -1;
    this.part = 1;
    this.tools();
    this.listen();
  }

  show(bytes) {
    const next = unpack(bytes), before = this.data;
    if (before && before.version === next.version) return;
    this.data = next;
    if (!before || before.store !== next.store) { this.texts.clear(); this.hover = -1; }
    for (const [row, text] of Object.entries(next.texts || {})) this.texts.set(Number(row), text);
    // "Others" lie below the groups that have a colour of their own.
    const depth = (i) => (next.others && next.code[i] === next.names.length - 1 ? -1 : next.code[i]);
    this.order = Uint32Array.from({ length: next.n }, (_, i) => i).sort((a, b) => depth(a) - depth(b) || a - b);
    this.only = -1;
    this.canvas.setAttribute("aria-label", `Map of ${next.n} chunks. Arrow keys move from point to point, Enter picks, plus and minus zoom.`);
    this.describe();
    const moved = before && before.store === next.store && before.n === next.n && before.layout !== next.layout;
    if (moved && next.n <= 20000 && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.glide(before, next);
    else { this.at = next.xy; if (!before || moved || before.store !== next.store) this.fit(); else this.paint(true); }
  }

  lay(overlay) {
    this.overlay = overlay;
    for (const [row, text] of Object.entries(overlay.texts)) this.texts.set(Number(row), text);
    if (this.hover >= 0 && overlay.texts[this.hover]) this.point(this.hover);
    this.hitSet = new Set(overlay.hits);
    this.paint(true);
  }

  bounds(xy) {
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < xy.length; i += 2) {
      x0 = Math.min(x0, xy[i]); x1 = Math.max(x1, xy[i]); y0 = Math.min(y0, xy[i + 1]); y1 = Math.max(y1, xy[i + 1]);
    }
    return Number.isFinite(x0) ? [x0, y0, x1, y1] : [-1, -1, 1, 1];
  }

  framed(xy) {
    const [x0, y0, x1, y1] = this.bounds(xy), pad = 34;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const wide = Math.max(x1 - x0, 1e-6), high = Math.max(y1 - y0, 1e-6);
    const scale = Math.min((w - 2 * pad) / wide, (h - 2 * pad) / high);
    const kept = Number.isFinite(scale) && scale > 0 && scale < 1e5 ? scale : 100;
    return { scale: kept, x: w / 2 - ((x0 + x1) / 2) * kept, y: h / 2 + ((y0 + y1) / 2) * kept };
  }

  fit() { this.view = this.framed(this.at); this.paint(true); }

  glide(before, next) {
    const from = this.framed(before.xy), to = this.framed(next.xy), began = performance.now();
    const last = this.view || from;
    const step = (now) => {
      if (this.data !== next) return;
      const t = Math.min(1, (now - began) / 700), ease = t < 0.5 ? 4 * t ** 3 : 1 - (-2 * t + 2) ** 3 / 2;
      const xy = new Float32Array(next.xy.length);
      // In screen units, so that layouts of another scale glide as well.
      for (let i = 0; i < xy.length; i += 2) {
        xy[i] = (1 - ease) * (before.xy[i] * last.scale + last.x) + ease * (next.xy[i] * to.scale + to.x);
        xy[i + 1] = (1 - ease) * (last.y - before.xy[i + 1] * last.scale) + ease * (to.y - next.xy[i + 1] * to.scale);
        xy[i + 1] *= -1;
      }
      if (t < 1) { this.at = xy; this.view = { scale: 1, x: 0, y: 0 }; this.paint(true); requestAnimationFrame(step); }
      else { this.at = next.xy; this.view = to; this.paint(true); }
    };
    requestAnimationFrame(step);
  }

  sx(i) { return this.at[2 * i] * this.view.scale + this.view.x; }
  sy(i) { return this.view.y - this.at[2 * i + 1] * this.view.scale; }

  colours() {
    const style = getComputedStyle(this.root);
    const back = style.getPropertyValue("--st-background-color").trim();
    const dark = /^#[0-7]/.test(back) || /^rgb\((\d{1,2}),/.test(back);
    const names = ["--st-primary-color", "--st-text-color", "--st-border-color"];
    const [primary, text, border] = names.map((name) => style.getPropertyValue(name).trim());
    const palette = this.data.names.length ? (dark ? DARK : LIGHT) : ramp(dark ? RAMP.dark : RAMP.light);
    return { back, dark, primary, text, border, palette };
  }

  // `fresh`: the points themselves have to be drawn anew.
  paint(fresh) {
    this.fresh ||= fresh;
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.now(); });
  }

  now() {
    const { clientWidth: w, clientHeight: h } = this.canvas, ratio = Math.min(devicePixelRatio || 1, 2);
    if (!this.data || !w || !this.view) return;
    for (const canvas of [this.canvas, this.base]) {
      if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
        canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); this.fresh = true;
      }
    }
    const hue = this.colours();
    if (hue.back !== this.lastBack) { this.lastBack = hue.back; this.fresh = true; this.describe(); }
    if (this.fresh) { this.points(hue, w, h, ratio); this.fresh = false; }
    const d = this.draw;
    d.setTransform(1, 0, 0, 1, 0, 0);
    d.clearRect(0, 0, this.canvas.width, this.canvas.height);
    d.drawImage(this.base, 0, 0);
    d.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.over(d, hue);
  }

  radius() { const n = this.data.n; return n < 400 ? 5 : n < 2000 ? 4 : n < MANY ? 3 : n < 30000 ? 1.5 : 1; }

  points(hue, w, h, ratio) {
    const d = this.base.getContext("2d"), r = this.radius(), { code, names } = this.data, grouped = names.length > 0;
    d.setTransform(ratio, 0, 0, ratio, 0, 0);
    d.clearRect(0, 0, w, h);
    const asked = grouped && this.overlay.hits.length > 0;
    const round = this.data.n <= MANY, zoom = Math.min(2.2, Math.max(1, Math.sqrt(this.view.scale / this.framed(this.data.xy).scale)));
    const size = r * (this.at === this.data.xy ? zoom : 1);
    let last = -1;
    for (let k = 0; k < this.order.length; k += this.part) {
      const i = this.order[k], x = this.sx(i), y = this.sy(i);
      if (x < -9 || y < -9 || x > w + 9 || y > h + 9) continue;
      if (code[i] !== last) {
        last = code[i];
        d.fillStyle = hue.palette[Math.min(last, hue.palette.length - 1)];
        d.globalAlpha = grouped && this.only >= 0 && last !== this.only ? 0.07 : asked ? 0.3 : round ? 0.78 : 0.6;
      }
      if (round) { d.beginPath(); d.arc(x, y, size, 0, 6.2832); d.fill(); }
      else d.fillRect(x - size, y - size, 2 * size, 2 * size);
    }
    d.globalAlpha = 1;
  }

  over(d, hue) {
    const { star, hits, picked, front } = this.overlay, r = this.radius() + 1.5;
    const fill = (i) => hue.palette[Math.min(this.data.code[i], hue.palette.length - 1)];
    const ring = (i, size, colour, width) => {
      d.beginPath(); d.arc(this.sx(i), this.sy(i), size, 0, 6.2832);
      d.strokeStyle = colour; d.lineWidth = width; d.stroke();
    };
    if (picked.length <= 5000) for (const i of picked) ring(i, r + 1.5, hue.text, 1.2);
    if (star) {
      const x = star[0] * this.view.scale + this.view.x, y = this.view.y - star[1] * this.view.scale;
      const still = this.at === this.data.xy;
      if (still) hits.forEach((i, rank) => {
        d.beginPath(); d.moveTo(x, y); d.lineTo(this.sx(i), this.sy(i));
        d.strokeStyle = hue.primary; d.globalAlpha = 0.75 - rank * 0.05; d.lineWidth = Math.max(0.8, 2.2 - rank * 0.15); d.stroke();
      });
      d.globalAlpha = 1;
      d.font = `600 10px ${getComputedStyle(this.root).fontFamily}`; d.textAlign = "center"; d.textBaseline = "middle";
      [...hits].reverse().forEach((i) => {
        const rank = hits.indexOf(i) + 1;
        d.beginPath(); d.arc(this.sx(i), this.sy(i), 8, 0, 6.2832); d.fillStyle = fill(i); d.fill();
        d.strokeStyle = hue.back; d.lineWidth = 1.5; d.stroke();
        d.fillStyle = this.data.names.length || this.data.code[i] > 110 ? (hue.dark ? "#0b1110" : "#fff") : hue.text;
        d.fillText(rank, this.sx(i), this.sy(i) + 0.5);
      });
      if (still) {
        d.beginPath();
        for (let k = 0; k < 10; k++) {
          const a = -Math.PI / 2 + (k * Math.PI) / 5, q = k % 2 ? 5.2 : 12.5;
          d[k ? "lineTo" : "moveTo"](x + q * Math.cos(a), y + q * Math.sin(a));
        }
        d.closePath(); d.fillStyle = hue.primary; d.fill(); d.strokeStyle = hue.back; d.lineWidth = 2; d.stroke();
      }
    }
    if (front !== null && front < this.data.n) { ring(front, r + 5, hue.primary, 2.5); ring(front, r + 2, hue.back, 1.5); }
    if (this.hover >= 0) ring(this.hover, r + 2.5, hue.text, 2);
    if (this.lasso) {
      d.beginPath(); this.lasso.forEach(([x, y], k) => d[k ? "lineTo" : "moveTo"](x, y)); d.closePath();
      d.fillStyle = hue.primary; d.globalAlpha = 0.12; d.fill(); d.globalAlpha = 1;
      d.strokeStyle = hue.primary; d.lineWidth = 1.5; d.setLineDash([5, 4]); d.stroke(); d.setLineDash([]);
    }
  }

  nearest(x, y, reach) {
    let best = -1, least = reach * reach;
    for (let i = 0; i < this.data.n; i++) {
      if (this.only >= 0 && this.data.code[i] !== this.only) continue;
      const dx = this.sx(i) - x, dy = this.sy(i) - y, far = dx * dx + dy * dy;
      if (far < least) { least = far; best = i; }
    }
    return best;
  }

  around(row) {
    const x = this.sx(row), y = this.sy(row), found = [];
    for (let i = 0; i < this.data.n; i++) {
      const far = Math.hypot(this.sx(i) - x, this.sy(i) - y);
      if (i !== row && far < 5 && found.length < 50) found.push([far, i]);
    }
    return [row, ...found.sort((a, b) => a[0] - b[0]).map(([, i]) => i)];
  }

  point(row) {
    this.hover = row;
    this.tip.hidden = row < 0;
    this.canvas.style.cursor = this.tool === "lasso" ? "crosshair" : row >= 0 ? "pointer" : "grab";
    clearTimeout(this.dwell);
    if (row >= 0) {
      const text = this.texts.get(row), rank = this.overlay.hits.indexOf(row) + 1;
      const group = this.data.names.length ? this.data.names[this.data.code[row]] : "";
      const title = (rank ? `Hit ${rank} · ` : "") + (text ? text[0] : group || "…");
      this.tip.replaceChildren(make("div", "title", title), make("div", "body", text ? text[1] : "…"));
      this.said.textContent = text ? `${title}: ${text[1]}` : title;
      const { clientWidth: w, clientHeight: h } = this.canvas, x = this.sx(row), y = this.sy(row);
      this.tip.style.left = `${Math.max(4, Math.min(w - this.tip.offsetWidth - 4, x + 14))}px`;
      this.tip.style.top = `${y + 16 + this.tip.offsetHeight > h ? Math.max(4, y - this.tip.offsetHeight - 14) : y + 16}px`;
      if (!text) this.dwell = setTimeout(() => this.send("hovered", row), 90);
    }
    this.paint(false);
  }

  zoom(x, y, by) {
    const first = this.framed(this.at).scale, scale = Math.max(first / 4, Math.min(first * 400, this.view.scale * by));
    by = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * by, y: y - (y - this.view.y) * by };
    if (this.hover >= 0) this.point(-1);
    this.moving();
  }

  // While a large map moves, a part of its points stands for all.
  moving() {
    clearTimeout(this.rest);
    this.part = this.data.n > 20000 ? Math.ceil(this.data.n / 12000) : 1;
    if (this.part > 1) this.rest = setTimeout(() => { this.part = 1; this.paint(true); }, 140);
    this.paint(true);
  }

  pick(rows) { this.send("picked", rows.slice(0, 20000)); }

  tools() {
    const bar = this.root.querySelector(".tools");
    const centre = () => [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
    const add = (text, label, act) => {
      const button = make("button", "tool", text);
      button.type = "button"; button.title = label; button.setAttribute("aria-label", label); button.onclick = act;
      bar.append(button);
      return button;
    };
    bar.replaceChildren();
    const lasso = add("Lasso", "Draw around points to list them", () => {
      this.tool = this.tool === "lasso" ? "move" : "lasso";
      lasso.setAttribute("aria-pressed", this.tool === "lasso");
      this.canvas.style.touchAction = this.tool === "lasso" ? "none" : "pan-y";
      this.canvas.style.cursor = this.tool === "lasso" ? "crosshair" : "grab";
    });
    lasso.setAttribute("aria-pressed", "false");
    add("+", "Zoom in", () => this.zoom(...centre(), 1.5));
    add("−", "Zoom out", () => this.zoom(...centre(), 1 / 1.5));
    add("Fit", "Show all points", () => this.fit());
  }

  describe() {
    const { title, names, counts, low, high } = this.data, hue = this.colours();
    if (!names.length) {
      const bar = make("span", "scale");
      bar.style.background = `linear-gradient(90deg, ${hue.palette.filter((_, i) => i % 51 === 0).join(", ")})`;
      this.legend.replaceChildren(make("span", "title", title), make("span", "", low), bar, make("span", "", high));
      return;
    }
    const chips = names.map((name, code) => {
      const chip = make("button", "chip"), dot = make("i", "dot");
      dot.style.background = hue.palette[Math.min(code, hue.palette.length - 1)];
      chip.type = "button"; chip.title = `Show only ${name}`;
      chip.setAttribute("aria-pressed", this.only === code);
      chip.append(dot, make("span", "name", name), make("span", "count", counts[code].toLocaleString("en")));
      chip.onclick = () => { this.only = this.only === code ? -1 : code; this.describe(); this.paint(true); };
      return chip;
    });
    this.legend.replaceChildren(make("span", "title", title), ...chips);
  }

  listen() {
    const canvas = this.canvas, at = (event) => [event.offsetX, event.offsetY];
    canvas.onpointerdown = (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, at(event));
      this.began = at(event); this.travel = 0;
      if (this.tool === "lasso" && this.pointers.size === 1) { this.lasso = [at(event)]; this.point(-1); }
    };
    canvas.onpointermove = (event) => {
      if (!this.data) return;
      const here = at(event), last = this.pointers.get(event.pointerId);
      if (!last) { this.point(this.nearest(...here, 14)); return; }
      this.travel += Math.hypot(here[0] - last[0], here[1] - last[1]);
      if (this.pointers.size === 2) {
        const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
        const before = Math.hypot(last[0] - other[0], last[1] - other[1]), after = Math.hypot(here[0] - other[0], here[1] - other[1]);
        if (before > 4) this.zoom(other[0], other[1], after / before);
      } else if (this.lasso) { this.lasso.push(here); this.paint(false); }
      else if (this.travel > 3) {
        this.view = { ...this.view, x: this.view.x + here[0] - last[0], y: this.view.y + here[1] - last[1] };
        if (this.hover >= 0) this.point(-1);
        canvas.style.cursor = "grabbing";
        this.moving();
      }
      this.pointers.set(event.pointerId, here);
    };
    canvas.onpointerup = (event) => {
      this.pointers.delete(event.pointerId);
      if (this.lasso) {
        const loop = this.lasso, rows = [];
        this.lasso = null;
        if (loop.length > 2 && this.travel > 8) for (let i = 0; i < this.data.n; i++) if (inside(this.sx(i), this.sy(i), loop)) rows.push(i);
        if (rows.length) this.pick(rows);
        this.paint(false);
      } else if (this.travel <= 3 && this.data) {
        const row = this.nearest(...at(event), event.pointerType === "touch" ? 22 : 14);
        this.point(row);
        if (row >= 0) this.pick(this.around(row));
        else if (this.overlay.picked.length) this.pick([]);
      }
      canvas.style.cursor = this.tool === "lasso" ? "crosshair" : "grab";
    };
    canvas.onpointercancel = (event) => { this.pointers.delete(event.pointerId); this.lasso = null; this.paint(false); };
    canvas.onpointerleave = () => { if (!this.pointers.size) this.point(-1); };
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(...at(event), Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)));
    }, { passive: false });
    canvas.onkeydown = (event) => {
      if (!this.data?.n || event.ctrlKey || event.metaKey || event.altKey) return;
      const middle = [canvas.clientWidth / 2, canvas.clientHeight / 2];
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (way) this.step(way);
      else if (event.key === "Enter" && this.hover >= 0) this.pick(this.around(this.hover));
      else if (event.key === "+" || event.key === "=") this.zoom(...middle, 1.5);
      else if (event.key === "-") this.zoom(...middle, 1 / 1.5);
      else if (event.key === "0") this.fit();
      else if (event.key === "Escape") { this.point(-1); this.pick([]); }
      else return;
      event.preventDefault();
    };
  }

  step([wx, wy]) {
    if (this.hover < 0) { this.point(this.overlay.front ?? this.overlay.hits[0] ?? 0); return; }
    const x = this.sx(this.hover), y = this.sy(this.hover);
    let best = -1, least = Infinity;
    for (let i = 0; i < this.data.n; i++) {
      const dx = this.sx(i) - x, dy = this.sy(i) - y, along = dx * wx + dy * wy, aside = Math.abs(dx * wy) + Math.abs(dy * wx);
      if (i === this.hover || along <= 0.5 || aside > along * 1.2) continue;
      const cost = along + 2 * aside;
      if (cost < least) { least = cost; best = i; }
    }
    if (best >= 0) this.point(best);
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".map");
  const chart = maps.get(root) || new Chart(root, parentElement.querySelector(".legend"));
  maps.set(root, chart);
  chart.send = (name, value) => setTriggerValue(name, value);
  chart.show(data);
  const lay = () => { if (window.ragnarMapOverlay) chart.lay(window.ragnarMapOverlay); };
  lay();
  chart.watch?.disconnect();
  const watch = (chart.watch = new ResizeObserver(() => { if (chart.data) { if (chart.at === chart.data.xy) chart.fit(); } }));
  watch.observe(chart.canvas);
  const gone = new AbortController();
  addEventListener("ragnar-map-overlay", lay, { signal: gone.signal });
  return () => { gone.abort(); watch.disconnect(); };
}
