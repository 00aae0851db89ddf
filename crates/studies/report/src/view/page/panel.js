// One run's network on three canvases: links below, then nodes and names, which stay as they are while time goes on, then
// what is pointed at and packets.

const INK = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

class Panel {
  constructor(app, run, place) {
    this.app = app;
    this.run = run;
    this.element = document.createElement("div");
    this.element.className = "panel";
    this.element.innerHTML = `<div class="panel-name"><i class="dot dot${run.number}"></i><b></b><span></span></div>
      <canvas class="base" aria-hidden="true"></canvas><canvas class="fixed" aria-hidden="true"></canvas><canvas class="over" tabindex="0" role="img"></canvas>`;
    this.element.querySelector("b").textContent = run.facts.scheme;
    this.element.querySelector("span").textContent = `seed ${run.facts.seed}`;
    place.append(this.element);
    [this.base, this.fixed, this.over] = this.element.querySelectorAll("canvas");
    this.brush = this.base.getContext("2d", { alpha: false });
    this.nib = this.fixed.getContext("2d");
    this.pen = this.over.getContext("2d");
    this.levels = new Uint8Array(run.links);
    this.order = new Uint32Array(run.links);
    this.measureWorld();
    this.over.addEventListener("pointermove", (event) => this.point(event));
    this.over.addEventListener("pointerleave", () => app.hover(null));
    this.over.addEventListener("click", (event) => this.press(event));
  }

  measureWorld() {
    const { x, y, heights, from, to, links } = this.run;
    this.extent = [d3.extent(x), d3.extent(y)];
    // The curve of a link between groups bends towards the middle of the circle.
    this.curved = this.run.facts.grouped ? this.run.facts.classes.indexOf("global") : -1;
    // Closest neighbours per height, for what fits beside what.
    this.space = new Map();
    for (const height of new Set(heights)) {
      const of = d3.range(x.length).filter((node) => heights[node] === height);
      const tree = d3.quadtree(of, (node) => x[node], (node) => y[node]);
      let least = Infinity;
      for (const node of of.slice(0, 64)) {
        tree.remove(node);
        const other = tree.find(x[node], y[node]);
        if (other !== undefined) least = Math.min(least, Math.hypot(x[other] - x[node], y[other] - y[node]));
        tree.add(node);
      }
      this.space.set(height, least === Infinity ? 200 : least);
    }
    let length = 0;
    for (let link = 0; link < links; link++) length += Math.hypot(x[to[link]] - x[from[link]], y[to[link]] - y[from[link]]);
    this.wireLength = length;
  }

  resize() {
    const box = this.element.getBoundingClientRect();
    this.ratio = document.documentElement.classList.contains("printing") ? 2 : Math.min(2, window.devicePixelRatio || 1);
    [this.width, this.height] = [Math.max(60, box.width), Math.max(60, box.height)];
    for (const canvas of [this.base, this.fixed, this.over]) {
      canvas.width = Math.round(this.width * this.ratio);
      canvas.height = Math.round(this.height * this.ratio);
    }
    const [[x0, x1], [y0, y1]] = this.extent;
    const grouped = this.run.facts.grouped;
    const margin = grouped ? { left: 62, right: 62, top: 40, bottom: 34 } : { left: 92, right: 30, top: 50, bottom: 26 };
    const wide = this.width - margin.left - margin.right, high = this.height - margin.top - margin.bottom;
    let k = wide / Math.max(1, x1 - x0), ky = high / Math.max(1, y1 - y0);
    // Tiers may be stretched, circles may not.
    const most = grouped ? 1 : 2.2;
    [k, ky] = [Math.min(k, most * ky), Math.min(ky, most * k)];
    this.fit = { k, ky, x: margin.left + (wide - k * (x1 - x0)) / 2 - k * x0, y: margin.top + (high - ky * (y1 - y0)) / 2 - ky * y0 };
  }

  /** Shows a picture of the canvases instead of them, or no longer. */
  still(on) {
    this.element.querySelector(".still")?.remove();
    if (!on) return;
    const copy = document.createElement("canvas"), brush = copy.getContext("2d");
    [copy.width, copy.height] = [this.base.width, this.base.height];
    for (const canvas of [this.base, this.fixed, this.over]) brush.drawImage(canvas, 0, 0);
    const picture = new Image();
    picture.className = "still";
    picture.alt = this.over.getAttribute("aria-label");
    picture.src = copy.toDataURL();
    this.element.append(picture);
  }

  /** From the world to the canvas. */
  frame() {
    const t = this.app.transform, f = this.fit;
    return { k: t.k * f.k, ky: t.k * f.ky, x: t.k * f.x + t.x, y: t.k * f.y + t.y };
  }

  /** Brings every node to its place on the canvas. */
  project() {
    const { x, y } = this.run, f = this.frame();
    const number = x.length;
    this.px ??= new Float32Array(number);
    this.py ??= new Float32Array(number);
    for (let node = 0; node < number; node++) {
      this.px[node] = f.k * x[node] + f.x;
      this.py[node] = f.ky * y[node] + f.y;
    }
    this.scale = Math.min(f.k, f.ky);
    this.middle = [f.x, f.y];
    // Thin where there are many: ink in proportion to the room.
    const room = (this.width * this.height) / Math.max(1, this.wireLength * f.k);
    this.wire = Math.max(0.55, Math.min(3.4, 0.22 * room * this.app.transform.k));
  }

  lane() { return this.wire * 0.62 + 0.15; }

  /** Adds a link to a path, each direction on its own lane. */
  trace(path, link, lane = this.lane()) {
    const a = this.run.from[link], b = this.run.to[link];
    let x0 = this.px[a], y0 = this.py[a], x1 = this.px[b], y1 = this.py[b];
    const dx = x1 - x0, dy = y1 - y0, length = Math.hypot(dx, dy) || 1;
    const ox = (-dy / length) * lane, oy = (dx / length) * lane;
    x0 += ox; y0 += oy; x1 += ox; y1 += oy;
    path.moveTo(x0, y0);
    if (this.run.linkClass[link] === this.curved) {
      const [cx, cy] = this.bend(x0, y0, x1, y1);
      path.quadraticCurveTo(cx, cy, x1, y1);
    } else path.lineTo(x1, y1);
  }

  bend(x0, y0, x1, y1) {
    return [0.5 * (x0 + x1) * 0.45 + this.middle[0] * 0.55, 0.5 * (y0 + y1) * 0.45 + this.middle[1] * 0.55];
  }

  /** A place on a link, from 0 to 1. */
  along(link, share, lane = this.lane()) {
    const a = this.run.from[link], b = this.run.to[link];
    let x0 = this.px[a], y0 = this.py[a], x1 = this.px[b], y1 = this.py[b];
    const length = Math.hypot(x1 - x0, y1 - y0) || 1;
    const ox = (-(y1 - y0) / length) * lane, oy = ((x1 - x0) / length) * lane;
    x0 += ox; y0 += oy; x1 += ox; y1 += oy;
    if (this.run.linkClass[link] !== this.curved) return [x0 + (x1 - x0) * share, y0 + (y1 - y0) * share];
    const [cx, cy] = this.bend(x0, y0, x1, y1), rest = 1 - share;
    return [rest * rest * x0 + 2 * rest * share * cx + share * share * x1, rest * rest * y0 + 2 * rest * share * cy + share * share * y1];
  }

  outside(link) {
    const a = this.run.from[link], b = this.run.to[link];
    const { px, py } = this;
    if (this.run.linkClass[link] === this.curved) return false;
    return Math.max(px[a], px[b]) < -4 || Math.min(px[a], px[b]) > this.width + 4 || Math.max(py[a], py[b]) < -4 || Math.min(py[a], py[b]) > this.height + 4;
  }

  shown(link) {
    const { direction, hidden } = this.app.filter;
    const name = this.run.facts.classes[this.run.linkClass[link]];
    return !hidden.has(name) && (direction === "both" || this.run.directions[link] === direction || this.run.directions[link] === "flat");
  }

  /** Draws the links; where the view moved, `anew`, nodes and names too. */
  draw(anew = true) {
    const { run, brush, app } = this;
    const { measure, time } = app;
    const sample = run.series ? run.sampleAt(time) : 0;
    if (anew) this.project();
    brush.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    brush.fillStyle = app.inks.paper;
    brush.fillRect(0, 0, this.width, this.height);
    brush.lineCap = "butt";
    // Sorted by level, so that the busy ones lie on top and each colour is set once.
    const counts = new Uint32Array(LEVELS + 2);
    const failed = [], silent = LEVELS;
    const { levels, order } = this;
    const skip = 255;
    for (let link = 0; link < run.links; link++) {
      if (!this.visible[link] || this.outside(link)) { levels[link] = skip; continue; }
      if (run.faultsOf.size && run.faultsOf.has(link)) {
        const state = run.faultAt(link, time);
        if (state) failed.push([link, state]);
        if (state === "down") { levels[link] = skip; continue; }
      }
      const value = measure.value(run, link, sample);
      const level = Number.isNaN(value) ? silent : levelOf(measure, value);
      levels[link] = level;
      counts[level + 1]++;
    }
    for (let level = 0; level <= LEVELS; level++) counts[level + 1] += counts[level];
    const starts = counts.slice();
    for (let link = 0; link < run.links; link++) if (levels[link] !== skip) order[counts[levels[link]]++] = link;
    const lane = this.lane();
    const stroke = (level, colour, width) => {
      if (starts[level] === starts[level + 1]) return;
      brush.beginPath();
      for (let at = starts[level]; at < starts[level + 1]; at++) this.trace(brush, order[at], lane);
      brush.strokeStyle = colour;
      brush.lineWidth = width;
      brush.stroke();
    };
    stroke(silent, app.inks.silent, this.wire * 0.7);
    for (let level = 0; level < LEVELS; level++) stroke(level, app.colours[level], this.wire * (0.8 + (0.9 * level) / LEVELS));
    this.drawFaults(failed);
    if (anew) {
      this.nib.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      this.nib.clearRect(0, 0, this.width, this.height);
      this.drawNodes();
      this.drawLabels();
    }
    this.describe(sample);
  }

  drawFaults(failed) {
    const { brush, app } = this;
    brush.strokeStyle = app.inks.fault;
    for (const [link, state] of failed) {
      const down = state === "down";
      brush.setLineDash(down ? [4, 4] : [1, 3]);
      brush.lineWidth = Math.max(1.2, this.wire * 0.9);
      brush.beginPath();
      this.trace(brush, link);
      brush.stroke();
      brush.setLineDash([]);
      const [x, y] = this.along(link, 0.5), r = Math.max(3, Math.min(6, 3 * this.wire));
      brush.lineWidth = 1.8;
      brush.beginPath();
      if (down) { brush.moveTo(x - r, y - r); brush.lineTo(x + r, y + r); brush.moveTo(x + r, y - r); brush.lineTo(x - r, y + r); }
      else { brush.moveTo(x, y - r); brush.lineTo(x + r, y + r); brush.lineTo(x - r, y + r); brush.closePath(); }
      brush.stroke();
    }
  }

  radius(height) {
    const room = this.space.get(height) * this.scale;
    return height === 0 ? Math.max(0.6, Math.min(5, 0.32 * room)) : Math.max(1.6, Math.min(8, 0.34 * room));
  }

  drawNodes() {
    const { run, nib, app, px, py } = this;
    for (const height of this.space.keys()) {
      const r = this.radius(height);
      nib.beginPath();
      for (let node = 0; node < px.length; node++) {
        if (run.heights[node] !== height) continue;
        const x = px[node], y = py[node];
        if (x < -r || y < -r || x > this.width + r || y > this.height + r) continue;
        if (r < 1.3) nib.rect(x - r, y - r, 2 * r, 2 * r);
        else if (height === 0) { nib.moveTo(x + r, y); nib.arc(x, y, r, 0, 2 * Math.PI); }
        else nib.roundRect(x - r, y - r, 2 * r, 2 * r, r * 0.35);
      }
      nib.fillStyle = height === 0 ? app.inks.host : app.inks.node;
      nib.fill();
      if (r > 2.4) { nib.lineWidth = 1.2; nib.strokeStyle = app.inks.paper; nib.stroke(); }
    }
  }

  drawLabels() {
    const { run, nib, app, px, py } = this;
    nib.font = "11px Inter, system-ui, sans-serif";
    nib.textAlign = "center";
    nib.lineJoin = "round";
    const write = (text, x, y, colour = app.inks.muted) => {
      nib.lineWidth = 3;
      nib.strokeStyle = app.inks.paper;
      nib.strokeText(text, x, y);
      nib.fillStyle = colour;
      nib.fillText(text, x, y);
    };
    for (const [height, space] of this.space) {
      const room = space * this.scale;
      let some = -1;
      for (let node = 0; node < px.length && some < 0; node++) if (run.heights[node] === height) some = node;
      if (room < nib.measureText(run.names[some]).width * 1.25 + 6) continue;
      const r = this.radius(height);
      for (let node = 0; node < px.length; node++) {
        if (run.heights[node] !== height) continue;
        const x = px[node], y = py[node];
        if (x < -20 || y < -20 || x > this.width + 20 || y > this.height + 20) continue;
        write(run.names[node], x, height === 0 ? y + r + 12 : y - r - 5, height === 0 ? app.inks.muted : app.inks.ink);
      }
    }
    if (run.facts.grouped) this.labelGroups(write);
    else this.labelTiers(write);
  }

  labelTiers(write) {
    const { run, nib, py } = this;
    const rows = new Map();
    for (let node = 0; node < py.length; node++) {
      const height = run.heights[node];
      const row = rows.get(height) || { low: Infinity, high: -Infinity, name: run.names[node].replace(/^p\d+\.|\d+$/g, ""), count: 0 };
      row.low = Math.min(row.low, py[node]); row.high = Math.max(row.high, py[node]); row.count++;
      rows.set(height, row);
    }
    nib.textAlign = "left";
    for (const row of rows.values()) {
      const y = Math.max(row.low, Math.min(row.high, this.height / 2), (row.low + row.high) / 2);
      if (y > 30 && y < this.height - 4) write(`${row.count.toLocaleString("en")} ${row.count === 1 ? row.name : row.name === "leaf" ? "leaves" : `${row.name}s`}`, 12, y + 4);
    }
  }

  labelGroups(write) {
    const { run, px, py } = this;
    const groups = new Map();
    for (let node = 0; node < px.length; node++) {
      if (!run.groups[node]) continue;
      const of = groups.get(run.groups[node]) || { x: 0, y: 0, nodes: [] };
      of.x += px[node]; of.y += py[node]; of.nodes.push(node);
      groups.set(run.groups[node], of);
    }
    if (groups.size < 2) return;
    for (const [group, { x, y, nodes }] of groups) {
      const cx = x / nodes.length, cy = y / nodes.length;
      const size = d3.max(nodes, (node) => Math.hypot(px[node] - cx, py[node] - cy));
      const dx = cx - this.middle[0], dy = cy - this.middle[1], away = Math.hypot(dx, dy) || 1;
      const text = size > 44 ? `group ${group - 1}` : String(group - 1);
      const off = size + (size > 44 ? 26 : 10);
      if (size > 8) write(text, cx + (dx / away) * off, cy + (dy / away) * off + 4, this.app.inks.ink);
    }
  }

  describe(sample) {
    const { run, app } = this;
    const when = app.measure.over ? ` at ${timeText(app.time)}` : ", whole run";
    this.over.setAttribute("aria-label", `${run.name}: ${run.facts.hosts} hosts, ${run.facts.switches} switches, ${run.links} links coloured by ${app.measure.label.toLowerCase()}${when}`);
  }

  /** Decides once which links the filters show. */
  sift() {
    this.visible = new Uint8Array(this.run.links);
    for (let link = 0; link < this.run.links; link++) this.visible[link] = this.shown(link) ? 1 : 0;
  }

  /** What is pointed at or chosen, and packets on their way. */
  drawOver() {
    const { pen, app } = this;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    app.jobs?.draw(this);
    if (app.chosen) this.markServer(app.chosen);
    if (app.chosen) this.mark(app.chosen, app.inks.accent, true);
    if (app.hovered && app.hovered !== app.chosen) this.mark(app.hovered, app.inks.ink, false);
    app.packets?.draw(this);
  }

  mark(name, colour, strong) {
    const { pen, run } = this;
    const link = run.linkOf.get(name), node = run.nodeOf.get(name);
    if (link !== undefined) {
      for (const [ink, width] of [[this.app.inks.paper, this.wire * 2 + 5], [colour, this.wire * 1.6 + (strong ? 2 : 1)]]) {
        pen.beginPath();
        this.trace(pen, link);
        pen.strokeStyle = ink;
        pen.lineWidth = width;
        pen.stroke();
      }
      this.arrow(link, colour);
    } else if (node !== undefined) {
      pen.globalAlpha = 0.85;
      pen.lineWidth = Math.max(0.8, this.wire * 0.7);
      pen.strokeStyle = colour;
      pen.beginPath();
      for (const link of run.out[node].concat(run.in[node])) if (this.visible[link]) this.trace(pen, link);
      pen.stroke();
      pen.globalAlpha = 1;
      pen.beginPath();
      pen.arc(this.px[node], this.py[node], this.radius(run.heights[node]) + 4, 0, 2 * Math.PI);
      pen.lineWidth = strong ? 2.4 : 1.6;
      pen.stroke();
    }
  }

  /** Rings the other NICs of the server of a host. */
  markServer(name) {
    const { pen, run } = this, node = run.nodeOf.get(name);
    for (const other of run.serverNodes(node)) if (other !== node) this.ring(other, this.app.inks.accent, 1.6, 4);
    pen.globalAlpha = 1;
  }

  ring(node, colour, width, away) {
    const { pen, run } = this;
    pen.beginPath();
    pen.arc(this.px[node], this.py[node], this.radius(run.heights[node]) + away, 0, 2 * Math.PI);
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }

  arrow(link, colour) {
    const { pen } = this;
    const [x0, y0] = this.along(link, 0.56), [x1, y1] = this.along(link, 0.6);
    const angle = Math.atan2(y1 - y0, x1 - x0), r = 7 + this.wire;
    pen.beginPath();
    pen.moveTo(x1 + r * Math.cos(angle), y1 + r * Math.sin(angle));
    pen.lineTo(x1 + r * Math.cos(angle + 2.4), y1 + r * Math.sin(angle + 2.4));
    pen.lineTo(x1 + r * Math.cos(angle - 2.4), y1 + r * Math.sin(angle - 2.4));
    pen.closePath();
    pen.fillStyle = colour;
    pen.fill();
  }

  /** Name of the node or link at a place of the canvas; null where there is none. */
  at(x, y) {
    const { run, px, py } = this;
    let found = null, least = Infinity;
    for (let node = 0; node < px.length; node++) {
      const away = Math.hypot(px[node] - x, py[node] - y) - this.radius(run.heights[node]);
      if (away < 3 && away < least) [found, least] = [run.names[node], away];
    }
    if (found) return found;
    least = 6;
    for (let link = 0; link < run.links; link++) {
      if (!this.visible[link]) continue;
      const away = this.away(link, x, y, least);
      // Of links on top of each other the busier one is seen, and meant.
      if (away < least - 0.01) [found, least] = [link, away];
    }
    return found === null ? null : run.linkNames[found];
  }

  away(link, x, y, least) {
    const { px, py, run } = this;
    const a = run.from[link], b = run.to[link];
    if (run.linkClass[link] !== this.curved) {
      if (Math.min(px[a], px[b]) > x + least || Math.max(px[a], px[b]) < x - least || Math.min(py[a], py[b]) > y + least || Math.max(py[a], py[b]) < y - least) return Infinity;
      const [x0, y0] = this.along(link, 0), [x1, y1] = this.along(link, 1);
      return segmentAway(x, y, x0, y0, x1, y1);
    }
    let nearest = Infinity, [x0, y0] = this.along(link, 0);
    for (let step = 1; step <= 12; step++) {
      const [x1, y1] = this.along(link, step / 12);
      nearest = Math.min(nearest, segmentAway(x, y, x0, y0, x1, y1));
      [x0, y0] = [x1, y1];
    }
    return nearest;
  }

  point(event) {
    if (event.buttons) return;
    const box = this.over.getBoundingClientRect();
    const name = this.at(event.clientX - box.left, event.clientY - box.top);
    this.over.style.cursor = name ? "pointer" : "";
    this.app.hover(name, this, event);
  }

  press(event) {
    const box = this.over.getBoundingClientRect();
    this.app.choose(this.at(event.clientX - box.left, event.clientY - box.top));
  }

  /** Width and height that a node or link takes on the canvas. */
  extentOf(name) {
    const link = this.run.linkOf.get(name);
    if (link === undefined) return [1, 1];
    const [a, b] = [this.run.from[link], this.run.to[link]];
    return [Math.abs(this.px[a] - this.px[b]), Math.abs(this.py[a] - this.py[b])];
  }

  /** Middle of a node or link on the canvas; null where this run has none of that name. */
  placeOf(name) {
    const link = this.run.linkOf.get(name), node = this.run.nodeOf.get(name);
    if (link !== undefined) return this.along(link, 0.5);
    return node === undefined ? null : [this.px[node], this.py[node]];
  }
}

function segmentAway(x, y, x0, y0, x1, y1) {
  const dx = x1 - x0, dy = y1 - y0;
  const share = Math.max(0, Math.min(1, ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - x0 - share * dx, y - y0 - share * dy);
}
