// Where things are on the canvas of a run, in CSS pixels.
const laneHeight = 22, laneGap = 5;
const longestLabel = Math.max(...data.runs.flatMap(r => r.nodes.map(n => n.label.length)), 8);

// layout is the same on the left for all runs, so that one can compare them.
function layout(run, width) {
  const rows = { left: Math.min(width < 600 ? 76 : 128, 24 + 7 * longestLabel), right: width - 8 };
  let y = 0;
  const row = (height, gap = 0) => { const r = { y, height }; y += height + gap; return r; };
  rows.axis = row(18);
  rows.marks = row(run.marks.length ? 16 : 0, run.marks.length ? 2 : 0);
  rows.cuts = row(run.cuts.length ? 14 : 0, run.cuts.length ? 5 : 0);
  rows.leader = row(14, 6);
  rows.lanes = run.nodes.map(() => row(laneHeight, laneGap));
  rows.volume = row(run.sent.length ? 24 : 0, 2);
  rows.height = y;
  rows.x = t => rows.left + (t - view.from) / (view.to - view.from) * (rows.right - rows.left);
  rows.t = x => view.from + (x - rows.left) / (rows.right - rows.left) * (view.to - view.from);
  return rows;
}

// ticks are round times with about 90 pixels between them.
function ticks(rows) {
  const least = (view.to - view.from) * 90 / Math.max(rows.right - rows.left, 90);
  const round = [1e-3, 2e-3, 5e-3, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 43200, 86400];
  const distance = round.find(s => s >= least) || least;
  const found = [];
  for (let i = Math.ceil(view.from / distance - 1e-9); i * distance <= view.to; i++) found.push(i * distance);
  return found;
}

// visible is the part of items with from and to that is on screen.
function visible(items) {
  const first = Math.max(lastBefore(items, view.from, i => i.from), 0);
  return items.slice(first, lastBefore(items, view.to, i => i.from) + 1);
}

// Arrows are drawn when so few are on screen that one can follow them.
// It returns null where there are too many.
const mostArrows = 1500, leastPixelsPerSecond = 30;

function arrowsOnScreen(run, rows) {
  if (!view.messages) return [];
  const first = lastBefore(run.arrows, view.from - run.slowest - 1e-6, a => a[0]) + 1;
  const last = lastBefore(run.arrows, view.to, a => a[0]);
  const readable = (rows.right - rows.left) / (view.to - view.from) >= leastPixelsPerSecond;
  if (!readable || last - first >= mostArrows) return null;
  return run.arrows.slice(first, last + 1);
}

// ends are both ends of an arrow; a lost message ends half way.
function ends(rows, arrow) {
  const [sent, received, from, to] = arrow;
  const middle = i => rows.lanes[i].y + laneHeight / 2;
  const x1 = rows.x(sent), y1 = middle(from), y2 = middle(to);
  if (received === null) return { x1, y1, x2: x1 + 6, y2: (y1 + y2) / 2, lost: true };
  return { x1, y1, x2: rows.x(received), y2, lost: false };
}
