"use strict";
// A stage shows the nodes of a run in a circle at one moment, the links between them, and
// messages as dots on their way. Times are seconds.

const byId = id => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const seconds = t => parseFloat(t.toFixed(3)) + "s";

// svg makes an element of a picture.
function svg(tag, attributes, parent) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  parent.append(e);
  return e;
}

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

const looks = 10; // colors of kinds of messages, .k0 to .k9
const shapes = [
  "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
  "M-4.5-4.5h9v9h-9z",
  "M0-6.5L6.5 0 0 6.5-6.5 0z",
];
const cross = "m-4-4l8 8m0-8l-8 8"; // around a place

// looksOf gives each kind of message its look: the most frequent kinds are routine and get
// the pale colors. Kinds of one run look different as long as there are colors.
function looksOf(runs) {
  const kinds = new Map();
  for (const run of runs)
    for (const { kind } of run.messages) {
      if (!kinds.has(kind)) kinds.set(kind, { count: 0, runs: new Set() });
      kinds.get(kind).count++;
      kinds.get(kind).runs.add(run);
    }
  const sorted = [...kinds.values()].sort((a, b) => b.count - a.count);
  sorted.forEach((kind, i) => {
    const meets = other => [...kind.runs].some(run => other.runs.has(run)),
      taken = sorted.slice(0, i).filter(meets);
    kind.look = i % looks;
    for (let look = looks - 1; look >= 0; look--)
      if (!taken.some(other => other.look === look)) kind.look = look;
  });
  return kinds;
}

// makeStage fills a figure with the nodes and links of a run.
function makeStage(figure, run, kinds) {
  const picture = figure.querySelector("svg"),
    reign = figure.querySelector(".reign"),
    count = run.nodes.length;
  const radius = count < 3 ? 32 : Math.min(32, 85 * Math.sin(Math.PI / count));
  const [spokes, links, nodes, dots] = ["spokes", "links", "nodes", "dots"].map(name =>
    svg("g", { class: name }, picture),
  );

  const places = new Map();
  function place(name, x, y) {
    const g = svg("g", { class: "member", transform: `translate(${x} ${y})` }, nodes);
    svg("circle", { class: "lease", r: radius + 4 }, g);
    const disk = svg("circle", { class: "down", r: radius }, g),
      labels = svg("g", { transform: `scale(${radius / 32})` }, g);
    const [title, state, term] = [-6, 7, 19].map(y => svg("text", { class: "label", y }, labels));
    title.textContent = name.length > 9 ? name.slice(0, 8) + "~" : name;
    if (name.length > 6) title.classList.add("long");
    places.set(name, { x, y, g, disk, state, term });
  }
  run.nodes.forEach(({ node }, i) => {
    const angle = (2 * Math.PI * i) / count - (count === 2 ? Math.PI : Math.PI / 2),
      away = count === 1 ? 0 : 106;
    place(node, 180 + away * Math.cos(angle), 150 + away * Math.sin(angle));
  });
  // In the middle is whom nodes send messages though it is none of them: a store.
  for (const name of run.messages.flatMap(m => [m.from, m.to]))
    if (!places.has(name)) place(name, 180, 150);

  // toward is the place a share of the way from the rim of one node to that of another. Each
  // direction keeps to its own side.
  function toward(from, to, share, aside) {
    const a = places.get(from),
      b = places.get(to),
      dx = b.x - a.x,
      dy = b.y - a.y,
      length = Math.hypot(dx, dy) || 1;
    const along = (radius + share * (length - 2 * radius)) / length,
      across = aside / length;
    return [a.x + dx * along - dy * across, a.y + dy * along + dx * across];
  }

  // The half of a line that is nearer to a node shows whether the node hears the other one.
  // A spoke joins a node to the leader that it follows.
  const halves = new Map();
  for (const { node: from } of run.nodes)
    for (const { node: to } of run.nodes) {
      if (from === to) continue;
      const at = share => toward(from, to, share, 0).join(" "),
        half = svg("g", { "data-from": from, "data-to": to }, links);
      svg("path", { d: `M${at(0.5)}L${at(1)}` }, half);
      svg("path", { class: "cross", d: `M${at(0.75)}${cross}` }, half);
      const spoke = svg("path", { d: `M${at(0)}L${at(1)}` }, spokes);
      halves.set(`${from}\n${to}`, { from, to, half, spoke });
    }

  for (const [kind, { look, runs }] of kinds) {
    if (!runs.has(run)) continue;
    const entry = document.createElement("li"),
      chip = svg("svg", { class: "chip", width: 14, height: 14, viewBox: "-7 -7 14 14" }, entry);
    svg("path", { class: `dot k${look}`, d: shapes[look % shapes.length] }, chip);
    entry.append(kind);
    figure.querySelector(".kinds").append(entry);
  }

  const words = { alone: "no leader", expired: "lease over", rival: "rival leader" },
    most = 200; // dots
  let shown = new Map(); // the dots of messages

  return {
    // node shows what a node is; a span that is undefined is not known.
    node(name, span) {
      const at = places.get(name),
        state = span?.state ?? "down";
      if (at.span === span && at.g.dataset.state) return;
      at.span = span;
      at.g.dataset.state = state;
      at.g.dataset.tip = span?.tip ?? name;
      at.disk.setAttribute("class", state);
      at.state.textContent = words[state] ?? state;
      const silent = state === "down" || state === "paused" || !Number(span.term);
      at.term.textContent = silent ? "" : "term " + span.term;
    },

    // leads shows a part of the row that says who leads, and all states to those who cannot
    // see the picture.
    leads(part) {
      const text = part?.tip.split("\n")[0] ?? "";
      if (reign.value !== text) reign.value = text;
      reign.className = "reign " + (part?.state ?? "");
      const states = [...places].map(([name, at]) => `${name}: ${at.state.textContent}`);
      picture.ariaLabel = states.join(", ");
    },

    // links shows what state says of each direction.
    links(state) {
      for (const link of halves.values()) {
        const now = state(link.from, link.to);
        if (now === link.now) continue;
        link.now = now;
        link.half.setAttribute("class", now);
        link.spoke.setAttribute("class", now === "follows" ? now : "");
        halves.get(`${link.to}\n${link.from}`).half.dataset.led = now === "follows";
      }
    },

    // messages moves the dots. A dot takes as long as its message did, but at least some time;
    // one of a lost message goes half the way and is crossed out.
    messages(t, least, flight) {
      const begin = m => m.at_s,
        before = shown,
        first = lastBefore(run.messages, t - Math.max(run.slowest, flight, least), begin);
      shown = new Map();
      for (let i = lastBefore(run.messages, t, begin); i > first && shown.size < most; i--) {
        const m = run.messages[i],
          lost = m.received_s === undefined,
          took = Math.max(lost ? flight : m.received_s - m.at_s, least),
          share = (t - m.at_s) / took;
        if (share > 1) continue;
        const gone = lost && share > 0.5,
          { look } = kinds.get(m.kind);
        let dot = before.get(m);
        if (dot?.gone !== gone) {
          dot?.remove();
          const shape = gone
            ? { class: "dot lost", d: "M0 0" + cross }
            : { class: `dot k${look}`, d: shapes[look % shapes.length] };
          dot = Object.assign(svg("path", { ...shape, "data-tip": tipOf(m) }, dots), { gone });
        }
        const [x, y] = toward(m.from, m.to, gone ? 0.5 : share, 6);
        dot.setAttribute("transform", `translate(${x} ${y})`);
        shown.set(m, dot);
      }
      for (const [m, dot] of before) if (shown.get(m) !== dot) dot.remove();
    },

    // happened scrolls the list to the latest event, and points out those since a moment.
    happened(index, since) {
      const latest = [...run.items].slice(Math.max(index - 2, 0), index + 1),
        current = latest.at(-1),
        fresh = latest.filter(item => Number(item.dataset.at) >= since),
        names = fresh.map(item => item.children[1].textContent);
      for (const item of all(".fresh", run.list)) item.classList.remove("fresh");
      for (const item of fresh) item.classList.add("fresh");
      for (const [name, { g }] of places) g.classList.toggle("fresh", names.includes(name));
      if (current?.ariaCurrent) return;
      for (const item of all("[aria-current]", run.list)) item.ariaCurrent = null;
      if (!current) return;
      current.ariaCurrent = "true";
      run.list.scrollTop = current.offsetTop + current.offsetHeight - run.list.clientHeight;
    },
  };
}
