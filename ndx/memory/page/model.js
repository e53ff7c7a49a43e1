// The trace as numbers: live arrays over time, and their stack. No drawing here.

const LIVES_ON = Infinity;

function stepSearch(values, count, x) {
  // The last position whose value is at most x; -1: there is none.
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1; else high = middle;
  }
  return low - 1;
}

function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit < 4) { bytes /= 1024; unit++; }
  const digits = unit === 0 ? 0 : bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2;
  return `${bytes.toFixed(digits)} ${units[unit]}`;
}

function formatTime(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${(ns / 1e9).toPrecision(4)} s`;
  if (size >= 1e6) return `${(ns / 1e6).toPrecision(4)} ms`;
  if (size >= 1e3) return `${(ns / 1e3).toPrecision(4)} µs`;
  return `${Math.round(ns)} ns`;
}

function shortLine(line) {
  // Without the folders, if any, separated by either kind of slash.
  const [, file, rest] = /^(.*?)(:\d+ in .*)?$/s.exec(line);
  return file.replace(/^.*[\\/]/s, "") + (rest || "");
}

class Model {
  constructor(data) {
    const arrays = data.arrays;
    const n = this.n = arrays.born.length;
    this.data = data;
    this.end = Math.max(data.end, 1);
    this.born = Float64Array.from(arrays.born);
    this.died = Float64Array.from(arrays.died, t => t === null ? LIVES_ON : t);
    this.bytes = Float64Array.from(arrays.nbytes);
    this.sortEvents();
    this.groups = {};
    this.matches = null;            // Uint8Array: which arrays match the search
    this.only = false;
    // A tree over the arrays in the order of birth: live bytes below each node, and
    // the largest of these arrays.
    this.leaves = 1;
    while (this.leaves < n) this.leaves *= 2;
    this.sum = new Float64Array(2 * this.leaves);
    this.largest = new Int32Array(2 * this.leaves);
    this.at = -2;                   // the event whose state the tree has
    this.restack();
    this.reserved = this.addBackends(data.memory.reserved);
  }

  sortEvents() {
    // By time; at equal times births come first: an escaping array is in both places.
    const order = [];
    for (let i = 0; i < this.n; i++) {
      order.push(i);
      if (this.died[i] !== LIVES_ON) order.push(~i);
    }
    const time = e => e >= 0 ? this.born[e] : this.died[~e];
    order.sort((a, b) => time(a) - time(b) || (a < 0) - (b < 0) || a - b);
    this.events = Int32Array.from(order);
    this.times = Float64Array.from(order, time);
    this.bornAt = new Int32Array(this.n);
    this.diedAt = new Int32Array(this.n).fill(order.length);
    order.forEach((e, k) => { if (e >= 0) this.bornAt[e] = k; else this.diedAt[~e] = k; });
  }

  counts(i) { return !this.only || !this.matches || this.matches[i] === 1; }

  restack() {
    // The live bytes after each event, of the counted arrays.
    const live = this.live = new Float64Array(this.events.length);
    let total = 0, peak = 0;
    this.peak = -1;
    for (let k = 0; k < live.length; k++) {
      const e = this.events[k], i = e >= 0 ? e : ~e;
      if (this.counts(i)) total += e >= 0 ? this.bytes[i] : -this.bytes[i];
      live[k] = total;
      if (total > peak) { peak = total; this.peak = k; }
    }
    this.peakBytes = peak;
    this.at = -2;
    if (!this.liveOfAll) this.liveOfAll = live;
  }

  addBackends(column) {
    // The sum over the backends, as a curve of steps.
    const { time, backend } = this.data.memory;
    const last = new Map(), times = [], values = [];
    let total = 0;
    for (let s = 0; s < time.length; s++) {
      total += column[s] - (last.get(backend[s]) || 0);
      last.set(backend[s], column[s]);
      times.push(time[s]);
      values.push(total);
    }
    return { times: Float64Array.from(times), values: Float64Array.from(values) };
  }

  // ------------------------------------------------------------------ the stack

  setLeaf(i, bytes) {
    let node = this.leaves + i;
    this.sum[node] = bytes;
    this.largest[node] = bytes ? i : -1;
    for (node >>= 1; node >= 1; node >>= 1) this.join(node);
  }

  join(node) {
    const a = this.largest[2 * node], b = this.largest[2 * node + 1];
    this.sum[node] = this.sum[2 * node] + this.sum[2 * node + 1];
    this.largest[node] = b < 0 || (a >= 0 && this.bytes[a] >= this.bytes[b]) ? a : b;
  }

  goTo(k) {
    // Bring the tree to the state after event k: forwards step by step, else anew.
    if (k >= this.at && this.at >= -1 && k - this.at < this.n / 8 + 64) {
      while (this.at < k) {
        const e = this.events[++this.at], i = e >= 0 ? e : ~e;
        if (this.counts(i)) this.setLeaf(i, e >= 0 ? this.bytes[i] : 0);
      }
      return;
    }
    this.at = k;
    this.sum.fill(0);
    this.largest.fill(-1);
    for (let i = 0; i < this.n; i++) {
      if (this.bornAt[i] <= k && this.diedAt[i] > k && this.counts(i)) {
        this.sum[this.leaves + i] = this.bytes[i];
        this.largest[this.leaves + i] = i;
      }
    }
    for (let node = this.leaves - 1; node >= 1; node--) this.join(node);
  }

  visit(low, high, least, emit) {
    // Call emit(node, offset, bytes) for the bands between two heights, from below;
    // bands smaller than `least` bytes are merged with their neighbours.
    const { sum, leaves } = this;
    const walk = (node, offset) => {
      const bytes = sum[node];
      if (bytes <= 0 || offset + bytes <= low || offset >= high) return;
      if (node >= leaves || bytes < least) { emit(node, offset, bytes); return; }
      walk(2 * node, offset);
      walk(2 * node + 1, offset + sum[2 * node]);
    };
    walk(1, 0);
  }

  offsetOf(i) {
    // The bytes that are now stacked below an array.
    let offset = 0;
    for (let node = this.leaves + i; node > 1; node >>= 1)
      if (node & 1) offset += this.sum[node - 1];
    return offset;
  }

  countBelow(node) {
    // The number of arrays that are now alive below a node.
    let low = node, high = node;
    while (low < this.leaves) { low *= 2; high = 2 * high + 1; }
    let count = 0;
    for (let leaf = low; leaf <= high; leaf++) count += this.sum[leaf] > 0;
    return count;
  }

  aliveAfter(k) {
    const found = [];
    for (let i = 0; i < this.n; i++)
      if (this.bornAt[i] <= k && this.diedAt[i] > k) found.push(i);
    return found;
  }

  aliveBetween(a, b) {
    const found = [];
    for (let i = 0; i < this.n; i++)
      if (this.born[i] <= b && this.died[i] >= a) found.push(i);
    return found;
  }

  // --------------------------------------------------------- properties of arrays

  stackOf(i) {
    const stack = this.data.arrays.stack[i];
    return stack === null ? [] : this.data.stacks[stack].map(l => this.data.lines[l]);
  }

  value(i, what) {
    const { arrays, workspaces, backends, threads, dtypes } = this.data;
    if (what === "maker") return this.stackOf(i)[0] || "an unknown line";
    if (what === "workspace") {
      const w = arrays.workspace[i];
      return w === null ? "no workspace" : workspaces[w].name;
    }
    if (what === "dtype") return arrays.dtype[i] === null ? "NumPy's data" : dtypes[arrays.dtype[i]];
    if (what === "backend") return arrays.backend[i] === null ? "?" : backends[arrays.backend[i]].name;
    if (what === "thread") return arrays.thread[i] === null ? "?" : threads[arrays.thread[i]];
    return arrays.freed[i] || "alive at the end";
  }

  shapeOf(i) {
    const shape = this.data.arrays.shape[i];
    if (shape === null) return "";
    const sizes = this.data.shapes[shape];
    return `(${sizes.join(", ")}${sizes.length === 1 ? "," : ""})`;
  }

  title(i) { return `${this.value(i, "dtype")} ${this.shapeOf(i)}`.trim(); }

  describe(i) {
    // The properties of an array, as [name, text] pairs.
    const { arrays, workspaces } = this.data;
    const rows = [
      ["size", `${formatBytes(this.bytes[i])} (${this.bytes[i]} bytes)`],
      ["made at", this.value(i, "maker")],
    ];
    const w = arrays.workspace[i];
    if (w !== null) {
      const slot = workspaces[w].slot === null ? "" : `, slot ${workspaces[w].slot}`;
      rows.push(["workspace", `${workspaces[w].name}, generation ${arrays.generation[i]}${slot}`]);
    }
    const places = {
      backend: "memory of its own", arena: "in the arena", spilled: "spilled out of the arena",
      numpy: "data of a NumPy array", "left behind": "in the arena that it left",
    };
    rows.push(["lies", `${places[arrays.place[i]]}, backend ${this.value(i, "backend")}, at 0x${arrays.address[i].toString(16)}`]);
    const s = arrays.segment ? arrays.segment[i] : null;
    if (s !== null) {
      const { address, size, type } = this.data.segments[s];
      rows.push(["segment", `0x${address.toString(16)}, for ${type} requests, ${formatBytes(size)} of addresses`]);
    }
    rows.push(["born", `${formatTime(this.born[i])}, in thread ${this.value(i, "thread")}`]);
    if (arrays.stale[i] !== null)
      rows.push(["went stale", `${formatTime(arrays.stale[i])}; its bytes were still read`]);
    rows.push(["freed", this.died[i] === LIVES_ON ? "alive at the end"
      : `${arrays.freed[i]} at ${formatTime(this.died[i])}, after ${formatTime(this.died[i] - this.born[i])}`]);
    if (arrays.before[i] !== null) rows.push(["escaped from", `array ${arrays.before[i]}`]);
    return rows;
  }

  groupBy(what) {
    // The group of each array; groups are ordered by their bytes at the peak.
    if (this.groups[what]) return this.groups[what];
    const numbers = new Map(), of = new Int32Array(this.n), names = [], peak = [], all = [], count = [];
    for (let i = 0; i < this.n; i++) {
      const name = this.value(i, what);
      let g = numbers.get(name);
      if (g === undefined) {
        numbers.set(name, g = names.length);
        names.push(name); peak.push(0); all.push(0); count.push(0);
      }
      of[i] = g;
      all[g] += this.bytes[i];
      count[g]++;
      if (this.bornAt[i] <= this.peak && this.diedAt[i] > this.peak) peak[g] += this.bytes[i];
    }
    const order = names.map((_, g) => g).sort((a, b) => peak[b] - peak[a] || all[b] - all[a]);
    const rank = new Int32Array(names.length);
    order.forEach((g, position) => { rank[g] = position; });
    return this.groups[what] = {
      of: of.map(g => rank[g]), names: order.map(g => names[g]),
      peak: order.map(g => peak[g]), count: order.map(g => count[g]),
    };
  }

  search(text) {
    // An array matches if all words occur in its properties.
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) { this.matches = null; return this.n; }
    const texts = new Map();
    const matches = this.matches = new Uint8Array(this.n);
    let found = 0;
    const { arrays } = this.data;
    for (let i = 0; i < this.n; i++) {
      // Most arrays share these properties with others.
      const key = `${arrays.stack[i]}|${arrays.workspace[i]}|${arrays.dtype[i]}|${arrays.shape[i]}|${arrays.backend[i]}|${arrays.place[i]}|${arrays.freed[i]}`;
      let hit = texts.get(key);
      if (hit === undefined) {
        const known = [...this.stackOf(i), this.value(i, "workspace"), this.title(i),
          this.value(i, "backend"), arrays.place[i], this.value(i, "freed")].join("\n").toLowerCase();
        texts.set(key, hit = words.every(word => known.includes(word)) ? 1 : 0);
      }
      matches[i] = hit;
      found += hit;
    }
    return found;
  }
}
