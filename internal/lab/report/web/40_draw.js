// Drawing the canvas of a run.
const style = {};

// readStyle takes the colors from the style sheet, which knows light and dark.
function readStyle() {
  const of = getComputedStyle(document.documentElement);
  const names = data.states.map(s => s.class).concat("ink", "faint", "line", "grid", "accent", "flag", "card", "shade", "hatch",
    "on-leader", "cut", "none", "bad", "beat", "ask", "warn", "volume");
  for (const name of names) style[name] = of.getPropertyValue("--" + name).trim();
  style.hatching = hatch();
}

// hatch is a pattern that tells states apart where color does not.
function hatch() {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const g = tile.getContext("2d");
  g.strokeStyle = style.hatch;
  g.lineWidth = 1.4;
  for (const shift of [-6, 0, 6]) line(g, shift, 6, shift + 6, 0);
  return g.createPattern(tile, "repeat");
}

// surface clears a canvas for its size on this screen.
function surface(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  g.font = "11px system-ui, sans-serif";
  g.textBaseline = "middle";
  return g;
}

function drawRun(run, canvas) {
  const rows = layout(run, canvas.clientWidth);
  const g = surface(canvas, rows.height);
  drawAxis(g, rows);
  drawNames(g, run, rows);
  g.save();
  g.beginPath();
  g.rect(rows.left, 0, rows.right - rows.left, rows.height);
  g.clip();
  drawCuts(g, run, rows);
  drawReigns(g, run, rows);
  run.nodes.forEach((n, i) => drawLane(g, n, rows, rows.lanes[i]));
  drawVolume(g, run, rows);
  drawMarks(g, run, rows);
  drawArrows(g, run, rows);
  g.restore();
  drawCursor(g, rows);
  return rows;
}

function drawAxis(g, rows) {
  g.textAlign = "center";
  for (const t of ticks(rows)) {
    const x = Math.round(rows.x(t)) + .5;
    g.strokeStyle = style.grid;
    line(g, x, rows.axis.height, x, rows.height);
    g.fillStyle = style.faint;
    const label = seconds(t), half = g.measureText(label).width / 2;
    g.fillText(label, Math.min(Math.max(x, rows.left + half), rows.right + 8 - half), rows.axis.y + 8);
  }
  g.textAlign = "left";
}

function line(g, x1, y1, x2, y2) {
  g.beginPath();
  g.moveTo(x1, y1);
  g.lineTo(x2, y2);
  g.stroke();
}

function drawNames(g, run, rows) {
  const name = (text, row, color) => {
    g.fillStyle = color;
    fitText(g, text, 0, row.y + row.height / 2, rows.left - 8);
  };
  if (rows.cuts.height) name("cuts", rows.cuts, style.faint);
  name("leader", rows.leader, style.ink);
  run.nodes.forEach((n, i) => name(n.label, rows.lanes[i], style.ink));
  if (rows.volume.height) name("messages", rows.volume, style.faint);
}

// fitText writes text, shortened to width.
function fitText(g, text, x, y, width) {
  if (g.measureText(text).width <= width) return g.fillText(text, x, y);
  while (text.length > 1 && g.measureText(text + "\u2026").width > width) text = text.slice(0, -1);
  g.fillText(text + "\u2026", x, y);
}

// box draws a time at least so many pixels wide; its text only if there is room
// for all of it.
function box(g, rows, item, row, color, text, ink, least = 1) {
  const x = Math.max(rows.x(item.from), rows.left), right = Math.min(rows.x(item.to ?? end), rows.right);
  g.fillStyle = color;
  g.fillRect(x, row.y, Math.max(right - x, least), row.height);
  if (text && right - x > 12 && g.measureText(text).width + 10 < right - x) {
    g.fillStyle = ink;
    g.fillText(text, x + 5, row.y + row.height / 2 + .5);
  }
}

function drawCuts(g, run, rows) {
  for (const b of visible(run.bands)) box(g, rows, b, rows.cuts, style.cut, b.text, style.ink);
}

function drawReigns(g, run, rows) {
  g.font = "600 11px system-ui, sans-serif";
  const reigns = visible(run.reigns);
  for (const r of reigns) if (r.leader) box(g, rows, r, rows.leader, style.leader, r.leader, style["on-leader"]);
  for (const r of reigns) if (!r.leader) box(g, rows, r, rows.leader, style.none, "none", style["on-leader"], 2);
  g.font = "11px system-ui, sans-serif";
}

function drawLane(g, node, rows, row) {
  let term = "";
  for (const s of visible(node.spans)) {
    const state = data.states[s.state];
    const leads = state.class === "leader";
    const text = leads ? "term " + s.term : s.term !== term && state.class !== "down" ? s.term : "";
    box(g, rows, s, row, style[state.class], text, leads ? style["on-leader"] : style.ink);
    if (state.hatched) box(g, rows, s, row, style.hatching);
    term = s.term;
  }
}

function drawCursor(g, rows) {
  const x = Math.round(rows.x(view.cursor)) + .5;
  if (x < rows.left || x > rows.right + 1) return;
  g.strokeStyle = g.fillStyle = style.accent;
  line(g, x, rows.axis.height - 2, x, rows.height);
  g.beginPath();
  g.moveTo(x - 5, rows.axis.height - 5);
  g.lineTo(x + 5, rows.axis.height - 5);
  g.lineTo(x, rows.axis.height + 1);
  g.fill();
}
