// The parts of the page that are text: figures, expectations, and for each run
// the chosen moment.
function fillHead() {
  const first = data.runs[0];
  if (!first) return;
  const failures = data.runs.reduce((n, r) => n + r.failures, 0);
  byId("title").textContent = first.scenario;
  byId("verdict").textContent = failures ? failures + " did not hold" : "all held";
  byId("verdict").classList.add(failures ? "failed" : "held");
  byId("about").textContent = first.about;
  byId("meta").textContent = `${first.mode}, seed ${first.seed}, ${seconds(first.duration)}, quorum ${first.quorum}`;
}

function fillFigures() {
  const table = byId("figures"), compared = data.runs.length > 1;
  if (compared) {
    table.append(element("thead", {}, element("tr", {}, element("td"), ...data.runs.map(r => element("th", { scope: "col" }, r.variant)))));
  }
  const names = data.runs.length ? data.runs[0].figures.map(f => f[0]) : [];
  table.append(element("tbody", {}, ...names.map((name, i) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...data.runs.map(r => element("td", {}, r.figures[i][1]))))));
}

// fillExpected makes a column of expectations for each run.
function fillExpected() {
  for (const run of data.runs) {
    const list = element("ul", {},
      ...run.problems.map(p => element("li", { class: "failed" }, element("span", { class: "mark" }, "\u2717"), p.kind, element("pre", {}, p.text))),
      ...run.verdicts.map(verdict));
    if (!list.childElementCount) list.append(element("li", { class: "faint" }, "nothing was expected"));
    byId("expected").append(element("div", {}, data.runs.length > 1 ? element("h3", {}, run.variant) : "", list));
  }
}

// verdict is one expectation; a click goes to where it broke or begins.
function verdict(v) {
  const seen = v.seen && v.where + ": " + v.seen;
  const text = element("span", {}, element("code", {}, v.text), seen ? element("small", {}, seen) : "");
  const button = element("button", { type: "button", onclick: () => choose(v.at) },
    element("span", { class: "mark", "aria-label": v.held ? "held" : "failed" }, v.held ? "\u2713" : "\u2717"), text);
  return element("li", { class: v.held ? "held" : "failed" }, button);
}

function fillLegend() {
  const occurring = new Set(data.runs.flatMap(r => r.nodes.flatMap(n => n.spans.map(s => s.state))));
  byId("legend").append(...data.legend.filter(i => occurring.has(i)).map(i => element("li", {}, chip(data.states[i]), data.states[i].name)));
}

const chip = state => element("span", { class: "chip " + state.class, "aria-hidden": "true" }, state.letter);

// momentCard makes the panels of one run; it returns the card and how to update it.
function momentCard(run) {
  const state = element("tbody"), matrix = linkMatrix(run), events = eventList(run);
  const head = ["node", "state", "term", "leader"].map(t => element("th", { scope: "col" }, t));
  const card = element("section", { class: "card moment", "aria-label": "The chosen moment" },
    element("div", {}, element("h2", {}, "Nodes" + (data.runs.length > 1 ? ", " + run.variant : "")),
      element("table", { class: "state" }, element("thead", {}, element("tr", {}, ...head)), state)),
    element("div", {}, element("h2", {}, "Who hears whom"), element("div", { class: "scroll" }, matrix.table), matrixLegend()),
    element("div", { class: "events" }, element("h2", {}, "What happened"), events.list));
  const rows = run.nodes.map((n, i) => stateRow(run, i));
  state.append(...rows.map(r => r.row));
  return { card, update: () => { rows.forEach(r => r.update()); matrix.update(); events.update(); } };
}

function stateRow(run, i) {
  const row = element("tr");
  let shown;
  const update = () => {
    const span = stateAt(run, i, view.cursor);
    if (span === shown && shown) return;
    shown = span;
    const state = span ? data.states[span.state] : { class: "down", letter: "", name: "unknown" };
    const stateCell = element("td", {}, chip(state), state.name);
    row.replaceChildren(element("td", {}, run.nodes[i].label), stateCell, element("td", {}, span ? span.term : ""), element("td", {}, span ? span.leader : ""));
  };
  return { row, update };
}
