// The page holds the picture of the lanes, drawn for the whole run. What has a time in it has
// the attribute data-t, and data-to if it lasts; this script moves all of that as the reader
// zooms. Times are seconds.
const lanes = byId("lanes"),
  end = Number(lanes.dataset.end),
  left = Number(lanes.dataset.left);
const margin = 8,
  leastWidth = 2,
  markHeight = 12;

// read unpacks the JSON Lines of the runs.
async function read() {
  const bytes = Uint8Array.from(atob(byId("data").textContent), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const text = await new Response(stream).text();
  return text.split("\n").filter(Boolean).map(line => JSON.parse(line));
}

// timed wraps an element that has a time.
const pen = document.createElement("canvas").getContext("2d"),
  fonts = {};
function timed(e) {
  if (e.tagName === "text") pen.font = fonts[e.classList] ??= getComputedStyle(e).font;
  return {
    e,
    from: Number(e.dataset.t),
    to: Number(e.dataset.to ?? e.dataset.t),
    kind: e.classList[0],
    shown: !e.hasAttribute("display"),
    width: e.tagName === "text" ? pen.measureText(e.textContent).width : 0,
  };
}

// runOf is a part of the picture with all that the page knows of it.
function runOf(g, index, events) {
  const mine = events.filter(e => e.run === index),
    axis = g.querySelector(".axis"),
    labels = all(".marks text", g);
  const spans = lane =>
    all("rect", lane)
      .map(e => ({ ...timed(e), ...e.dataset, state: e.classList[0], to: Number(e.dataset.to) }))
      .sort((a, b) => a.from - b.from);
  const run = {
    g,
    axis,
    duration: mine[0].duration_s,
    top: Number(g.dataset.top),
    bottom: Number(g.nextElementSibling?.dataset.top ?? lanes.viewBox.baseVal.height),
    y: Number(axis.dataset.y),
    rows: all(".row", g).map(row => all(":scope > [data-t]", row).map(timed)),
    marks: all(".marks line", g).map((e, i) => ({ ...timed(e), label: timed(labels[i]) })),
    nodes: all(".lane", g).map(lane => ({ ...lane.dataset, spans: spans(lane) })),
    cuts: mine.filter(e => e.type === "cut"),
    messages: mine.filter(e => e.type === "message"),
    reigns: spans(g.querySelector(".reigns")),
    arrows: svg("svg", { class: "arrows", x: left, y: 0 }, g),
    list: all(".events")[index],
    items: all(".events")[index].querySelectorAll("button"),
  };
  run.node = new Map(run.nodes.map(n => [n.node, n]));
  run.slowest = Math.max(0, ...lengths(run.messages).slice(-1));
  return run;
}

// lengths are the times that messages took, the shortest first.
const lengths = messages =>
  messages
    .map(m => m.received_s - m.at_s)
    .filter(took => took > 0)
    .sort((a, b) => a - b);

// tipOf says all that is known of a message.
const tipOf = ({ text, from, to, at_s, received_s }) =>
  `${text}\n${from} to ${to}\nsent ${seconds(at_s)}, ` +
  (received_s === undefined ? "lost" : `took ${((received_s - at_s) * 1000).toFixed(1)} ms`);

async function main() {
  const events = await read(),
    runs = all("g.run", lanes).map((g, i) => runOf(g, i, events)),
    kinds = looksOf(runs),
    stages = runs.map((run, i) => makeStage(all(".stage")[i], run, kinds));
  // A flight is how long a message mostly takes.
  const flights = lengths(runs.flatMap(run => run.messages)),
    flight = flights[flights.length >> 1] ?? 0.01;
  const moments = [...new Set(runs.flatMap(r => [...r.items].map(e => Number(e.dataset.at))))];
  moments.sort((a, b) => a - b);
  byId("stages").hidden = false;

  // The part of the time that is on screen, and the chosen moment.
  const view = { from: 0, to: end, cursor: 0, messages: true };
  const shortest = Math.min(end, 0.01);
  let right = 0,
    moved = true,
    scheduled = false;
  const x = t => left + ((t - view.from) / (view.to - view.from)) * (right - left);
  const timeAt = x => view.from + ((x - left) / (right - left)) * (view.to - view.from);
  const inView = ({ from, to }) => to >= view.from && from <= view.to;

  // changed draws before the next frame; only where the view moved does everything
  // have a new place.
  function changed(viewMoved) {
    moved ||= viewMoved;
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      if (moved) place();
      moved = false;
      showMoment();
      document.body.dataset.ready ??= "";
    });
  }

  // show puts a window on screen, moved and cut so that it lies within the run.
  function show(from, to) {
    const width = Math.min(Math.max(to - from, shortest), end);
    view.from = Math.min(Math.max(from, 0), end - width);
    view.to = view.from + width;
    changed(true);
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
    if (view.cursor < view.from || view.cursor > view.to)
      show(view.cursor - width / 4, view.cursor + (width * 3) / 4);
    changed(false);
  }

  // Where more than two runs would not fit beside each other, the reader picks two.
  const narrow = matchMedia("(max-width: 640px)"),
    picks = all("#picker select");
  function pick(event) {
    if (event && picks[0].selectedIndex === picks[1].selectedIndex) {
      const other = picks.find(e => e !== event.target);
      other.selectedIndex = (other.selectedIndex + 1) % runs.length;
    }
    const shown = picks.map(e => e.selectedIndex);
    const hides = e => picks.length && narrow.matches && !shown.includes(Number(e.dataset.run));
    for (const e of all("[data-run]")) e.toggleAttribute("hidden", hides(e));
    resize();
  }
  const picked = () => runs.filter(run => !run.g.hasAttribute("hidden"));

  // resize puts the runs below each other, and leaves as many rows for the labels of marks as
  // the whole run needs at this width.
  function resize() {
    if (!lanes.clientWidth) return; // not on screen yet
    const { from, to } = view;
    Object.assign(view, { from: 0, to: end });
    if (right !== lanes.clientWidth - margin) // the lists have other lines: they scroll anew
      for (const item of all(".events [aria-current]")) item.ariaCurrent = null;
    right = lanes.clientWidth - margin;
    let y = 0;
    for (const run of picked()) {
      const most = Number(run.axis.dataset.rows);
      let n = 0;
      while (!placeMarks(run, n) && n < most) n++;
      run.rowsOfMarks = n;
      const unused = (most - run.rowsOfMarks) * markHeight;
      run.g.querySelector(".variant")?.setAttribute("transform", `translate(0 ${unused})`);
      run.up = run.top + unused - y;
      run.g.setAttribute("transform", `translate(0 ${-run.up})`);
      y += run.bottom - run.top - unused;
    }
    lanes.setAttribute("viewBox", `0 0 ${lanes.clientWidth} ${y}`);
    Object.assign(view, { from, to });
    changed(true);
  }

  // place gives everything that has a time its place.
  function place() {
    for (const run of picked()) {
      run.rows.forEach(placeRow);
      placeMarks(run, run.rowsOfMarks);
      placeAxis(run.axis);
      placeArrows(run);
    }
    shade.setAttribute("x", view.from * scale);
    shade.setAttribute("width", (view.to - view.from) * scale);
  }

  function reveal(b, shown) {
    if (b.shown === shown) return;
    b.shown = shown;
    if (shown) b.e.removeAttribute("display");
    else b.e.setAttribute("display", "none");
  }

  // placeRow places boxes, but for those that the one before of the same kind covers, and
  // those labels that fit into their box.
  function placeRow(row) {
    const covered = {};
    for (const b of row) {
      const from = Math.max(x(b.from), left),
        to = Math.min(x(b.to), right);
      const fits = b.width ? b.width + 5 <= to - from : !(to <= covered[b.kind]);
      reveal(b, inView(b) && fits);
      if (!b.shown) continue;
      b.e.setAttribute("x", b.width ? from + 4 : from);
      if (b.width) continue;
      covered[b.kind] = Math.max(to, from + leastWidth);
      b.e.setAttribute("width", Math.max(to - from, leastWidth));
    }
  }

  // placeMarks draws the line of each mark, and its label in the highest of n rows that is
  // free, if one is; it reports whether all labels have found room.
  function placeMarks(run, n) {
    const free = Array(n).fill(0);
    let all = true;
    for (const mark of run.marks) {
      const { e, label } = mark,
        at = x(mark.from),
        width = label.width + 6;
      reveal(mark, inView(mark));
      // Right of its line, or else left of it.
      const places = free.map(end =>
        [Math.min(at, right + margin - width), at - width].find(from => from >= end),
      );
      const row = places.findLastIndex(from => from !== undefined);
      reveal(label, mark.shown && row >= 0);
      if (!mark.shown) continue;
      all &&= label.shown;
      const top = run.y - 2 - markHeight * row;
      for (const name of ["x1", "x2"]) e.setAttribute(name, at);
      e.setAttribute("y1", row < 0 ? run.y + 16 : top - 9);
      if (!label.shown) continue;
      free[row] = places[row] + width;
      label.e.setAttribute("x", places[row] + 3);
      label.e.setAttribute("y", top);
    }
    return all;
  }

  // placeAxis draws round times with 90 pixels between them, or fewer on a narrow screen.
  function placeAxis(axis) {
    const top = Number(axis.dataset.y),
      height = Number(axis.dataset.height);
    const least = (view.to - view.from) * Math.min(90 / Math.max(right - left, 90), 1 / 4),
      zeros = 10 ** Math.floor(Math.log10(least)),
      distance = zeros * [1, 2, 5, 10].find(n => n * zeros >= least);
    axis.replaceChildren();
    for (let i = Math.ceil(view.from / distance - 1e-9); i * distance <= view.to; i++) {
      const at = x(i * distance);
      svg("line", { class: "grid", x1: at, x2: at, y1: top + 18, y2: top + height }, axis);
      svg("text", { class: "tick", x: Math.min(at, right - 10), y: top + 12 }, axis).textContent =
        seconds(i * distance);
    }
  }

  // Messages are drawn when so few are on screen that one can follow them.
  const mostArrows = 1500,
    leastPixelsPerSecond = 30;

  function placeArrows({ arrows, messages, node, slowest, bottom }) {
    arrows.replaceChildren();
    arrows.setAttribute("width", right - left);
    arrows.setAttribute("height", bottom);
    const first = lastBefore(messages, view.from - slowest - 1e-6, m => m.at_s) + 1,
      last = lastBefore(messages, view.to, m => m.at_s),
      readable = (right - left) / (view.to - view.from) >= leastPixelsPerSecond;
    if (!view.messages || !readable || last - first >= mostArrows) return;
    for (const m of messages.slice(first, last + 1)) {
      if (!node.has(m.from) || !node.has(m.to)) continue; // a store has no lane
      const lost = m.received_s === undefined,
        y1 = Number(node.get(m.from).y),
        to = Number(node.get(m.to).y);
      const x1 = x(m.at_s) - left,
        x2 = lost ? x1 + 6 : x(m.received_s) - left,
        y2 = lost ? (y1 + to) / 2 : to;
      const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
      const arrow = svg("g", {
        class: `arrow k${kinds.get(m.kind).look}${lost ? " lost" : ""}`,
        transform: `translate(${x2} ${y2}) rotate(${angle})`,
        "data-at": m.at_s,
        "data-tip": tipOf(m),
      }, arrows);
      const shaft = `M${-Math.hypot(x2 - x1, y2 - y1)} 0H0`;
      svg("path", { class: "hit", d: shaft }, arrow);
      svg("path", { class: "shaft", d: shaft }, arrow);
      svg("path", { class: "head", d: lost ? "M-3-3l6 6m0-6l-6 6" : "M-7-3L0 0l-7 3z" }, arrow);
    }
  }

  // stateAt is what a node is at a moment. The last moment of a run belongs to what
  // held before it.
  function stateAt(run, { spans }, t) {
    const i = lastBefore(spans, Math.min(t, run.duration), s => s.from);
    return spans[i] && (t < spans[i].to || i === spans.length - 1) ? spans[i] : undefined;
  }

  // linksAt says of each direction at a moment whether "to" hears "from".
  function linksAt(run, t) {
    const cut = new Set(),
      state = new Map(run.nodes.map(n => [n.node, stateAt(run, n, t)]));
    for (const c of run.cuts)
      if (c.at_s <= t && !(t >= c.until_s)) cut.add(`${c.from}\n${c.to}`);
    return (from, to) => {
      const silent = [undefined, "paused", "down"];
      if ([from, to].some(name => silent.includes(state.get(name)?.state))) return "off";
      if (cut.has(`${from}\n${to}`)) return "cut";
      return state.get(to).leader === from ? "follows" : "hears";
    };
  }

  // showMoment shows the chosen moment: the cursor, the nodes, links and events.
  function showMoment() {
    const at = x(view.cursor),
      t = view.cursor;
    const line = ({ y, up, axis }) => `M${at} ${y - up + 16}v${axis.dataset.height - 16}`;
    cursor.setAttribute("d", picked().map(line).join(""));
    cursor.setAttribute("display", at >= left && at <= right + 1 ? "inline" : "none");
    hand.setAttribute("x", view.cursor * scale - 1);
    byId("slider").value = t;
    byId("now").textContent = byId("slider").ariaValueText = t.toFixed(3) + "s";
    const least = leastFlight * rateAt(t);
    runs.forEach((run, i) => {
      if (run.g.hasAttribute("hidden")) return;
      const stage = stages[i];
      for (const node of run.nodes) stage.node(node.node, stateAt(run, node, t));
      stage.links(linksAt(run, Math.min(t, run.duration)));
      stage.leads(run.reigns[lastBefore(run.reigns, t, b => b.from)]);
      stage.messages(t, least, flight);
      const latest = lastBefore(run.items, t, e => Number(e.dataset.at));
      stage.happened(latest, t - Math.max(flight, 2 * least));
    });
  }

  // step goes to the next event in a direction.
  function step(direction) {
    const i = lastBefore(moments, view.cursor, m => m),
      to = direction > 0 ? i + 1 : moments[i] === view.cursor ? i - 1 : i;
    choose(moments[to] ?? (direction > 0 ? end : 0));
  }

  // nudge moves as far as a tenth of a second of the reader would.
  const nudge = direction => choose(view.cursor + 0.1 * direction * rateAt(view.cursor));

  // A dot takes this long at least, in seconds of the reader: otherwise it would not be seen.
  const leastFlight = 0.3;

  // rateAt is how many seconds pass in one of the reader's. At speed "auto" a message takes
  // 0.6 of the reader's seconds shortly before and after anything happens; what is between
  // passes in real time, or in six seconds if that is less.
  function rateAt(t) {
    const chosen = Number(byId("speed").value);
    if (chosen) return chosen;
    const i = lastBefore(moments, t, m => m),
      last = moments[i] ?? -Infinity,
      next = moments[i + 1] ?? Infinity,
      away = Math.max(Math.min(t - last - 2 * flight, next - t - 4 * flight), 0);
    const quick = Math.max(1, (Math.min(next, end) - Math.max(last, 0)) / 6);
    return Math.min(quick, flight / 0.6 + 8 * away);
  }

  let playing = 0, // the time of the last frame, 0 if paused
    next = 0; // the frame that was asked for
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  function play(on) {
    playing = on ? performance.now() : 0;
    cancelAnimationFrame(next); // of a play that was ended within a frame
    byId("play").textContent = on ? "Pause" : "Play";
    for (const e of all(".reign")) e.ariaLive = on ? "off" : "polite";
    if (!on) return;
    if (view.cursor >= end) choose(0);
    next = requestAnimationFrame(frame);
  }

  // frame moves on. Who wants no motion gets an event every two seconds instead.
  function frame(now) {
    if (!playing) return;
    const passed = Math.max(now - playing, 0) / 1000;
    if (!still.matches) choose(view.cursor + Math.min(passed, 0.1) * rateAt(view.cursor));
    else if (passed > 2) step(1);
    if (!still.matches || passed > 2) playing = now;
    if (view.cursor >= end) return play(false);
    next = requestAnimationFrame(frame);
  }

  // tell shows what an element says beside the pointer, or hides it.
  function tell(text, event) {
    const tip = byId("tip");
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const at = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 6);
    const below = event.clientY + 18,
      fits = below + tip.offsetHeight < innerHeight;
    const y = fits ? below : event.clientY - tip.offsetHeight - 10;
    tip.style.transform = `translate(${Math.max(at, 6)}px, ${y}px)`;
  }

  // The pointer moves, zooms, chooses and asks.
  let grip = null;
  const pointed = event => event.clientX - lanes.getBoundingClientRect().left;
  // under is what the pointer is on. A cursor line has no say in it.
  const under = event => event.target.closest("[data-t], [data-at]");

  lanes.addEventListener("pointerdown", e => {
    grip = { x: pointed(e), from: view.from, moved: false };
  });
  lanes.addEventListener("pointermove", e => {
    if (!grip || !e.buttons) return;
    const by = pointed(e) - grip.x;
    if (Math.abs(by) < 4 && !grip.moved) return;
    if (!grip.moved) lanes.setPointerCapture(e.pointerId);
    grip.moved = true;
    const width = view.to - view.from,
      from = grip.from - (by * width) / (right - left);
    show(from, from + width);
  });
  lanes.addEventListener("pointerup", e => {
    const to = pointed(e),
      on = under(e)?.dataset;
    if (grip && !grip.moved && to >= left)
      choose(Number(on?.at ?? (on && !on.to ? on.t : timeAt(Math.min(to, right)))));
    grip = null;
  });
  addEventListener("pointermove", e => {
    const on = e.target.closest?.("[data-tip]");
    tell(grip?.moved ? "" : on?.dataset.tip, e);
  });
  lanes.addEventListener(
    "wheel",
    e => {
      if (e.ctrlKey || e.metaKey) zoom(Math.exp(e.deltaY * 0.004), timeAt(pointed(e)));
      else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        const by = ((e.deltaX || e.deltaY) * (view.to - view.from)) / (right - left);
        show(view.from + by, view.to + by);
      } else return;
      e.preventDefault();
    },
    { passive: false },
  );

  const overview = byId("overview");
  for (const type of ["pointerdown", "pointermove"])
    overview.addEventListener(type, e => {
      if (!e.buttons) return;
      if (!overview.hasPointerCapture(e.pointerId)) overview.setPointerCapture(e.pointerId);
      const middle = (e.offsetX / overview.clientWidth) * end,
        width = view.to - view.from;
      if (width < end) show(middle - width / 2, middle + width / 2);
      else choose(middle);
    });

  const keys = {
    " ": () => play(!playing),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    0: () => show(0, end),
    Home: () => choose(0),
    End: () => choose(end),
    ArrowLeft: e => (e.shiftKey ? nudge(-1) : step(-1)),
    ArrowRight: e => (e.shiftKey ? nudge(1) : step(1)),
  };

  // A focused control keeps the keys that it uses itself.
  addEventListener("keydown", e => {
    const on = e.target.tagName,
      key = e.key;
    if (e.ctrlKey || e.metaKey || e.altKey || !Object.hasOwn(keys, key)) return;
    if (on === "SELECT" || (key === " " && (on === "BUTTON" || e.target === byId("messages"))))
      return;
    e.preventDefault();
    keys[key](e);
  });

  const speeds = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300];
  byId("speed").append(new Option("auto", ""), ...speeds.map(s => new Option(s + "\u00d7", s)));
  for (const [id, key] of Object.entries({ play: " ", in: "+", out: "-", fit: 0 }))
    byId(id).addEventListener("click", () => keys[key]());
  byId("next").addEventListener("click", () => step(1));
  byId("previous").addEventListener("click", () => step(-1));
  for (const button of all("button[data-at]"))
    button.addEventListener("click", () => choose(Number(button.dataset.at)));
  byId("messages").addEventListener("change", e => {
    view.messages = e.target.checked;
    changed(true);
  });
  byId("speed").addEventListener("change", () => changed(false));
  byId("slider").max = end;
  byId("slider").addEventListener("input", e => choose(Number(e.target.value)));

  // The overview shows who leads over the whole run, and the marks.
  const scale = overview.viewBox.baseVal.width / end,
    bar = 18 / runs.length;
  const strip = ({ kind, from, to }, y, height) => {
    const width = Math.max((to - from) * scale, 1);
    svg("rect", { class: kind, x: from * scale, width, y, height }, overview);
  };
  runs.forEach((run, i) => {
    for (const r of run.reigns) strip(r, 4 + i * bar, Math.max(bar - 1, 1));
  });
  for (const mark of runs[0]?.marks ?? []) strip(mark, 0, 26);
  const shade = svg("rect", { class: "shade", y: 0, height: 26 }, overview);
  const hand = svg("rect", { class: "hand", y: 0, height: 26, width: 2 }, overview);
  const cursor = svg("path", { class: "cursor" }, lanes);
  for (const e of picks) e.addEventListener("change", pick);
  new ResizeObserver(() => pick()).observe(document.body); // which calls it once at first
}
main();
