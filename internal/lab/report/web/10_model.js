// What the report holds, and how to ask it about a moment. Times are seconds.
const data = JSON.parse(document.getElementById("data").textContent);
const end = Math.max(...data.runs.map(r => r.duration), 0.001);

// lastBefore is the index of the last item that begins at or before t, -1 if none does.
function lastBefore(items, t, begin) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (begin(items[middle]) <= t) low = middle + 1; else high = middle;
  }
  return low - 1;
}

// at is the item with from and to that holds at t. The last moment of a run
// belongs to what held before it.
function at(items, t) {
  const item = items[lastBefore(items, t, i => i.from)];
  return item && (t < item.to || item === items[items.length - 1]) ? item : undefined;
}

const stateAt = (run, node, t) => at(run.nodes[node].spans, Math.min(t, run.duration));
const leaderAt = (run, t) => at(run.reigns, Math.min(t, run.duration));
const runs = (span) => span !== undefined && !span.paused && data.states[span.state].class !== "down";
const cutBetween = (run, from, to, t) => (run.cutsOf.get(from + ">" + to) || []).find(c => c.from <= t && (c.to === null || t < c.to));

// link says whether "to" hears "from" at a moment.
function link(run, from, to, t) {
  if (from === to) return "self";
  if (!runs(stateAt(run, from, t)) || !runs(stateAt(run, to, t))) return "off";
  if (cutBetween(run, from, to, t)) return "cut";
  return stateAt(run, to, t).leader === run.nodes[from].name ? "follows" : "hears";
}

for (const run of data.runs) {
  run.cutsOf = new Map();
  for (const c of run.cuts) {
    const key = c.source + ">" + c.target;
    if (!run.cutsOf.has(key)) run.cutsOf.set(key, []);
    run.cutsOf.get(key).push(c);
  }
  // Arrows are [sent, received or null, from, to, kind, text], ordered by sent.
  run.slowest = run.arrows.reduce((most, a) => Math.max(most, (a[1] ?? a[0]) - a[0]), 0);
  run.busiest = run.sent.reduce((most, b) => Math.max(most, b[1]), 1);
}

// moments are the times of all events of all runs, in order and each once.
const moments = [...new Set(data.runs.flatMap(r => r.events.map(e => e.at)))].sort((a, b) => a - b);

// seconds writes a time to the millisecond.
const seconds = t => parseFloat(t.toFixed(3)) + "s";

// element makes a node of the document. Foreign text is only ever text.
function element(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value); else e.setAttribute(name, value);
  }
  e.append(...children);
  return e;
}
const byId = id => document.getElementById(id);
