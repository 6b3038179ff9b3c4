// Building the page.
function addRun(run) {
  const canvas = element("canvas", { role: "img", "aria-label": "Roles of the nodes over time" });
  byId("runs").append(element("div", { class: "lanes" }, data.runs.length > 1 ? element("h2", {}, run.variant) : "", canvas));
  let rows = layout(run, canvas.clientWidth);
  redraws.push(() => { rows = drawRun(run, canvas); });
  bindCanvas(run, canvas, () => rows);
  const moment = momentCard(run);
  byId("moments").append(moment.card);
  redraws.push(moment.update);
}

// bindOverview moves the window to where the overview is dragged.
function bindOverview() {
  const canvas = byId("overview");
  redraws.push(() => drawOverview(canvas));
  const move = e => {
    if (!e.buttons) return;
    const middle = e.offsetX / canvas.clientWidth * end, width = view.to - view.from;
    if (width < end) show(middle - width / 2, middle + width / 2); else choose(middle);
  };
  canvas.addEventListener("pointerdown", e => { canvas.setPointerCapture(e.pointerId); move(e); });
  canvas.addEventListener("pointermove", move);
}

function main() {
  readStyle();
  fillHead();
  fillFigures();
  fillExpected();
  fillLegend();
  bindControls();
  bindOverview();
  data.runs.forEach(addRun);
  redraws.push(() => { byId("zoomhint").hidden = !data.runs.some(r => r.hidesMessages); });
  addEventListener("keydown", onKey);
  new ResizeObserver(changed).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readStyle(); changed(); });
  changed();
}

main();
