"use strict";
// A stage shows the nodes of a run in a circle at one moment, the links between them, and
// messages as dots on their way. Times are seconds.

const looks = 10; // colors of kinds of messages, .k0 to .k9
const shapes = [
  "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
  "M-4.5-4.5h9v9h-9z",
  "M0-6.5L6.5 0 0 6.5-6.5 0z",
];
const cross = "m-4-4l8 8m0-8l-8 8"; // around a place

// messagesOf are the messages of a run, from the columns in which the page has them.
function messagesOf({ nodes, kinds, texts, sent_us, took_us, from, to, kind, text }) {
  let at = 0;
  return sent_us.map((since, i) => {
    at += since;
    return {
      at_s: at / 1e6,
      received_s: took_us[i] < 0 ? undefined : (at + took_us[i]) / 1e6,
      from: nodes[from[i]],
      to: nodes[to[i]],
      kind: kinds[kind[i]],
      text: texts[text[i]],
    };
  });
}

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
    const taken = sorted.slice(0, i).filter(other => [...kind.runs].some(run => other.runs.has(run)));
    kind.look = i % looks;
    for (let look = looks - 1; look >= 0; look--)
      if (!taken.some(other => other.look === look)) kind.look = look;
  });
  return kinds;
}

// makeStage fills a figure with the nodes and links of a run.
function makeStage(figure, run, kinds, { svg, lastBefore }) {
  const picture = figure.querySelector("svg"),
    latest = figure.querySelector(".latest"),
    legend = figure.querySelector(".kinds"),
    reign = figure.querySelector(".reign"),
    gaps = figure.querySelectorAll("[data-since]"),
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
  run.nodes.forEach(({ name }, i) => {
    const angle = (2 * Math.PI * i) / count - (count === 2 ? Math.PI : Math.PI / 2),
      away = count === 1 ? 0 : 106;
    place(name, 180 + away * Math.cos(angle), 150 + away * Math.sin(angle));
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
  for (const { dataset } of run.links) {
    const { from, to } = dataset;
    if (from === to) continue;
    const at = share => toward(from, to, share, 0).join(" "),
      half = svg("g", {}, links);
    svg("path", { d: `M${at(0.5)}L${at(1)}` }, half);
    svg("path", { class: "cross", d: `M${at(0.75)}${cross}` }, half);
    half.spoke = svg("path", { d: `M${at(0)}L${at(1)}` }, spokes);
    halves.set(`${from}\n${to}`, half);
  }

  for (const [kind, { look, runs }] of kinds) {
    if (!runs.has(run)) continue;
    const entry = document.createElement("li"),
      chip = svg("svg", { class: "chip", width: 14, height: 14, viewBox: "-7 -7 14 14" }, entry);
    svg("path", { class: `dot k${look}`, d: shapes[look % shapes.length] }, chip);
    entry.append(kind);
    legend.append(entry);
  }

  const words = { alone: "no leader", expired: "lease over" },
    most = 200; // dots
  let last = -1,
    shown = new Map(); // the dots of messages

  return {
    // node shows what a node is; a span that is undefined is not known.
    node(name, span) {
      const at = places.get(name),
        state = span?.state ?? "down",
        silent = state === "down" || state === "paused" || span.term === "0";
      at.g.dataset.state = state;
      at.disk.setAttribute("class", state);
      at.state.textContent = words[state] ?? state;
      at.term.textContent = silent ? "" : "term " + span.term;
    },

    // leads shows a part of the row that says who leads.
    leads(part) {
      if (reign.part === part) return;
      reign.part = part;
      reign.textContent = part?.e.dataset.tip.split("\n")[0] ?? "";
      reign.classList.toggle("noreign", part?.kind === "noreign");
    },

    link(from, to, state) {
      if (from === to) return;
      const half = halves.get(`${from}\n${to}`);
      half.setAttribute("class", state);
      half.spoke.setAttribute("class", state === "follows" ? state : "");
      halves.get(`${to}\n${from}`).dataset.led = state === "follows";
    },

    // show moves the dots. A dot takes as long as its message did, but at least some time; one
    // of a lost message goes half the way and is crossed out.
    show(t, least, flight) {
      for (const gap of gaps) gap.hidden = t < Number(gap.dataset.since);
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
          dot = Object.assign(svg("path", shape, dots), { message: m, gone });
        }
        const [x, y] = toward(m.from, m.to, gone ? 0.5 : share, 6);
        dot.setAttribute("transform", `translate(${x} ${y})`);
        shown.set(m, dot);
      }
      for (const [m, dot] of before) if (shown.get(m) !== dot) dot.remove();
    },

    // happened shows the latest of the listed events, and points out those since a moment.
    happened(index, since) {
      const items = run.items.slice(Math.max(index - 2, 0), index + 1).reverse();
      if (index !== last)
        latest.replaceChildren(
          ...items.map(item => {
            const entry = item.parentElement.cloneNode();
            entry.append(...item.cloneNode(true).childNodes);
            return entry;
          }),
        );
      last = index;
      const fresh = items.map(item => Number(item.dataset.at) >= since);
      items.forEach((_, i) => latest.children[i].classList.toggle("fresh", fresh[i]));
      for (const [name, { g }] of places)
        g.classList.toggle(
          "fresh",
          items.some((item, i) => fresh[i] && item.children[1].textContent === name),
        );
    },
  };
}
