// The controls: all code that listens to the document or writes to it.

const $ = id => document.getElementById(id);
const data = JSON.parse($("trace-data").textContent);
const model = new Model(data);
const chart = new Chart(model, $("chart"), $("overview"));

function element(tag, text, attributes) {
  // Text is never parsed as markup.
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  return made;
}

// ------------------------------------------------------------------ drawing

let asked = false, settle = 0;

function redraw(moving) {
  // During a movement, wide columns if the last picture was slow; then fine ones.
  if (moving && chart.took > 40) chart.fine = Math.min(chart.fine * 2, 8);
  clearTimeout(settle);
  if (chart.fine > 1) settle = setTimeout(() => { chart.fine = 1; redraw(false); }, 160);
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    chart.draw();
    if ($("which").value === "shown" && !moving) listArrays();
  });
}

function choose(i) {
  chart.chosen = i;
  const box = $("chosen");
  box.replaceChildren();
  if (i < 0) {
    box.append(element("p", "Click a band, or a row of the table.", { class: "faint" }));
  } else {
    box.append(element("p", model.title(i), { class: "title" }));
    const list = element("dl");
    for (const [name, text] of model.describe(i)) list.append(element("dt", name), element("dd", text));
    const stack = model.stackOf(i);
    if (stack.length > 1) {
      list.append(element("dt", "stack"));
      const lines = element("dd");
      stack.slice(1).forEach(line => lines.append(element("div", line)));
      list.append(lines);
    }
    box.append(list);
  }
  for (const row of $("rows").children) row.classList.toggle("chosen", Number(row.dataset.array) === i);
  redraw();
}

// ------------------------------------------------------------------ the chart

let pointers = new Map(), dragged = 0, pinch = 0;

function place(event) {
  const box = chart.canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function showTip(event) {
  const tip = $("tip"), [x, y] = place(event), found = chart.hit(x, y);
  tip.hidden = !found;
  chart.canvas.style.cursor = found && "array" in found ? "pointer" : "";
  if (!found) return;
  tip.replaceChildren();
  if (found.scope) {
    const s = found.scope, slot = s.kind === "phase" || s.slot === null ? "" : `, slot ${s.slot}`;
    const arena = s.kind === "phase" ? "" : `; arena of ${formatBytes(s.size)} as it began`;
    tip.append(element("p", `${s.kind} ${s.name}, ${s.words} ${s.generation}${slot}`, { class: "title" }));
    tip.append(element("p", `${formatTime(s.begin)} to ${s.open ? "the end, still open" : formatTime(s.end)}${arena}`));
  } else {
    tip.append(element("p", model.title(found.array), { class: "title" }));
    const list = element("dl");
    for (const [name, text] of model.describe(found.array)) list.append(element("dt", name), element("dd", text));
    tip.append(list);
    if (found.more) tip.append(element("p", `and ${found.more} smaller here: zoom in`, { class: "faint" }));
  }
  const box = chart.canvas.getBoundingClientRect();
  const left = x + 16 + tip.offsetWidth > box.width ? Math.max(x - 16 - tip.offsetWidth, 0) : x + 16;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.min(Math.max(y + 16, 0), Math.max(box.height - tip.offsetHeight, 0))}px`;
}

chart.canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const [x, y] = place(event), unit = event.deltaMode === 1 ? 30 : 1;
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) && !event.shiftKey;
  // Some systems turn Shift + wheel into a horizontal scroll.
  const turn = unit * (event.deltaY || event.deltaX);
  if (sideways) chart.moveTo(chart.x0 + unit * event.deltaX * (chart.x1 - chart.x0) / chart.width);
  else if (event.shiftKey) chart.zoomY(Math.pow(1.0018, turn), y);
  else chart.zoomX(Math.pow(1.0018, turn), chart.xAt(Math.min(Math.max(x, chart.left), chart.left + chart.width)));
  $("tip").hidden = true;
  redraw(true);
}, { passive: false });

chart.canvas.addEventListener("pointerdown", event => {
  chart.canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, [event.clientX, event.clientY]);
  dragged = 0;
  pinch = 0;
});

chart.canvas.addEventListener("pointermove", event => {
  const before = pointers.get(event.pointerId);
  if (!before) { showTip(event); return; }
  const dx = event.clientX - before[0], dy = event.clientY - before[1];
  pointers.set(event.pointerId, [event.clientX, event.clientY]);
  dragged += Math.abs(dx) + Math.abs(dy);
  if (pointers.size === 2) {
    const [a, b] = [...pointers.values()];
    const distance = Math.hypot(a[0] - b[0], a[1] - b[1]);
    const middle = (a[0] + b[0]) / 2 - chart.canvas.getBoundingClientRect().left;
    if (pinch) chart.zoomX(pinch / Math.max(distance, 1), chart.xAt(middle));
    pinch = distance;
  } else if (dragged > 3) {
    chart.moveTo(chart.x0 - dx * (chart.x1 - chart.x0) / chart.width);
    if (chart.yScale) {
      const shift = dy * chart.shownHeight() / chart.height;
      chart.y0 = Math.min(Math.max(chart.y0 + shift, 0), chart.highest() - chart.yScale);
    }
    chart.canvas.classList.add("moving");
  }
  $("tip").hidden = true;
  redraw(true);
});

function letGo(event) {
  if (!pointers.delete(event.pointerId)) return;
  chart.canvas.classList.remove("moving");
  if (event.type === "pointerup" && dragged <= 3) {
    const found = chart.hit(...place(event));
    choose(found && "array" in found ? found.array : -1);
  }
}
chart.canvas.addEventListener("pointerup", letGo);
chart.canvas.addEventListener("pointercancel", letGo);
chart.canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
chart.canvas.addEventListener("dblclick", event => {
  const found = chart.hit(...place(event));
  if (found && "array" in found) { chart.showArray(found.array); redraw(); }
});

function toPeak() {
  if (model.peak < 0) return;
  const x = chart.xOfEvent(model.peak), width = Math.min(chart.x1 - chart.x0, chart.last / 8);
  chart.moveTo(x - width / 2, width);
}

const middle = () => (chart.x0 + chart.x1) / 2;
const keys = {
  ArrowLeft: () => chart.moveTo(chart.x0 - (chart.x1 - chart.x0) / 8),
  ArrowRight: () => chart.moveTo(chart.x0 + (chart.x1 - chart.x0) / 8),
  ArrowUp: () => chart.zoomY(0.8, chart.top + chart.height),
  ArrowDown: () => chart.zoomY(1.25, chart.top + chart.height),
  "+": () => chart.zoomX(0.7, middle()),
  "=": () => chart.zoomX(0.7, middle()),
  "-": () => chart.zoomX(1 / 0.7, middle()),
  0: () => chart.fitAll(),
  Home: () => chart.fitAll(),
  p: toPeak,
  "]": () => choose(chart.neighbour(true)),
  "[": () => choose(chart.neighbour(false)),
  Enter: () => { if (chart.chosen >= 0) chart.showArray(chart.chosen); },
  Escape: () => choose(-1),
};
chart.canvas.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  $("tip").hidden = true;
  keys[event.key]();
  redraw();
});

// In the overview, a drag moves the frame or draws a new one.
let frame = null;
function overviewX(event) {
  const x = event.clientX - chart.overview.getBoundingClientRect().left;
  return Math.min(Math.max((x - chart.left) / chart.width, 0), 1) * chart.last;
}
chart.overview.addEventListener("pointerdown", event => {
  chart.overview.setPointerCapture(event.pointerId);
  const x = overviewX(event), all = chart.x1 - chart.x0 > 0.98 * chart.last;
  frame = { from: x, x0: chart.x0, takes: !all && x >= chart.x0 && x <= chart.x1 };
});
chart.overview.addEventListener("pointermove", event => {
  if (!frame) return;
  const x = overviewX(event), least = chart.last / 2000;
  if (frame.takes) chart.moveTo(frame.x0 + x - frame.from);
  else if (Math.abs(x - frame.from) > least) chart.moveTo(Math.min(x, frame.from), Math.abs(x - frame.from));
  redraw(true);
});
for (const type of ["pointerup", "pointercancel"])
  chart.overview.addEventListener(type, () => { frame = null; redraw(); });

// ------------------------------------------------------------------ the tools

function press(id, act) {
  $(id).addEventListener("click", () => { act(); redraw(); });
}
press("zoom-in", keys["+"]);
press("zoom-out", keys["-"]);
press("fit", keys[0]);
press("to-peak", toPeak);
$("reserved").addEventListener("change", event => {
  chart.showReserved = event.target.checked;
  // The zoomed range may lie above the new scale.
  chart.yScale = null;
  chart.y0 = 0;
  redraw();
});
$("axis").addEventListener("change", event => {
  const from = chart.timeAt(chart.x0), to = chart.timeAt(chart.x1);
  const all = chart.x1 - chart.x0 > 0.999 * chart.last;
  chart.axis = event.target.value;
  if (all) chart.fitAll();
  else { const a = chart.xOfTime(from); chart.moveTo(a, Math.max(chart.xOfTime(to) - a, 4)); }
  redraw();
});
$("colour").addEventListener("change", event => { chart.by = event.target.value; isolate(-1); });

let isolated = -1;
function isolate(g) {
  // Show one group of the legend in colour and the others grey; -1: all in colour.
  isolated = g;
  const groups = model.groupBy(chart.by);
  chart.hidden = g < 0 ? null : i => Math.min(groups.of[i], PALETTE.length) === g;
  showLegend();
  redraw();
}

function showLegend() {
  const groups = model.groupBy(chart.by), list = $("legend");
  list.replaceChildren();
  const total = Math.max(groups.peak.reduce((a, b) => a + b, 0), 1);
  const add = (g, name, title, peak, count) => {
    const item = element("li"), button = element("button", undefined, { type: "button", title, "aria-pressed": String(isolated === g) });
    const swatch = element("span", undefined, { class: "swatch" });
    swatch.style.background = PALETTE[g] || OTHERS;
    const bar = element("span", undefined, { class: "bar" });
    bar.style.width = `${100 * peak / total}%`;
    bar.style.background = PALETTE[g] || OTHERS;
    button.append(swatch, element("span", name, { class: "name" }), element("span", formatBytes(peak), { class: "size" }), bar);
    button.setAttribute("aria-label", `${title}: ${formatBytes(peak)} at the peak, ${count} arrays in all`);
    button.addEventListener("click", () => isolate(isolated === g ? -1 : g));
    item.append(button);
    list.append(item);
  };
  const most = PALETTE.length;
  groups.names.slice(0, most).forEach((name, g) =>
    add(g, chart.by === "maker" ? shortLine(name) : name, name, groups.peak[g], groups.count[g]));
  if (groups.names.length > most) {
    const sum = column => column.slice(most).reduce((a, b) => a + b, 0);
    add(most, `${groups.names.length - most} more`, "the others", sum(groups.peak), sum(groups.count));
  }
  $("legend-title").textContent = `At the peak: ${formatBytes(model.peakBytes)}`;
}

function find() {
  const found = model.search($("search").value);
  $("found").textContent = model.matches ? `${found} of ${model.n}` : "";
  model.only = $("only").checked;
  model.groups = {};
  model.restack();
  isolate(-1);
  listArrays();
}
let typing = 0;
$("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(find, 120); });
$("only").addEventListener("change", find);

// ------------------------------------------------------------------ the table

const COLUMNS = [
  ["bytes", i => model.bytes[i], i => formatBytes(model.bytes[i])],
  ["array", i => model.title(i), i => model.title(i)],
  ["made at", i => model.value(i, "maker"), i => shortLine(model.value(i, "maker"))],
  ["workspace", i => model.value(i, "workspace"), i => data.arrays.workspace[i] === null ? "" : model.value(i, "workspace")],
  ["born", i => model.born[i], i => formatTime(model.born[i])],
  ["lived", i => model.died[i] - model.born[i], i => model.died[i] === LIVES_ON ? "on" : formatTime(model.died[i] - model.born[i])],
  ["freed", i => model.value(i, "freed"), i => data.arrays.freed[i] || ""],
];
const ROWS = 200;
let sorted = 0, falling = true;

function listArrays() {
  const which = $("which").value;
  let arrays;
  if (which === "peak") arrays = model.aliveAfter(model.peak);
  else if (which === "end") arrays = model.aliveAfter(model.events.length - 1);
  else if (which === "shown") arrays = model.aliveBetween(chart.timeAt(chart.x0), chart.timeAt(chart.x1));
  else arrays = Array.from({ length: model.n }, (_, i) => i);
  if (model.matches) arrays = arrays.filter(i => model.matches[i]);
  const key = COLUMNS[sorted][1], sign = falling ? -1 : 1;
  const keys = new Map(arrays.map(i => [i, key(i)]));
  arrays.sort((a, b) => {
    const x = keys.get(a), y = keys.get(b);
    return sign * (x < y ? -1 : x > y ? 1 : 0) || a - b;
  });
  const rows = $("rows");
  rows.replaceChildren();
  for (const i of arrays.slice(0, ROWS)) {
    const row = element("tr", undefined, { tabindex: "0", "data-array": i });
    if (i === chart.chosen) row.classList.add("chosen");
    COLUMNS.forEach(([, , text], c) => row.append(element("td", text(i), c === 2 ? { title: model.value(i, "maker") } : {})));
    rows.append(row);
  }
  $("more").textContent = arrays.length > ROWS ? `and ${arrays.length - ROWS} more: search, or choose fewer`
    : arrays.length ? "" : "none";
  [...$("columns").children].forEach((head, c) =>
    head.setAttribute("aria-sort", c !== sorted ? "none" : falling ? "descending" : "ascending"));
}

COLUMNS.forEach(([name], c) => {
  const head = element("th", undefined, { scope: "col" }), button = element("button", name, { type: "button" });
  button.addEventListener("click", () => {
    falling = sorted === c ? !falling : c === 0 || c === 5;
    sorted = c;
    listArrays();
  });
  head.append(button);
  $("columns").append(head);
});

function chooseRow(event) {
  const row = event.target.closest("tr[data-array]");
  if (!row) return;
  const i = Number(row.dataset.array);
  if (chart.xOfTime(model.born[i]) < chart.x0 || chart.xOfTime(model.born[i]) > chart.x1) chart.showArray(i);
  choose(i);
}
$("rows").addEventListener("click", chooseRow);
$("rows").addEventListener("dblclick", () => { if (chart.chosen >= 0) { chart.showArray(chart.chosen); redraw(); } });
$("rows").addEventListener("keydown", event => {
  const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  if (next && event.target[next]) event.target[next].focus();
  else if (event.key === "Enter" || event.key === " ") chooseRow(event);
  else return;
  event.preventDefault();
});
$("which").addEventListener("change", listArrays);

// ------------------------------------------------------------------ the frame

function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  chart.setTheme();
  redraw();
}
const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => setTheme());
$("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
  setTheme(now === "dark" ? "light" : "dark");
});

function showFacts() {
  const facts = [
    ["peak", formatBytes(model.peakBytes)],
    ["most reserved", formatBytes(chart.reservedPeak())],
    ["arrays", String(model.n)],
    ["time", formatTime(data.end)],
    ["recorded", data.started.replace("T", " ").replace(/\.\d+/, "").replace("+00:00", " UTC")],
  ];
  for (const backend of data.backends)
    if (backend.limit !== null) facts.splice(1, 0, [`limit of ${backend.name}`, formatBytes(backend.limit)]);
  for (const [name, text] of facts) {
    const fact = element("div");
    fact.append(element("dt", name), element("dd", text));
    $("facts").append(fact);
  }
  const warnings = [];
  if (data.dropped) warnings.push(`${data.dropped} arrays that died before ${formatTime(data.complete_from)} are forgotten: the log was full.`);
  if (data.missed) warnings.push(`${data.missed} arrays were not recorded: the log was full of live ones.`);
  if (warnings.length) {
    $("warning").textContent = `${warnings.join(" ")} record(max_events=...) keeps more.`;
    $("warning").hidden = false;
  }
}

showFacts();
showLegend();
listArrays();
setTheme();
new ResizeObserver(() => redraw()).observe($("chart-box"));
