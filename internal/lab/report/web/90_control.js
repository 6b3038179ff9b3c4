// Buttons, keys and the pointer.
const speeds = [.01, .1, .5, 1, 2, 5, 10, 30, 60, 300];
let playing = 0; // the time of the last frame, 0 if paused

function play(on) {
  playing = on ? performance.now() : 0;
  byId("play").textContent = on ? "Pause" : "Play";
  if (!on) return;
  if (view.cursor >= end) choose(0);
  requestAnimationFrame(frame);
}

function frame(now) {
  if (!playing) return;
  choose(view.cursor + Math.max(now - playing, 0) / 1000 * Number(byId("speed").value));
  playing = now;
  if (view.cursor >= end) return play(false);
  requestAnimationFrame(frame);
}

// bindControls wires the toolbar. A run plays in about half a minute at first.
function bindControls() {
  const usual = speeds.findLast(s => s <= Math.max(end / 30, .01)) || speeds[0];
  byId("speed").append(...speeds.map(s => element("option", { value: s, ...(s === usual ? { selected: "" } : {}) }, s + "\u00d7")));
  byId("play").addEventListener("click", () => play(!playing));
  byId("next").addEventListener("click", () => step(1));
  byId("previous").addEventListener("click", () => step(-1));
  byId("in").addEventListener("click", () => zoom(.5));
  byId("out").addEventListener("click", () => zoom(2));
  byId("fit").addEventListener("click", () => show(0, end));
  byId("messages").addEventListener("change", e => { view.messages = e.target.checked; changed(); });
  const slider = byId("slider");
  slider.max = end;
  slider.addEventListener("input", () => choose(Number(slider.value)));
  redraws.push(() => {
    slider.value = view.cursor;
    byId("now").textContent = view.cursor.toFixed(3) + "s";
  });
}

const keys = {
  " ": () => play(!playing), n: () => step(1), p: () => step(-1), "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), 0: () => show(0, end),
  Home: () => choose(0), End: () => choose(end),
  ArrowLeft: e => choose(view.cursor - (view.to - view.from) / (e.shiftKey ? 10 : 100)),
  ArrowRight: e => choose(view.cursor + (view.to - view.from) / (e.shiftKey ? 10 : 100)),
};

// onKey leaves to a focused control the keys that it uses itself.
function onKey(event) {
  const on = event.target.tagName, key = event.key;
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, key)) return;
  if (on === "SELECT" || on === "INPUT" && key !== "n" && key !== "p" && !(key === " " && event.target.type === "range")) return;
  if (on === "BUTTON" && key === " ") return;
  event.preventDefault();
  keys[key](event);
}

// bindCanvas lets the pointer move, zoom, choose and ask.
function bindCanvas(run, canvas, rowsOf) {
  let grip = null;
  canvas.addEventListener("pointerdown", e => { grip = { x: e.offsetX, from: view.from, moved: false }; });
  canvas.addEventListener("pointermove", e => {
    if (!grip || !e.buttons) return tell(under(run, rowsOf(), e.offsetX, e.offsetY), e);
    drag(canvas, rowsOf(), grip, e);
  });
  canvas.addEventListener("pointerup", e => {
    if (grip && !grip.moved) pick(run, rowsOf(), e);
    grip = null;
  });
  canvas.addEventListener("pointerleave", () => tell(null));
  canvas.addEventListener("wheel", e => wheel(rowsOf(), e), { passive: false });
}

function drag(canvas, rows, grip, event) {
  const by = event.offsetX - grip.x;
  if (Math.abs(by) < 4 && !grip.moved) return;
  if (!grip.moved) canvas.setPointerCapture(event.pointerId);
  grip.moved = true;
  tell(null);
  const width = view.to - view.from, from = grip.from - by * width / (rows.right - rows.left);
  show(from, from + width);
}

// pick chooses the moment under the pointer, or that of the event beneath it.
function pick(run, rows, event) {
  const found = under(run, rows, event.offsetX, event.offsetY);
  if (event.offsetX >= rows.left) choose(found?.at ?? rows.t(Math.min(event.offsetX, rows.right)));
}

function wheel(rows, event) {
  if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY * .004), rows.t(event.offsetX));
  else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const by = (event.deltaX || event.deltaY) * (view.to - view.from) / (rows.right - rows.left);
    show(view.from + by, view.to + by);
  } else return;
  event.preventDefault();
}
