// Cutting in the browser while a slider moves. It follows ragnar_core/chunking (snap.py and plan.py) for the even
// strategy in characters, step by step; tests/browser/test_chunking.py holds it to the same numbers. What the
// server answers when the slider is let go always replaces what was cut here.
const CUT_KINDS = ["edge", "heading", "paragraph", "row", "cell", "sentence", "line", "word", "character"];
const LONGEST_USUAL_CLUSTER = 32;

function lowerBound(list, value) {
  let low = 0, high = list.length;
  while (low < high) { const middle = (low + high) >> 1; if (list[middle] < value) low = middle + 1; else high = middle; }
  return low;
}

function upperBound(list, value) {
  let low = 0, high = list.length;
  while (low < high) { const middle = (low + high) >> 1; if (list[middle] <= value) low = middle + 1; else high = middle; }
  return low;
}

function rint(x) {
  const floor = Math.floor(x), rest = x - floor;
  if (rest !== 0.5) return Math.round(x);
  return floor % 2 === 0 ? floor : floor + 1;
}

// Wanted [start, end] pairs of all segments, ordered by start, then end.
function evenTargets(first, last, size, overlap) {
  const pairs = [];
  for (let s = 0; s < first.length; s++) {
    const lastStart = last[s] - size;
    if (lastStart < first[s]) { pairs.push([first[s], last[s]]); continue; }
    const stride = Math.max(size * (1 - overlap), 1);
    const steps = Math.floor((lastStart - first[s]) / stride + 1e-10) + 1;
    for (let step = 0; step < steps; step++) {
      const inner = rint(Math.min(first[s] + 1 + step * stride, lastStart + 1)) - 1;
      pairs.push([inner, inner + size]);
    }
    pairs.push([lastStart, lastStart + size]);
  }
  return pairs.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

function nearest(list, wanted, reach) {
  if (!list.length) return -1;
  const at = lowerBound(list, wanted);
  const before = list[Math.max(at - 1, 0)], after = list[Math.min(at, list.length - 1)];
  const found = Math.abs(wanted - before) < Math.abs(after - wanted) ? before : after;
  return Math.abs(found - wanted) <= reach ? found : -1;
}

function isInside(ranges, position) {
  let low = 0, high = ranges.length / 2;
  while (low < high) { const middle = (low + high) >> 1; if (ranges[2 * middle] < position) low = middle + 1; else high = middle; }
  return low > 0 && position < ranges[2 * low - 1];
}

function snapCuts(wanted, reach, text, settings) {
  const tiers = text.tiers[settings.keep_whole].map(([name, list, within]) => [name, text.lists[list], text.lists[within]]);
  const position = new Int32Array(wanted.length), kind = new Uint8Array(wanted.length);
  let farthest = 0;
  for (let i = 0; i < wanted.length; i++) {
    const here = wanted[i];
    let at = here === 0 || here === text.length ? here : -1;
    for (let t = 0; at < 0 && t < tiers.length; t++) {
      const [name, list, within] = tiers[t];
      if (within && !isInside(within, here)) continue;
      at = nearest(list, here, reach);
      if (at >= 0) kind[i] = CUT_KINDS.indexOf(name);
    }
    if (at < 0) { at = here; kind[i] = CUT_KINDS.indexOf("character"); }
    if (kind[i] === CUT_KINDS.indexOf("sentence") && text.lineEnds[lowerBound(text.lineEnds, at - 1)] === at - 1) {
      kind[i] = CUT_KINDS.indexOf("line");
    }
    farthest = position[i] = Math.max(farthest, at);
  }
  return { wanted, position, kind };
}

// `joined` are the positions inside grapheme clusters, `suspicious` those next to a joining character.
function betweenGraphemes(cuts, text, longest) {
  const { position, kind } = cuts, character = CUT_KINDS.indexOf("character");
  const has = (list, value) => list[lowerBound(list, value)] === value;
  let farthest = 0;
  for (let i = 0; i < position.length; i++) {
    const here = position[i];
    if (here > 0 && here < text.length && has(text.joined, here) && (kind[i] === character || has(text.suspicious, here))) {
      let before = here, after = here;
      while (has(text.joined, before)) before--;
      while (has(text.joined, after)) after++;
      if (after - before <= longest) position[i] = here - before < after - here ? before : after;
    }
    farthest = position[i] = Math.max(farthest, position[i]);
  }
}

// [start, end] of the chunks between the cuts that wanted starts and ends moved to.
function pairCuts(pairs, cuts) {
  const { wanted, position } = cuts;
  let starts = [], ends = [], met = false;
  for (const [wantedStart, wantedEnd] of pairs) {
    const start = position[lowerBound(wanted, wantedStart)];
    let end = position[lowerBound(wanted, wantedEnd)];
    if (start >= end) {
      met = true;
      end = position[Math.min(upperBound(position, start), position.length - 1)];
    }
    starts.push(start);
    ends.push(end);
  }
  const keep = (test) => {
    const chosen = starts.map((_, i) => test(i));
    starts = starts.filter((_, i) => chosen[i]);
    ends = ends.filter((_, i) => chosen[i]);
  };
  if (met) keep((i) => starts[i] < ends[i]);
  keep((i) => i === starts.length - 1 || starts[i + 1] !== starts[i]);
  keep((i) => i === 0 || ends[i] !== ends[i - 1]);
  const ranges = new Int32Array(2 * starts.length);
  for (let i = 0; i < starts.length; i++) { ranges[2 * i] = starts[i]; ranges[2 * i + 1] = ends[i]; }
  return ranges;
}

// The distinct inner edges of chunks and the strongest kind of cut at each.
function usedCuts(ranges, cuts, length) {
  const at = Int32Array.from(new Set(ranges)).sort().filter((edge) => edge > 0 && edge < length);
  const kinds = new Uint8Array(at.length);
  for (let i = 0; i < at.length; i++) {
    let k = lowerBound(cuts.position, at[i]);
    kinds[i] = cuts.kind[k];
    while (++k < cuts.position.length && cuts.position[k] === at[i]) kinds[i] = Math.min(kinds[i], cuts.kind[k]);
  }
  return { at, kinds };
}

// Whether a cut is inside a sentence or a row, as ragnar_core/chunking/report.py has it.
function isInsideSentence(text, at, kind) {
  const name = CUT_KINDS[kind];
  if (name !== "line") return name === "cell" || name === "word" || name === "character";
  if (isInside(text.tables, at) || isInside(text.code, at)) return false;
  const unit = text.unit(at), before = text.text.slice(text.unit(Math.max(at - 200, 0)), unit), line = before.trimEnd();
  if (!line || before.slice(line.length).split("\n").length > 2 || text.text.startsWith("\n\n", unit)) return false;
  return !/[.!?…:;。！？：；]["'”’»)\]*_`]*$/.test(line);
}

function cutHere(text, settings) {
  if (!text.length) return { ranges: new Int32Array(0), at: new Int32Array(0), kinds: new Uint8Array(0), inside: [] };
  const levels = new Set(settings.segment_by_heading_levels.filter((level) => level > 0));
  const borders = new Set([0]);
  for (let i = 0; i < text.headings.length; i++) if (levels.has(text.headingLevels[i])) borders.add(text.headings[i]);
  const first = [...borders].sort((a, b) => a - b), last = [...first.slice(1), text.length];
  const size = settings.target_size ?? Infinity, overlap = settings.target_overlap;
  const pairs = evenTargets(first, last, size, overlap);
  const wanted = Int32Array.from(new Set(pairs.flat())).sort();
  const reach = Math.max(settings.max_snap_dist ?? (size === Infinity ? Infinity : (size * (1 - overlap)) / 3), 0);
  const cuts = snapCuts(wanted, reach, text, settings);
  if (text.joined.length && (settings.keep_whole || reach >= LONGEST_USUAL_CLUSTER)) betweenGraphemes(cuts, text, size);
  const ranges = pairCuts(pairs, cuts);
  const { at, kinds } = usedCuts(ranges, cuts, text.length);
  return { ranges, at, kinds, inside: at.filter((one, i) => isInsideSentence(text, one, kinds[i])) };
}
