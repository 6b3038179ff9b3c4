// Panels of the chosen moment: links and events.
const linkLooks = {
  self: ["", ""], hears: ["\u00b7", "hears"], follows: ["\u2605", "hears and follows"], cut: ["\u2715", "cut off from"], off: ["\u2013", "cannot hear (one of them does not run)"],
};

function linkMatrix(run) {
  const cells = [];
  const cell = (to, from) => {
    const td = element("td", { "data-from": run.nodes[from].name, "data-to": run.nodes[to].name });
    cells.push({ td, to, from, shown: "" });
    return td;
  };
  const head = element("tr", {}, element("th"), ...run.nodes.map(n => element("th", { scope: "col", title: n.name }, n.name)));
  const body = run.nodes.map((n, to) => element("tr", {}, element("th", { scope: "row", title: n.name }, n.name), ...run.nodes.map((_, from) => cell(to, from))));
  const update = () => cells.forEach(c => updateLink(run, c));
  return { table: element("table", { class: "matrix" }, element("thead", {}, head), element("tbody", {}, ...body)), update };
}

function matrixLegend() {
  const item = (state, words) => element("li", {}, element("span", { class: "chip link " + state }, linkLooks[state][0]), words);
  return element("ul", { class: "legend narrow" }, item("hears", "row hears column"), item("follows", "and follows it"), item("cut", "is cut off"), item("off", "is not running"));
}

function updateLink(run, c) {
  const state = link(run, c.from, c.to, Math.min(view.cursor, run.duration));
  if (state === c.shown) return;
  c.shown = state;
  const [symbol, words] = linkLooks[state];
  c.td.className = c.td.dataset.state = state;
  c.td.textContent = symbol;
  c.td.title = words && `${c.td.dataset.to} ${words} ${c.td.dataset.from}`;
}

const mostEvents = 3000;

function eventList(run) {
  const list = element("ol"), shown = run.events.slice(0, mostEvents);
  const items = shown.map(e => element("li", { class: e.node ? "" : "ours" },
    element("button", { type: "button", onclick: () => choose(e.at) }, element("time", {}, e.at.toFixed(3)), element("b", {}, e.node), element("span", {}, e.text))));
  list.append(...items);
  if (run.events.length > mostEvents) list.append(element("li", { class: "faint" }, `and ${run.events.length - mostEvents} more; the json form has all`));
  if (!run.events.length) list.append(element("li", { class: "faint" }, "nothing"));
  let current = -1;
  const update = () => {
    const i = lastBefore(shown, view.cursor, e => e.at);
    if (i === current) return;
    if (current >= 0) items[current].removeAttribute("aria-current");
    current = i;
    if (i < 0) { list.scrollTop = 0; return; }
    items[i].setAttribute("aria-current", "true");
    list.scrollTop = items[i].offsetTop - list.clientHeight / 2;
  };
  return { list, update };
}
