// What is under the pointer, as a heading and lines.
function under(run, rows, x, y) {
  const t = rows.t(x);
  if (x < rows.left || x > rows.right) return null;
  const inside = row => row.height > 0 && y >= row.y && y < row.y + row.height;
  const arrow = nearestArrow(run, rows, x, y);
  if (arrow) return describeArrow(run, arrow);
  const mark = run.marks.find(m => Math.abs(rows.x(m.at) - x) < 4) || (inside(rows.marks) ? labelUnder(run, rows, x) : undefined);
  if (mark && y < rows.leader.y) return { at: mark.at, lines: [mark.text, seconds(mark.at), mark.note && "no effect: " + mark.note] };
  if (inside(rows.cuts)) return describeCuts(run, t);
  if (inside(rows.leader)) return describeReign(leaderAt(run, t));
  if (inside(rows.volume)) return describeVolume(run, t);
  const lane = rows.lanes.findIndex(inside);
  return lane < 0 ? null : describeSpan(run, lane, stateAt(run, lane, t));
}

// labelUnder is the mark whose label the pointer is on.
function labelUnder(run, rows, x) {
  return run.marks.findLast(m => rows.x(m.at) <= x && x < rows.x(m.at) + 90);
}

function nearestArrow(run, rows, x, y) {
  let nearest = null, least = 5;
  for (const a of arrowsOnScreen(run, rows) ?? []) {
    const d = distance(ends(rows, a), x, y);
    if (d < least) { nearest = a; least = d; }
  }
  return nearest;
}

// distance of a point from a line between two points.
function distance(e, x, y) {
  const dx = e.x2 - e.x1, dy = e.y2 - e.y1;
  const along = Math.max(0, Math.min(1, ((x - e.x1) * dx + (y - e.y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - e.x1 - along * dx, y - e.y1 - along * dy);
}

function describeArrow(run, [sent, received, from, to, , text]) {
  const names = run.nodes[from].name + " to " + run.nodes[to].name;
  const took = received === null ? "lost" : "took " + ((received - sent) * 1000).toFixed(1) + " ms";
  return { at: sent, lines: [text, names, "sent " + seconds(sent) + ", " + took] };
}

function describeCuts(run, t) {
  const band = at(run.bands, t);
  return band && t < band.to ? { lines: ["cut: " + band.text, during(band)] } : null;
}

const during = item => seconds(item.from) + " to " + seconds(item.to);

function describeReign(reign) {
  return reign && { lines: [reign.leader ? reign.leader + " leads" : "nobody leads", during(reign)] };
}

function describeVolume(run, t) {
  const bucket = run.sent[lastBefore(run.sent, t, b => b[0])];
  const n = bucket && t < bucket[0] + data.bucket ? bucket[1] : 0;
  return { lines: [n + (n === 1 ? " message" : " messages"), "sent within " + data.bucket * 1000 + " ms"] };
}

function describeSpan(run, lane, span) {
  if (!span) return null;
  const state = data.states[span.state], name = run.nodes[lane].name;
  return { lines: [name + ": " + state.name, during(span), ...details(span, name)] };
}

// details are what a span says besides its state.
function details(span, name) {
  if (data.states[span.state].class === "down") return [];
  return [
    "term " + span.term + (span.max !== span.term ? ", knows of " + span.max : ""),
    span.paused && "role " + span.role,
    span.leader && span.leader !== name && "follows " + span.leader,
    span.lease !== null && "lease to " + seconds(span.lease),
  ].filter(Boolean);
}

// tell shows the heading and lines beside the pointer, or hides them.
function tell(found, event) {
  const tip = byId("tip");
  tip.hidden = !found;
  if (!found) return;
  const [heading, ...lines] = found.lines.filter(Boolean);
  tip.replaceChildren(element("b", {}, heading), ...lines.map(l => element("div", {}, l)));
  const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 6);
  const below = event.clientY + 18, fits = below + tip.offsetHeight < innerHeight;
  tip.style.transform = `translate(${Math.max(x, 6)}px, ${fits ? below : event.clientY - tip.offsetHeight - 10}px)`;
}
