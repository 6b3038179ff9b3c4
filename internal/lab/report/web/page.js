(() => {
  // The page holds the picture of the lanes, drawn for the whole run. What has a
  // time in it has the attribute data-t, and data-to if it lasts; this script moves
  // all of that as the reader zooms. Times are seconds.
  const byId = id => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const lanes = byId("lanes"),
    end = Number(lanes.dataset.end),
    left = Number(lanes.dataset.left);
  const margin = 8,
    leastWidth = 2,
    markHeight = 12;
  const seconds = t => parseFloat(t.toFixed(3)) + "s";

  // svg makes an element of a picture.
  function svg(tag, attributes, parent) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
    parent?.append(e);
    return e;
  }

  // widthOf is the width of a text, also of one that is not on screen.
  const pen = document.createElement("canvas").getContext("2d"),
    fonts = {};
  function widthOf(e) {
    pen.font = fonts[e.classList] ??= getComputedStyle(e).font;
    return pen.measureText(e.textContent).width;
  }

  // timed wraps an element that has a time.
  function timed(e) {
    return {
      e,
      tag: e.tagName,
      from: Number(e.dataset.t),
      to: Number(e.dataset.to ?? e.dataset.t),
      lasts: "to" in e.dataset,
      kind: e.classList[0],
      shown: !e.hasAttribute("display"),
      width: e.tagName === "text" ? widthOf(e) : 0,
      term: e.classList.contains("term") && e.textContent,
    };
  }

  // runs are the parts of the picture with all that the page knows of them.
  const events = byId("data")
    .textContent.trim()
    .split("\n")
    .filter(Boolean)
    .map(line => JSON.parse(line));
  const runs = all("g.run", lanes).map((g, i) => {
    const mine = events.filter(e => e.run === i),
      card = all(".moment")[i],
      labels = all(".marks text", g);
    const columns = mine.find(e => e.type === "messages");
    const run = {
      g,
      duration: mine[0].duration_s,
      axis: g.querySelector(".axis"),
      rows: all(".row", g).map(row => all(":scope > [data-t]", row).map(timed)),
      marks: all(".marks line", g).map((line, i) => ({
        line: timed(line),
        label: timed(labels[i]),
      })),
      nodes: all(".lane", g).map(lane => ({
        name: lane.dataset.node,
        y: Number(lane.dataset.y),
        spans: all("rect", lane)
          .map(e => ({
            from: Number(e.dataset.t),
            to: Number(e.dataset.to),
            state: e.classList[0],
            term: e.dataset.term,
            leader: e.dataset.leader,
          }))
          .sort((a, b) => a.from - b.from),
      })),
      cuts: mine.filter(e => e.type === "cut"),
      arrows: svg("svg", { class: "arrows", x: left, y: 0 }, g),
      states: all(".state tbody tr", card),
      links: all(".matrix td", card),
      list: card.querySelector(".events ol"),
      items: all(".events button", card),
    };
    run.node = new Map(run.nodes.map(n => [n.name, n]));
    run.messages = messagesOf(columns);
    run.reigns = run.rows
      .flat()
      .filter(b => b.kind === "reign" || b.kind === "noreign")
      .sort((a, b) => a.from - b.from);
    run.slowest = run.messages.reduce(
      (most, m) => Math.max(most, (m.received_s ?? m.at_s) - m.at_s),
      0,
    );
    return run;
  });

  // tipOf says all that is known of a message.
  const tipOf = ({ text, from, to, at_s, received_s }) =>
    `${text}\n${from} to ${to}\nsent ${seconds(at_s)}, ` +
    (received_s === undefined ? "lost" : `took ${((received_s - at_s) * 1000).toFixed(1)} ms`);

  // A stage for each run shows the chosen moment. A flight is how long a message mostly takes.
  const kinds = looksOf(runs),
    stages = runs.map((run, i) =>
      makeStage(all(".stage")[i], run, kinds, { svg, lastBefore }),
    );
  const flights = runs
    .flatMap(run => run.messages.map(m => m.received_s - m.at_s))
    .filter(took => took > 0)
    .sort((a, b) => a - b);
  const flight = flights[flights.length >> 1] ?? 0.01;
  byId("stages").hidden = false;

  // lastBefore is the index of the last item that begins at or before t, -1 if none does.
  function lastBefore(items, t, begin) {
    let low = 0,
      high = items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (begin(items[middle]) <= t) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  // The part of the time that is on screen, and the chosen moment.
  const view = { from: 0, to: end, cursor: 0, messages: true };
  const shortest = Math.min(end, 0.01);
  let right = 0,
    moved = true,
    scheduled = false;
  const x = t => left + ((t - view.from) / (view.to - view.from)) * (right - left);
  const timeAt = x => view.from + ((x - left) / (right - left)) * (view.to - view.from);

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

  // resize leaves as many rows for the labels of marks as the whole run needs at this width.
  const height = lanes.viewBox.baseVal.height;
  function resize() {
    if (!lanes.clientWidth) return; // not on screen yet
    const { from, to } = view;
    Object.assign(view, { from: 0, to: end });
    right = lanes.clientWidth - margin;
    let up = 0;
    for (const run of runs) {
      const most = Number(run.axis.dataset.rows);
      run.rowsOfMarks = placeMarks(run, Math.min(most, lanes.clientWidth < 640 ? most : 3));
      const unused = (most - run.rowsOfMarks) * markHeight;
      run.g.querySelector(".variant")?.setAttribute("transform", `translate(0 ${unused})`);
      up += unused;
      run.up = up;
      run.g.setAttribute("transform", `translate(0 ${-up})`);
    }
    lanes.setAttribute("viewBox", `0 0 ${lanes.clientWidth} ${height - up}`);
    Object.assign(view, { from, to });
    changed(true);
  }

  // place gives everything that has a time its place.
  function place() {
    for (const run of runs) {
      for (const row of run.rows) placeRow(row);
      placeMarks(run, run.rowsOfMarks);
      placeAxis(run.axis);
      placeArrows(run);
    }
    byId("zoomhint").hidden = !runs.some(r => r.hidesMessages);
    shade.setAttribute("x", view.from * scale);
    shade.setAttribute("width", (view.to - view.from) * scale);
  }

  // placeRow places boxes, and those labels that fit into their box. A term is written
  // where it changes and wherever a leader begins.
  function placeRow(row) {
    const covered = {};
    let term = "";
    for (const b of row) {
      const from = Math.max(x(b.from), left),
        to = Math.min(x(b.to), right);
      let shown = b.to >= view.from && b.from <= view.to;
      if (b.tag === "rect") {
        shown &&= !(to <= covered[b.kind]); // by the one before it of its kind
        if (shown) {
          covered[b.kind] = Math.max(to, from + leastWidth);
          b.e.setAttribute("x", from);
          b.e.setAttribute("width", Math.max(to - from, leastWidth));
        }
      } else {
        shown &&= b.width + 5 <= to - from && b.term !== term;
        if (shown) b.e.setAttribute("x", from + 4);
        if (shown && b.term) term = b.term.replace("term ", "");
      }
      reveal(b, shown);
    }
  }

  // placeMarks draws the line of each mark, and gives labels places in as few rows as those
  // need that say something new, of most; it returns how many. What says the same as a mark
  // before it gets what is left.
  function placeMarks(run, most) {
    const y = Number(run.axis.dataset.y),
      first = [],
      again = [],
      said = new Set();
    for (const { line, label } of run.marks) {
      const inView = line.from >= view.from && line.from <= view.to,
        text = label.e.textContent,
        at = x(line.from);
      reveal(line, inView);
      reveal(label, false);
      if (!inView) continue;
      (said.has(text) ? again : first).push({ line, label, x: at });
      said.add(text);
      for (const [name, value] of [["x1", at], ["x2", at], ["y1", y + 16]])
        line.e.setAttribute(name, value);
    }
    let n = 0,
      labels = [];
    while (labels.length < first.length && n < most) labels = placeIn(++n, false, [], first);
    labels = placeIn(n, true, labels, first);
    for (const { line, label, from, row } of placeIn(n, false, labels, again)) {
      const top = y - 2 - markHeight * row;
      reveal(label, true);
      line.e.setAttribute("y1", top - 9);
      label.e.setAttribute("x", from + 3);
      label.e.setAttribute("y", top);
      label.e.setAttribute("text-anchor", "start");
    }
    return n;
  }

  // placeIn adds to labels those of more for which it finds a place in n rows.
  function placeIn(n, crossing, labels, more) {
    for (const mark of more)
      if (!labels.includes(mark) && findPlace(mark, n, crossing, labels)) labels.push(mark);
    return labels;
  }

  // findPlace gives a label the highest of n rows in which it meets no other label and no
  // line: right of its own line, or else left of it. With crossing it may cover lines.
  function findPlace(mark, n, crossing, others) {
    const width = mark.label.width + 6,
      shares = crossing ? [0, 1, 0.75, 0.5, 0.25] : [0, 1];
    for (mark.row = n - 1; mark.row >= 0; mark.row--)
      for (const share of shares) {
        mark.from = mark.x - share * width;
        mark.to = mark.from + width;
        const meets = o =>
          (o.row === mark.row && mark.from < o.to && o.from < mark.to) ||
          (!crossing && o.row > mark.row && mark.from < o.x && o.x < mark.to) ||
          (!crossing && o.row < mark.row && o.from < mark.x && mark.x < o.to);
        if (mark.from >= 0 && mark.to <= right + margin && !others.some(meets)) return true;
      }
    return false;
  }

  function reveal(b, shown) {
    if (b.shown === shown) return;
    b.shown = shown;
    if (shown) b.e.removeAttribute("display");
    else b.e.setAttribute("display", "none");
  }

  // placeAxis draws round times with 90 pixels between them, or fewer on a narrow screen.
  function placeAxis(axis) {
    const top = Number(axis.dataset.y),
      height = Number(axis.dataset.height);
    const least = (view.to - view.from) * Math.min(90 / Math.max(right - left, 90), 1 / 4);
    const round = [
      1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600,
      1200, 1800, 3600, 7200, 21600, 43200, 86400,
    ];
    const distance = round.find(s => s >= least) || least;
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

  function placeArrows(run) {
    run.arrows.replaceChildren();
    run.arrows.setAttribute("width", right - left);
    run.arrows.setAttribute("height", height);
    const first = lastBefore(run.messages, view.from - run.slowest - 1e-6, m => m.at_s) + 1;
    const last = lastBefore(run.messages, view.to, m => m.at_s);
    const readable =
      (right - left) / (view.to - view.from) >= leastPixelsPerSecond && last - first < mostArrows;
    run.hidesMessages = view.messages && !readable && run.messages.length > 0;
    if (!view.messages || !readable) return;
    for (const m of run.messages.slice(first, last + 1)) {
      if (!run.node.has(m.from) || !run.node.has(m.to)) continue; // a store has no lane
      const lost = m.received_s === undefined,
        y1 = run.node.get(m.from).y,
        to = run.node.get(m.to).y;
      const x1 = x(m.at_s) - left,
        x2 = lost ? x1 + 6 : x(m.received_s) - left,
        y2 = lost ? (y1 + to) / 2 : to;
      const look = kinds.get(m.kind).look,
        arrow = svg(
          "g",
          { class: `arrow k${look}`, "data-at": m.at_s, "data-tip": tipOf(m) },
          run.arrows,
        );
      const shaft = `M${x1} ${y1}L${x2} ${y2}`,
        angle = Math.atan2(y2 - y1, x2 - x1);
      const barb = by => `L${x2 - 7 * Math.cos(angle + by)} ${y2 - 7 * Math.sin(angle + by)}`;
      svg("path", { class: "hit", d: shaft }, arrow);
      svg("path", { class: lost ? "shaft lost" : "shaft", d: shaft }, arrow);
      svg(
        "path",
        lost
          ? { class: "cross", d: `M${x2 - 3} ${y2 - 3}l6 6m0-6l-6 6` }
          : { class: "head", d: `M${x2} ${y2}${barb(-0.4)}${barb(0.4)}z` },
        arrow,
      );
    }
  }

  // stateAt is what a node is at a moment. The last moment of a run belongs to what
  // held before it.
  function stateAt(run, node, t) {
    const i = lastBefore(node.spans, Math.min(t, run.duration), s => s.from),
      span = node.spans[i];
    return span && (t < span.to || i === node.spans.length - 1) ? span : undefined;
  }

  const linkLooks = {
    self: ["", ""],
    hears: ["\u00b7", "hears"],
    follows: ["\u2605", "hears and follows"],
    cut: ["\u2715", "cut off from"],
    off: ["\u2013", "cannot hear (one of them does not run)"],
  };

  // link says whether "to" hears "from" at a moment.
  function link(run, from, to, t) {
    if (from === to) return "self";
    const [sender, receiver] = [from, to].map(name => stateAt(run, run.node.get(name), t));
    if (![sender, receiver].every(s => s && s.state !== "paused" && s.state !== "down"))
      return "off";
    if (run.cuts.some(c => c.from === from && c.to === to && c.at_s <= t && !(t >= c.until_s)))
      return "cut";
    return receiver.leader === from ? "follows" : "hears";
  }

  // showMoment shows the chosen moment: the cursor, the nodes, links and events.
  function showMoment() {
    const at = x(view.cursor),
      t = view.cursor;
    const lines = runs.map(({ up, axis: { dataset } }) => {
      return `M${at} ${dataset.y - up + 16}v${dataset.height - 16}`;
    });
    cursor.setAttribute("d", lines.join(""));
    cursor.setAttribute("display", at >= left && at <= right + 1 ? "inline" : "none");
    hand.setAttribute("x", view.cursor * scale - 1);
    byId("slider").value = t;
    byId("now").textContent = byId("slider").ariaValueText = t.toFixed(3) + "s";
    const least = leastFlight * rateAt(t);
    runs.forEach((run, i) => {
      const stage = stages[i];
      run.nodes.forEach((node, i) => {
        const span = stateAt(run, node, t),
          [, state, term, leader] = run.states[i].cells;
        if (span === node.shown) return;
        node.shown = span;
        stage.node(node.name, span);
        const known = span && document.querySelector(`#legend [data-state=${span.state}]`);
        state.replaceChildren(...(known ? known.cloneNode(true).childNodes : ["unknown"]));
        term.textContent = span && span.state !== "down" ? span.term : "";
        leader.textContent = span ? span.leader : "";
      });
      for (const cell of run.links) {
        const { from, to, state } = cell.dataset,
          now = link(run, from, to, Math.min(t, run.duration));
        if (now === state) continue;
        cell.className = cell.dataset.state = now;
        cell.textContent = linkLooks[now][0];
        cell.title = linkLooks[now][1] && `${to} ${linkLooks[now][1]} ${from}`;
        stage.link(from, to, now);
      }
      stage.leads(run.reigns[lastBefore(run.reigns, t, b => b.from)]);
      stage.show(t, least, flight);
      const index = lastBefore(run.items, t, b => Number(b.dataset.at)),
        current = run.items[index];
      stage.happened(index, t - Math.max(flight, 2 * least));
      if (current === run.current) return;
      run.current?.removeAttribute("aria-current");
      run.current = current;
      current?.setAttribute("aria-current", "true");
      run.list.scrollTop = current ? current.offsetTop - run.list.clientHeight / 2 : 0;
    });
  }

  // step goes to the next event in a direction.
  const moments = [
    ...new Set(events.filter(e => e.type === "transition" || e.type === "mark").map(e => e.at_s)),
  ].sort((a, b) => a - b);

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
    for (const list of all(".latest")) list.ariaLive = on ? "off" : "polite";
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
    tip.replaceChildren(
      ...text.split("\n").map((line, i) => {
        const e = document.createElement(i ? "div" : "b");
        e.textContent = line;
        return e;
      }),
    );
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
    if (!grip || !e.buttons) return tell(under(e)?.dataset.tip, e);
    const by = pointed(e) - grip.x;
    if (Math.abs(by) < 4 && !grip.moved) return;
    if (!grip.moved) lanes.setPointerCapture(e.pointerId);
    grip.moved = true;
    tell("");
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
  const pictures = all(".stage > svg"),
    tellDot = e => tell(e.target.message && tipOf(e.target.message), e);
  for (const e of pictures) e.addEventListener("pointermove", tellDot);
  for (const e of [lanes, ...pictures]) e.addEventListener("pointerleave", () => tell(""));
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

  function moveOverview(e) {
    if (!e.buttons) return;
    const middle = (e.offsetX / byId("overview").clientWidth) * end,
      width = view.to - view.from;
    if (width < end) show(middle - width / 2, middle + width / 2);
    else choose(middle);
  }
  byId("overview").addEventListener("pointerdown", e => {
    e.currentTarget.setPointerCapture(e.pointerId);
    moveOverview(e);
  });
  byId("overview").addEventListener("pointermove", moveOverview);

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
  for (const [id, act] of Object.entries({
    play: () => play(!playing),
    next: () => step(1),
    previous: () => step(-1),
    in: () => zoom(0.5),
    out: () => zoom(2),
    fit: () => show(0, end),
  }))
    byId(id).addEventListener("click", act);
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
  const scale = byId("overview").viewBox.baseVal.width / end,
    bar = 18 / runs.length;
  runs.forEach((run, i) => {
    let covered = -1;
    for (const { kind, from, to } of [...run.rows.flat(), ...run.marks.map(m => m.line)]) {
      const known = { reign: "follower", noreign: "noreign", mark: "mark" }[kind];
      if (!known || (kind === "reign" && to * scale <= covered)) continue;
      const at =
        kind === "mark" ? { y: 0, height: 26 } : { y: 4 + i * bar, height: Math.max(bar - 1, 1) };
      const width = Math.max((to - from) * scale, 1);
      svg("rect", { class: known, x: from * scale, width, ...at }, byId("overview"));
      covered = from * scale + width;
    }
  });
  const shade = svg("rect", { class: "shade", y: 0, height: 26 }, byId("overview"));
  const hand = svg("rect", { class: "hand", y: 0, height: 26, width: 2 }, byId("overview"));
  const cursor = svg("path", { class: "cursor" }, lanes);
  new ResizeObserver(resize).observe(document.body); // which calls it once at first
})();
