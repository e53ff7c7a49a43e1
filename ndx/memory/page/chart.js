// Drawing: the stacked bands, the lines over them, the scopes below, the overview.

const PALETTE = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1",
  "#edc948", "#9c755f", "#ff9da7", "#5f8f9f"];
const OTHERS = "#97a1ae";
const MARGIN = { left: 76, right: 12, top: 14, bottom: 30 };
const LANE = 20;

function mix(colour, white) {
  // Towards white (above 0) or black.
  const part = at => {
    const value = parseInt(colour.slice(at, at + 2), 16);
    return Math.round(white >= 0 ? value + (255 - value) * white : value * (1 + white));
  };
  return `rgb(${part(1)},${part(3)},${part(5)})`;
}

function niceStep(most, count) {
  // A round step for at most `count` marks: 1, 2 or 5 times a power of 10.
  const power = Math.pow(10, Math.floor(Math.log10(most / count)));
  const factor = [1, 2, 5, 10].find(f => most / (power * f) <= count) || 10;
  return power * factor;
}

class Chart {
  constructor(model, canvas, overview) {
    this.model = model;
    this.canvas = canvas;
    this.overview = overview;
    this.by = "maker";
    this.axis = "time";
    this.showReserved = false;       // a pool may hold far more than the live bytes
    this.chosen = -1;
    this.cursor = null;              // {x} of the pointer, or null
    this.fine = 1;                   // pixels per column
    this.hidden = null;
    this.setScopes();
    this.fitAll();
  }

  // --------------------------------------------------------------- the axes

  get last() { return this.axis === "time" ? this.model.end : Math.max(this.model.events.length, 1); }

  xOfEvent(k) { return this.axis === "time" ? this.model.times[k] : k; }

  xOfTime(time) {
    if (this.axis === "time") return time;
    return stepSearch(this.model.times, this.model.times.length, time) + 1;
  }

  eventAt(x) {
    // The last event at or before an x; -1: none yet.
    if (this.axis === "events") return Math.min(Math.floor(x), this.model.events.length - 1);
    return stepSearch(this.model.times, this.model.times.length, x);
  }

  timeAt(x) {
    if (this.axis === "time") return x;
    const k = this.eventAt(x);
    return k < 0 ? 0 : this.model.times[k];
  }

  fitAll() {
    this.x0 = 0;
    this.x1 = this.last;
    if (this.axis === "time" && this.model.data.dropped)
      this.x0 = Math.min(this.model.data.complete_from, this.x1 * 0.999);
    this.yScale = null;              // null: follows the visible part
    this.y0 = 0;
  }

  zoomX(factor, x) {
    const least = this.axis === "time" ? 100 : 4;
    const width = Math.min(Math.max((this.x1 - this.x0) * factor, least), this.last);
    const part = (x - this.x0) / (this.x1 - this.x0);
    this.moveTo(x - width * part, width);
  }

  moveTo(x0, width) {
    width = Math.min(width === undefined ? this.x1 - this.x0 : width, this.last);
    this.x0 = Math.min(Math.max(x0, 0), this.last - width);
    this.x1 = this.x0 + width;
  }

  zoomY(factor, y) {
    const at = this.bytesAt(y), top = this.highest();
    const height = Math.min(Math.max(this.shownHeight() * factor, 64), top);
    if (height >= top) { this.yScale = null; this.y0 = 0; return; }
    const part = (at - this.y0) / this.shownHeight();
    this.yScale = height;
    this.y0 = Math.min(Math.max(at - height * part, 0), top - height);
  }

  highest() {
    return 1.06 * Math.max(this.model.peakBytes, this.showReserved ? this.reservedPeak() : 0, 64);
  }

  reservedPeak() {
    if (this.peakOfReserved === undefined)
      this.peakOfReserved = this.model.reserved.values.reduce((a, b) => Math.max(a, b), 0);
    return this.peakOfReserved;
  }

  shownHeight() { return this.yScale || this.autoHeight || 64; }

  showArray(i) {
    // Zoom so that the life of an array fills much of the width.
    const a = this.xOfTime(this.model.born[i]) - (this.axis === "events" ? 1 : 0);
    const b = Math.min(this.xOfTime(Math.min(this.model.died[i], this.model.end)), this.last);
    const width = Math.max((b - a) * 1.5, this.axis === "time" ? 100 : 4);
    this.moveTo((a + b) / 2 - width / 2, width);
  }

  px(x) { return this.left + (x - this.x0) / (this.x1 - this.x0) * this.width; }
  py(y) { return this.top + this.height - (y - this.y0) / this.shownHeight() * this.height; }
  xAt(px) { return this.x0 + (px - this.left) / this.width * (this.x1 - this.x0); }
  bytesAt(py) { return this.y0 + (this.top + this.height - py) / this.height * this.shownHeight(); }

  // ------------------------------------------------------------- colours

  setTheme() {
    const style = getComputedStyle(document.documentElement);
    const get = name => style.getPropertyValue(name).trim();
    this.ink = get("--ink"); this.faint = get("--faint"); this.line = get("--line");
    this.paper = get("--paper"); this.accent = get("--accent");
  }

  colours() {
    const groups = this.model.groupBy(this.by);
    const key = `${this.by}`;
    if (this.styleKey !== key) {
      this.styleKey = key;
      this.styles = [];
      for (let g = 0; g <= PALETTE.length; g++)
        for (const white of [0, 0.13, -0.1])
          this.styles.push(mix(PALETTE[g] || OTHERS, white));
      this.dim = this.styles.length;
    }
    return groups;
  }

  styleOf(i, groups) {
    if (this.hidden && !this.hidden(i)) return this.dim;
    if (this.model.matches && !this.model.matches[i]) return this.dim;
    return 3 * Math.min(groups.of[i], PALETTE.length) + i % 3;
  }

  // ------------------------------------------------------------- the stack

  resize() {
    const ratio = this.ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.overview]) {
      const box = canvas.getBoundingClientRect();
      const w = Math.max(Math.round(box.width * ratio), 1), h = Math.max(Math.round(box.height * ratio), 1);
      if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    }
    this.left = MARGIN.left;
    this.top = MARGIN.top;
    this.width = Math.max(this.canvas.width / ratio - MARGIN.left - MARGIN.right, 10);
    this.height = Math.max(this.canvas.height / ratio - MARGIN.top - MARGIN.bottom - this.lanes * LANE, 10);
  }

  columns() {
    // [pixel, event] pairs: from this pixel on, the stack is drawn as after this event.
    // A column with several events shows the highest state, so that no peak is lost.
    const { model } = this, runs = [], live = model.live;
    let k = this.eventAt(this.x0);
    runs.push([this.left, k]);
    let drawn = k;
    this.autoHeight = k >= 0 ? live[k] : 0;
    const last = this.eventAt(this.x1);
    while (k < last) {
      const column = Math.floor((this.px(this.xOfEvent(k + 1)) - this.left) / this.fine);
      const x = this.left + column * this.fine;
      let best = k + 1;
      // After a column with several events, draw the state after the last of them.
      for (k = k + 1; k + 1 <= last && this.px(this.xOfEvent(k + 1)) < x + this.fine; k++)
        if (live[k + 1] > live[best]) best = k + 1;
      if (live[k] > live[best]) best = k;
      if (live[best] > this.autoHeight) this.autoHeight = live[best];
      // A column that is no higher than before its first event keeps that state.
      if (drawn >= 0 && live[drawn] > live[best] && runs[runs.length - 1][0] >= x) best = drawn;
      runs.push([x, best]);
      drawn = k;
      if (best !== k) runs.push([x + this.fine, k]);
    }
    return runs;
  }

  draw() {
    const started = performance.now();
    const { model } = this, context = this.canvas.getContext("2d");
    this.resize();
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const runs = this.runs = this.columns();
    if (this.showReserved) this.autoHeight = Math.max(this.autoHeight, this.reservedShown());
    this.autoHeight = Math.max(this.autoHeight * 1.06, 64);
    this.drawGrid(context);
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, this.width, this.height);
    context.clip();
    this.drawBands(context, runs);
    if (model.only && model.matches) this.drawLive(context);
    if (this.showReserved) this.drawReserved(context);
    this.drawForgotten(context);
    context.restore();
    this.drawScopes(context);
    this.drawFrame(context);
    this.drawOverview();
    this.took = performance.now() - started;
  }

  drawBands(context, runs) {
    const { model } = this, groups = this.colours();
    const scale = this.height / this.shownHeight(), least = 2 / scale;
    const low = this.y0, high = this.y0 + this.shownHeight();
    const buckets = this.styles.map(() => []);
    buckets.push([]);
    const open = new Map(), labels = new Map();
    const outline = [];
    const close = (item, right) => {
      const width = right - item.x;
      if (width <= 0) return;
      const y = this.py(item.y + item.bytes), height = item.bytes * scale;
      buckets[item.style].push(item.x, y, width, height > 4 ? height - 1 : height);
      if (height >= 15 && width >= 60 && item.node >= model.leaves) {
        const i = item.node - model.leaves, known = labels.get(i);
        if (!known || known.width < width) labels.set(i, { x: item.x, y, width, height, style: item.style });
      }
    };
    for (let r = 0; r < runs.length; r++) {
      const x = runs[r][0];
      const right = r + 1 < runs.length ? runs[r + 1][0] : this.left + this.width;
      if (right <= x && r + 1 < runs.length) continue;
      model.goTo(runs[r][1]);
      if (this.chosen >= 0 && model.sum[model.leaves + this.chosen] > 0)
        outline.push([x, right, model.offsetOf(this.chosen)]);
      model.visit(low, high, least, (node, y, bytes) => {
        const style = this.styleOf(model.largest[node], groups);
        const item = open.get(node);
        if (item && item.right === x && item.y === y && item.bytes === bytes && item.style === style) {
          item.right = right;
        } else {
          if (item) close(item, item.right);
          open.set(node, { node, x, right, y, bytes, style });
        }
      });
    }
    for (const item of open.values()) close(item, item.right);
    this.rectangles = 0;
    buckets.forEach((bucket, style) => {
      context.fillStyle = style === this.dim ? this.line : this.styles[style];
      this.rectangles += bucket.length / 4;
      for (let b = 0; b < bucket.length; b += 4)
        context.fillRect(bucket[b], bucket[b + 1], bucket[b + 2], bucket[b + 3]);
    });
    this.drawLabels(context, labels);
    if (outline.length) this.drawOutline(context, outline, model.bytes[this.chosen]);
  }

  drawLabels(context, labels) {
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const [i, box] of labels) {
      const left = Math.max(box.x, this.left) + 5;
      const room = Math.min(box.x + box.width, this.left + this.width) - left - 4;
      const middle = box.y + box.height / 2;
      if (room < 50 || middle < this.top + 6 || middle > this.top + this.height - 6) continue;
      let text = this.model.title(i);
      const maker = shortLine(this.model.value(i, "maker"));
      if (context.measureText(`${text}  ${maker}`).width <= room) text += `  ${maker}`;
      else if (context.measureText(text).width > room) continue;
      context.fillStyle = box.style === this.dim ? this.faint : "#10151c";
      context.fillText(text, left, middle);
    }
  }

  drawOutline(context, outline, bytes) {
    context.beginPath();
    for (const upper of [true, false]) {
      const parts = upper ? outline : outline.slice().reverse();
      for (const [a, b, y] of parts) {
        const py = this.py(upper ? y + bytes : y);
        const [from, to] = upper ? [a, b] : [b, a];
        if (upper && a === outline[0][0]) context.moveTo(from, py); else context.lineTo(from, py);
        context.lineTo(to, py);
      }
    }
    context.closePath();
    context.lineWidth = 2.5;
    context.strokeStyle = this.ink;
    context.stroke();
    context.lineWidth = 1;
    context.strokeStyle = this.paper;
    context.stroke();
  }

  // ------------------------------------------------------------- lines and scopes

  reservedShown() {
    const { times, values } = this.model.reserved;
    let most = 0;
    const from = Math.max(stepSearch(times, times.length, this.timeAt(this.x0)), 0);
    const to = stepSearch(times, times.length, this.timeAt(this.x1));
    for (let s = from; s <= to; s++) most = Math.max(most, values[s]);
    return most;
  }

  curve(context, from, to, xOf, yOf) {
    // A line of steps. A column of pixels with several steps shows the highest.
    context.beginPath();
    let y = this.py(yOf(from)), drawn = -1;
    context.moveTo(Math.max(xOf(from), this.left), y);
    for (let s = from + 1; s <= to;) {
      const x = xOf(s), column = Math.floor(x);
      if (column !== drawn + 1) context.lineTo(Math.max(x, drawn + 1), y);
      let high = Infinity;
      for (; s <= to && Math.floor(xOf(s)) === column; s++) high = Math.min(high, y = this.py(yOf(s)));
      context.lineTo(x, high);
      context.lineTo(Math.max(x, column + 1), high);
      // Down again, unless the next column goes on.
      if (s > to || Math.floor(xOf(s)) > column + 1) context.lineTo(Math.max(x, column + 1), y);
      drawn = column;
    }
    context.lineTo(this.left + this.width, y);
    return y;
  }

  drawLive(context) {
    const { model } = this, all = model.liveOfAll;
    const from = this.eventAt(this.x0), to = this.eventAt(this.x1);
    this.curve(context, from, to, k => k < 0 ? this.left : this.px(this.xOfEvent(k)), k => k < 0 ? 0 : all[k]);
    context.lineWidth = 1;
    context.strokeStyle = this.ink;
    context.globalAlpha = 0.7;
    context.stroke();
    context.globalAlpha = 1;
  }

  drawReserved(context) {
    const { times, values } = this.model.reserved;
    if (!times.length) return;
    const from = Math.max(stepSearch(times, times.length, this.timeAt(this.x0)), 0);
    const to = Math.max(stepSearch(times, times.length, this.timeAt(this.x1)), from);
    const y = this.curve(context, from, to, s => this.px(this.xOfTime(times[s])), s => values[s]);
    context.setLineDash([6, 4]);
    context.lineWidth = 1.5;
    context.strokeStyle = this.ink;
    context.stroke();
    context.setLineDash([]);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "bottom";
    const label = `reserved ${formatBytes(values[to])}`;
    const room = context.measureText(label).width;
    const above = y - 3 > this.top + 12 ? y - 3 : y + 17;
    context.fillStyle = this.paper;
    context.globalAlpha = 0.85;
    context.fillRect(this.left + this.width - room - 10, above - 14, room + 8, 15);
    context.globalAlpha = 1;
    context.fillStyle = this.ink;
    context.fillText(label, this.left + this.width - 6, above);
  }

  drawForgotten(context) {
    const until = this.px(this.xOfTime(this.model.data.complete_from));
    if (!this.model.data.dropped || until <= this.left) return;
    context.fillStyle = this.faint;
    context.globalAlpha = 0.25;
    context.fillRect(this.left, this.top, until - this.left, this.height);
    context.globalAlpha = 1;
  }

  setScopes() {
    // Lanes of phases, then of workspaces: one for each name, the last for all others.
    const { scopes, workspaces, phases, phase_names } = this.model.data;
    const lanesOf = names => {
      const found = [...new Set(names)].slice(0, 5);
      return found.length > 4 ? [...found.slice(0, 3), "others"] : found;
    };
    const phaseLanes = lanesOf(phases.name.map(n => phase_names[n]));
    const scopeLanes = lanesOf(scopes.workspace.map(w => workspaces[w].name));
    this.laneNames = [...phaseLanes, ...scopeLanes];
    this.lanes = this.laneNames.length;
    const laneOf = (lanes, name, first) => first + (lanes.includes(name) ? lanes.indexOf(name) : lanes.length - 1);
    const timed = (columns, i) => ({
      begin: columns.begin[i], end: columns.end[i] === null ? this.model.end : columns.end[i], open: columns.end[i] === null,
    });
    const runs = {};
    this.scopes = [
      ...phases.begin.map((_, i) => {
        const name = phase_names[phases.name[i]];
        runs[name] = (runs[name] || 0) + 1;
        return { ...timed(phases, i), lane: laneOf(phaseLanes, name, 0), name, kind: "phase", words: "run", generation: runs[name] };
      }),
      ...scopes.begin.map((_, s) => {
        const { name, slot } = workspaces[scopes.workspace[s]];
        return {
          ...timed(scopes, s), lane: laneOf(scopeLanes, name, phaseLanes.length), name, kind: "workspace", words: "generation",
          slot, generation: scopes.generation[s], size: scopes.size[s],
        };
      }),
    ];
  }

  laneTop(lane) { return this.top + this.height + 5 + lane * LANE; }

  drawScopes(context) {
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const columns = Array.from({ length: this.lanes }, () => -1);
    for (let lane = 0; lane < this.lanes; lane++) {
      context.textAlign = "right";
      context.fillStyle = this.faint;
      let name = this.laneNames[lane];
      while (name.length > 3 && context.measureText(name).width > this.left - 14) name = name.slice(0, -2) + "…";
      context.fillText(name, this.left - 8, this.laneTop(lane) + 7);
    }
    context.save();
    context.beginPath();
    context.rect(this.left, this.top + this.height, this.width, this.lanes * LANE + 6);
    context.clip();
    context.textAlign = "left";
    for (const scope of this.scopes) {
      const a = Math.max(this.px(this.xOfTime(scope.begin)), this.left);
      const b = Math.min(this.px(this.xOfTime(scope.end)), this.left + this.width);
      if (b < this.left || a > this.left + this.width) continue;
      // Draw only the first of many in one pixel.
      if (Math.floor(b) === columns[scope.lane]) continue;
      columns[scope.lane] = Math.floor(b);
      context.fillStyle = this.accent;
      context.globalAlpha = scope.generation % 2 ? 0.35 : 0.55;
      context.fillRect(a, this.laneTop(scope.lane), Math.max(b - a - (b - a > 3 ? 1 : 0), 0.7), LANE - 6);
      context.globalAlpha = 1;
      const text = `${scope.words} ${scope.generation}`;
      context.fillStyle = this.ink;
      for (const label of [text, String(scope.generation)])
        if (context.measureText(label).width < b - a - 10) {
          context.fillText(label, a + 5, this.laneTop(scope.lane) + 7.5);
          break;
        }
    }
    context.restore();
  }

  // ------------------------------------------------------------- axes and frame

  drawGrid(context) {
    context.font = "11px system-ui, sans-serif";
    context.lineWidth = 1;
    context.strokeStyle = this.line;
    context.fillStyle = this.faint;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const height = this.shownHeight(), names = ["B", "KiB", "MiB", "GiB", "TiB"];
    // One unit for all marks.
    const power = Math.min(Math.floor(Math.log(Math.max(this.y0 + height, 1)) / Math.log(1024)), 4);
    const unit = Math.pow(1024, power);
    const step = Math.max(niceStep(height / unit, Math.max(this.height / 55, 2)), power ? 0 : 1);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let n = Math.ceil(this.y0 / unit / step); n * step * unit <= this.y0 + height; n++) {
      const py = Math.round(this.py(n * step * unit)) + 0.5;
      context.beginPath();
      context.moveTo(this.left, py);
      context.lineTo(this.left + this.width, py);
      context.stroke();
      context.fillText(n ? `${(n * step).toFixed(digits)} ${names[power]}` : "0", this.left - 8, py);
    }
  }

  drawFrame(context) {
    const bottom = this.top + this.height + this.lanes * LANE + (this.lanes ? 4 : 0);
    context.strokeStyle = this.faint;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(this.left, Math.round(this.top + this.height) + 0.5);
    context.lineTo(this.left + this.width, Math.round(this.top + this.height) + 0.5);
    context.stroke();
    context.fillStyle = this.faint;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    const width = this.x1 - this.x0;
    const step = Math.max(niceStep(width, Math.max(this.width / 110, 2)), this.axis === "events" ? 1 : 0);
    for (let x = Math.ceil(this.x0 / step) * step; x <= this.x1; x += step) {
      const px = Math.round(this.px(x)) + 0.5;
      context.beginPath();
      context.moveTo(px, bottom);
      context.lineTo(px, bottom + 5);
      context.stroke();
      const text = this.axis === "events" ? `#${Math.round(x)}` : this.timeLabel(x, step);
      const half = context.measureText(text).width / 2;
      context.textAlign = px + half > this.left + this.width + MARGIN.right - 2 ? "right" : "center";
      context.fillText(text, context.textAlign === "right" ? this.left + this.width + MARGIN.right - 2 : px, bottom + 8);
    }
  }

  timeLabel(ns, step) {
    // One unit for all marks, by the last of them.
    const [unit, name] = this.x1 >= 1e9 ? [1e9, "s"] : this.x1 >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
    const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
    return `${(ns / unit).toFixed(digits)} ${name}`;
  }

  drawOverview() {
    const context = this.overview.getContext("2d"), { model } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const width = this.overview.width / this.ratio, height = this.overview.height / this.ratio;
    context.clearRect(0, 0, width, height);
    const top = Math.max(model.peakBytes, 1), left = this.left, room = this.width;
    context.beginPath();
    context.moveTo(left, height);
    const at = bytes => height - bytes / top * (height - 4);
    let value = 0;
    for (let k = 0; k < model.events.length;) {
      const x = Math.floor(this.xOfEvent(k) / this.last * room);
      let most = value;
      context.lineTo(left + x, at(value));
      for (; k < model.events.length && Math.floor(this.xOfEvent(k) / this.last * room) === x; k++) {
        value = model.live[k];
        most = Math.max(most, value);
      }
      context.lineTo(left + x, at(most));
      context.lineTo(left + x + 1, at(most));
      context.lineTo(left + x + 1, at(value));
    }
    context.lineTo(left + room, at(value));
    context.lineTo(left + room, height);
    context.closePath();
    context.fillStyle = this.faint;
    context.globalAlpha = 0.5;
    context.fill();
    context.globalAlpha = 1;
    const a = left + this.x0 / this.last * room, b = left + this.x1 / this.last * room;
    context.fillStyle = this.paper;
    context.globalAlpha = 0.65;
    context.fillRect(left, 0, a - left, height);
    context.fillRect(b, 0, left + room - b, height);
    context.globalAlpha = 1;
    context.strokeStyle = this.accent;
    context.lineWidth = 2;
    context.strokeRect(a + 1, 1, Math.max(b - a - 2, 2), height - 2);
  }

  // ------------------------------------------------------------- what is where

  eventDrawnAt(px) {
    let low = 0, high = this.runs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.runs[middle][0] <= px) low = middle + 1; else high = middle;
    }
    return low ? this.runs[low - 1][1] : -1;
  }

  hit(px, py) {
    // The item under a point: {array, more}, {scope}, or null.
    if (px < this.left || px > this.left + this.width) return null;
    if (py > this.top + this.height) {
      const lane = Math.floor((py - this.laneTop(0)) / LANE), time = this.timeAt(this.xAt(px));
      const slack = this.axis === "time" ? (this.x1 - this.x0) / this.width : 0;
      const scope = this.scopes.find(s => s.lane === lane && s.begin <= time + slack && s.end >= time - slack);
      return scope ? { scope } : null;
    }
    if (py < this.top) return null;
    const { model } = this, bytes = this.bytesAt(py);
    model.goTo(this.eventDrawnAt(px));
    const least = 2 * this.shownHeight() / this.height;
    let found = null;
    model.visit(Math.max(bytes, 0), Math.max(bytes, 0) + 1e-9, least, node => {
      found = { array: model.largest[node], more: node >= model.leaves ? 0 : model.countBelow(node) - 1 };
    });
    return found;
  }

  neighbour(up) {
    // The array above or below the selected one, if that is visible; else the lowest.
    const { model } = this;
    const middle = this.eventDrawnAt(this.left + this.width / 2);
    let k = middle;
    const i = this.chosen;
    if (i >= 0 && !(model.bornAt[i] <= k && model.diedAt[i] > k)) k = model.bornAt[i];
    const alive = model.aliveAfter(k).filter(j => model.counts(j) && (!model.matches || model.matches[j]));
    if (!alive.length) return -1;
    const at = alive.indexOf(i);
    if (at < 0) return up ? alive[0] : alive[alive.length - 1];
    return alive[Math.min(Math.max(at + (up ? 1 : -1), 0), alive.length - 1)];
  }
}
