// The part of the time that is on screen, and the chosen moment.
const view = { from: 0, to: end, cursor: 0, messages: true };
const shortest = Math.min(end, 0.01);
const redraws = [];
let scheduled = false;

// changed draws everything anew before the next frame.
function changed() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    for (const redraw of redraws) redraw();
  });
}

// show puts a window on screen, moved and cut so that it lies within the run.
function show(from, to) {
  const width = Math.min(Math.max(to - from, shortest), end);
  view.from = Math.min(Math.max(from, 0), end - width);
  view.to = view.from + width;
  changed();
}

// zoom makes the window factor times as wide; t keeps its place.
function zoom(factor, t = view.cursor) {
  if (t < view.from || t > view.to) t = (view.from + view.to) / 2;
  const width = Math.min(Math.max((view.to - view.from) * factor, shortest), end);
  const share = (t - view.from) / (view.to - view.from);
  show(t - share * width, t - share * width + width);
}

// choose makes t the chosen moment and brings it on screen.
function choose(t) {
  view.cursor = Math.min(Math.max(t, 0), end);
  const width = view.to - view.from;
  if (view.cursor < view.from || view.cursor > view.to) show(view.cursor - width / 4, view.cursor + width * 3 / 4);
  changed();
}

// step goes to the next event in a direction.
function step(direction) {
  const i = lastBefore(moments, view.cursor, m => m);
  if (direction > 0) {
    if (i + 1 < moments.length) choose(moments[i + 1]);
    return;
  }
  const before = moments[i] === view.cursor ? i - 1 : i;
  choose(before >= 0 ? moments[before] : 0);
}
