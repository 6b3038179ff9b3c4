// Drawing marks and messages over the lanes, and how many messages went.
function drawMarks(g, run, rows) {
  let free = rows.left;
  for (const m of run.marks) {
    const x = Math.round(rows.x(m.at)) + .5;
    if (x < rows.left - 1 || x > rows.right) continue;
    g.strokeStyle = g.fillStyle = style.flag;
    g.setLineDash([2, 3]);
    line(g, x, rows.marks.y + rows.marks.height, x, rows.height);
    g.setLineDash([]);
    const width = g.measureText(m.text).width, below = rows.marks.y + rows.marks.height;
    const room = x >= free && x + 4 + width <= rows.right;
    line(g, x, room ? rows.marks.y : below - 3, x, below);
    if (!room) continue;
    g.fillText(m.text, x + 4, rows.marks.y + rows.marks.height / 2 - 1);
    free = x + 12 + width;
  }
}

// kindColor groups the kinds of messages.
function kindColor(kind) {
  if (kind.startsWith("Election")) return style.ask;
  return kind === "LeaderHeartbeat" || kind === "HeartbeatAck" ? style.beat : style.warn;
}

function drawArrows(g, run, rows) {
  const arrows = arrowsOnScreen(run, rows);
  run.hidesMessages = arrows === null && run.arrows.length > 0;
  for (const a of arrows ?? []) {
    const e = ends(rows, a);
    g.strokeStyle = g.fillStyle = kindColor(data.kinds[a[4]]);
    g.setLineDash(e.lost ? [3, 3] : []);
    line(g, e.x1, e.y1, e.x2, e.y2);
    g.setLineDash([]);
    if (e.lost) cross(g, e.x2, e.y2); else arrowhead(g, e);
  }
}

function arrowhead(g, e) {
  const angle = Math.atan2(e.y2 - e.y1, e.x2 - e.x1);
  g.beginPath();
  g.moveTo(e.x2, e.y2);
  for (const turn of [-.4, .4]) g.lineTo(e.x2 - 7 * Math.cos(angle + turn), e.y2 - 7 * Math.sin(angle + turn));
  g.fill();
}

function cross(g, x, y) {
  g.strokeStyle = style.bad;
  line(g, x - 3, y - 3, x + 3, y + 3);
  line(g, x - 3, y + 3, x + 3, y - 3);
}

// drawVolume draws the messages per bucket: of the buckets that share a pixel,
// the busiest.
function drawVolume(g, run, rows) {
  const row = rows.volume;
  if (!row.height) return;
  g.fillStyle = style.volume;
  const first = Math.max(lastBefore(run.sent, view.from, b => b[0]), 0);
  for (let i = first; i < run.sent.length && run.sent[i][0] <= view.to; i++) {
    const [t, n] = run.sent[i];
    const x = rows.x(t), height = Math.max(1, row.height * n / run.busiest);
    g.fillRect(x, row.y + row.height - height, Math.max(rows.x(t + data.bucket) - x, 1), height);
  }
}

// drawOverview draws the leaders of the first run and which part is on screen.
function drawOverview(canvas) {
  const g = surface(canvas, 26), width = canvas.clientWidth;
  const x = t => t / end * width;
  data.runs.forEach((run, i) => {
    const height = 18 / data.runs.length, y = 4 + i * height;
    for (const r of run.reigns) {
      g.fillStyle = r.leader ? style.follower : style.none;
      g.fillRect(x(r.from), y, Math.max(x(r.to) - x(r.from), 1), Math.max(height - 1, 1));
    }
  });
  g.fillStyle = style.flag;
  for (const run of data.runs) for (const m of run.marks) g.fillRect(x(m.at), 0, 1, 4);
  g.fillStyle = style.shade;
  g.strokeStyle = style.accent;
  g.fillRect(x(view.from), 0, x(view.to) - x(view.from), 26);
  g.strokeRect(x(view.from) + .5, .5, Math.max(x(view.to) - x(view.from) - 1, 2), 25);
  g.fillStyle = style.accent;
  g.fillRect(x(view.cursor) - .5, 0, 1.5, 26);
}
