// Puts the page together and keeps its state.

const KEYS = [
  ["Space", "play or pause"], ["\u2190 \u2192", "a sample back or on (with Shift ten)"], ["Home, End", "begin, end"],
  ["+ \u2212 0", "closer, farther, whole network"], ["/", "search"], ["L", "side by side or one above the other"], ["T", "light or dark"], ["Esc", "choose nothing"],
];

class App {
  constructor(runs) {
    this.runs = runs;
    this.time = 0;
    this.end = Math.max(1, ...runs.map((run) => run.end));
    this.playing = false;
    this.speed = 1;
    this.transform = d3.zoomIdentity;
    this.filter = { direction: "both", hidden: new Set() };
    this.measures = measuresOf(runs);
    this.measure = this.measures[0];
    this.chosen = this.hovered = null;
    this.tip = document.getElementById("tip");
    const stage = document.getElementById("panels");
    this.panels = runs.map((run) => new Panel(this, run, stage));
    this.timeline = new Timeline(this, document.getElementById("timeline"));
    this.details = new Details(this, document.getElementById("side"));
    this.first = runs.find((run) => run.series);
    const [run] = runs;
    const count = (number, word) => `${number.toLocaleString("en")} ${word}`;
    for (const run of runs) document.documentElement.style.setProperty(`--s${run.number}`, `var(--c${run.facts.colour})`);
    document.getElementById("what").textContent = [...(runs.length > 1 ? [] : [run.facts.scheme, `seed ${run.facts.seed}`]), count(run.facts.hosts, "hosts"), count(run.facts.switches, "switches"), count(run.links, "directed links")].join(" \u00b7 ");
    stage.classList.toggle("alone", runs.length < 2);
    this.packets = runs.some((run) => run.facts.trace) ? new Packets(this, document.getElementById("flows")) : null;
    this.schemes = runs.some((run) => run.facts.schemes?.length) ? new Schemes(this, document.getElementById("schemes")) : null;
    this.jobs = runs.some((run) => run.facts.jobs) ? new Jobs(this, document.getElementById("jobs")) : null;
    this.setUpControls();
    this.setUpZoom();
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    this.arrange(null);
    this.seek(this.first ? this.busyTime() : 0, false);
    this.follow(location.hash);
    addEventListener("hashchange", () => this.follow(location.hash));
    new ResizeObserver(() => this.resize()).observe(stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => this.setTheme(event.matches ? "dark" : "light"));
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    requestAnimationFrame((now) => this.tick(now));
  }

  /**
   * Goes to the flow that a link names, `#flow=7` or `#scheme=prime&seed=2&flow=7`, and shows its path alone, or to a group,
   * `#group=17` or `#workload=allreduce&group=17&repetition=2`.
   */
  follow(hash) {
    const wanted = new URLSearchParams(hash.slice(1)), id = wanted.get("flow");
    if (wanted.has("group")) this.jobs?.follow(wanted);
    if (id === null) return;
    const given = (key, value) => !wanted.has(key) || wanted.get(key) === String(value);
    const run = this.runs.find((run) => given("scheme", run.facts.scheme) && given("seed", run.facts.seed) && run.facts.trace?.flows.some((flow) => String(flow.flow_id) === id));
    if (run) return this.packets.follow(run.number, Number(id));
    const of = [wanted.get("scheme"), wanted.has("seed") ? `seed ${wanted.get("seed")}` : null].filter(Boolean).join(", ");
    const missing = document.getElementById("missing");
    missing.textContent = `Flow ${id}${of ? ` of ${of}` : ""} is not traced in this view.`;
    missing.hidden = false;
  }

  /** Where the page opens: the sample at which all runs together are busiest while none has ended. */
  busyTime() {
    const measure = this.chartMeasure();
    if (!measure) return 0;
    const { start_ps, interval_ps, samples } = this.first.series;
    const end = Math.min(...this.runs.map((run) => run.facts.simulated_ps));
    const all = this.runs.filter((run) => run.series).map((run) => [run, overTime(run, measure).sums]);
    const times = d3.range(samples).map((sample) => start_ps + sample * interval_ps).filter((time) => time <= end);
    const busy = times.map((time) => d3.sum(all, ([run, sums]) => sums[run.sampleAt(time)]));
    return times[Math.max(0, d3.maxIndex(busy))] ?? 0;
  }

  chartMeasure() {
    if (!this.first) return null;
    return this.measure.over ? this.measure : this.measures.find((measure) => measure.over) || null;
  }

  setUpControls() {
    const $ = (id) => document.getElementById(id);
    const options = (over) => this.measures.filter((measure) => measure.over === over).map((measure) => `<option value="${measure.id}">${escapeText(measure.label)}</option>`).join("");
    const group = (label, inner) => (inner ? `<optgroup label="${label}">${inner}</optgroup>` : "");
    $("measure").innerHTML = group("over time", options(true)) + group("whole run", options(false));
    $("measure").addEventListener("change", (event) => this.setMeasure(event.target.value));
    const classes = [...new Set(this.runs.flatMap((run) => run.facts.classes))];
    $("classes").innerHTML = classes.map((name) => `<label><input type="checkbox" checked value="${escapeText(name)}"><span>${escapeText(name === "host" ? "hosts" : name.replace(/^tier(\d+)-(\d+)$/, "tier $1\u2013$2"))}</span></label>`).join("");
    $("classes").addEventListener("change", (event) => {
      if (event.target.checked) this.filter.hidden.delete(event.target.value);
      else this.filter.hidden.add(event.target.value);
      this.sift();
    });
    const flat = this.runs.every((run) => run.directions.every((direction, link) => direction === "flat" || run.facts.classes[run.linkClass[link]] === "host"));
    $("direction").parentElement.hidden = flat;
    $("direction").addEventListener("change", (event) => { this.filter.direction = event.target.value; this.sift(); });
    $("play").addEventListener("click", () => this.play(!this.playing));
    $("back").addEventListener("click", () => this.step(-1));
    $("on").addEventListener("click", () => this.step(1));
    $("speed").addEventListener("change", (event) => { this.speed = Number(event.target.value); });
    $("theme").addEventListener("click", () => this.setTheme(this.theme === "dark" ? "light" : "dark"));
    $("arrange").hidden = this.runs.length < 2;
    $("arrange").addEventListener("click", () => this.arrange(!this.stacked));
    $("fit").addEventListener("click", () => this.zoomTo(d3.zoomIdentity));
    $("closer").addEventListener("click", () => this.zoomBy(1.6));
    $("farther").addEventListener("click", () => this.zoomBy(1 / 1.6));
    $("keys").innerHTML = KEYS.map(([key, words]) => `<dt>${key}</dt><dd>${words}</dd>`).join("");
    $("help").addEventListener("click", () => $("about").showModal());
    $("none").hidden = Boolean(this.first);
    $("every").textContent = JSON.stringify(this.runs[0].facts.classes);
    $("untraced").hidden = Boolean(this.packets);
    for (const place of document.querySelectorAll(".record")) place.textContent = this.recordCommand();
    this.setUpSearch($("search"), $("found"));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** The command that writes this page with series and a trace. */
  recordCommand() {
    const facts = this.runs.map((run) => run.facts), seeds = new Set(facts.map((run) => run.seed));
    const seed = seeds.size === 1 ? ` --seed ${facts[0].seed}` : "";
    return `anabranch view DIR --schemes ${facts.map((run) => run.scheme).join(",")}${seed} --record`;
  }

  setUpSearch(input, list) {
    const names = [...new Set(this.runs.flatMap((run) => [...run.names, ...run.linkNames]))];
    const plain = (text) => text.toLowerCase().replaceAll("->", "\u2192").replace(/\s/g, "");
    let found = [], at = 0;
    const show = () => {
      list.hidden = !found.length;
      input.setAttribute("aria-expanded", String(Boolean(found.length)));
      list.innerHTML = found.map((name, i) => `<li role="option" id="found${i}" aria-selected="${i === at}" data-name="${escapeText(name)}">${escapeText(name)}</li>`).join("");
      input.setAttribute("aria-activedescendant", found.length ? `found${at}` : "");
    };
    const close = () => { found = []; show(); };
    const take = (name) => {
      if (!name) return;
      input.value = "";
      close();
      input.blur();
      this.choose(name);
      this.bringIn(name);
    };
    input.addEventListener("input", () => {
      const text = plain(input.value);
      const rank = (name) => { const p = plain(name); return p === text ? 0 : p.startsWith(text) ? 1 : p.includes(text) ? 2 : 3; };
      found = text ? names.map((name) => [rank(name), name.length, name]).filter(([rank]) => rank < 3).sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, 8).map(([, , name]) => name) : [];
      at = 0;
      show();
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        at = (at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % Math.max(1, found.length);
        show();
        event.preventDefault();
      } else if (event.key === "Enter") take(found[at]);
      else if (event.key === "Escape") { input.value = ""; close(); input.blur(); }
      event.stopPropagation();
    });
    input.addEventListener("blur", () => setTimeout(close, 150));
    list.addEventListener("pointerdown", (event) => take(event.target.dataset.name));
  }

  setUpZoom() {
    this.zoom = d3.zoom().scaleExtent([0.6, 120]).on("zoom", (event) => {
      this.transform = event.transform;
      // Both panels look at the same place.
      for (const panel of this.panels) panel.over.__zoom = event.transform;
      this.stale = true;
    });
    for (const panel of this.panels) {
      const over = d3.select(panel.over);
      over.call(this.zoom).on("dblclick.zoom", null);
      over.on("dblclick", () => this.zoomTo(d3.zoomIdentity));
    }
  }

  zoomTo(transform) { d3.select(this.panels[0].over).transition().duration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 350).call(this.zoom.transform, transform); }
  zoomBy(factor) { d3.select(this.panels[0].over).transition().duration(180).call(this.zoom.scaleBy, factor); }

  /** Moves and zooms so that a node or link can be seen well. */
  bringIn(name) {
    const panel = this.panels.find((panel) => panel.placeOf(name));
    if (!panel) return;
    panel.project();
    const [x, y] = panel.placeOf(name);
    const t = this.transform, [wide, high] = panel.extentOf(name);
    // A link is seen from end to end, a node with some room around it.
    const most = Math.min((0.8 * panel.width) / Math.max(1, wide), (0.8 * panel.height) / Math.max(1, high)) * t.k;
    const k = Math.max(1, Math.min(most, Math.max(t.k, 60 / Math.max(2, (panel.space.get(0) ?? 10) * panel.fit.k)), 8));
    const [wx, wy] = t.invert([x, y]);
    this.zoomTo(d3.zoomIdentity.translate(panel.width / 2 - k * wx, panel.height / 2 - k * wy).scale(k));
  }

  setTheme(theme) {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
    this.inks = { paper: INK("--canvas"), ink: INK("--ink"), muted: INK("--muted"), accent: INK("--accent"), host: INK("--host"), node: INK("--node"), silent: INK("--grid"), fault: INK("--fault"), mark: INK("--mark") };
    this.colours = coloursOf(theme);
    this.details.drawLegend();
    this.stale = true;
  }

  /** Draws for paper: light, and in pictures of a fixed size, since what is drawn on a canvas meanwhile is not printed. */
  print(on) {
    document.documentElement.classList.toggle("printing", on);
    if (on) this.screenTheme = this.theme;
    this.setTheme(on ? "light" : this.screenTheme);
    this.resize();
    for (const panel of this.panels) {
      panel.draw(true);
      panel.drawOver();
      panel.still(on);
    }
    this.details.drawBusiest();
    this.details.drawChosen();
  }

  setMeasure(id) {
    this.measure = this.measures.find((measure) => measure.id === id) || this.measure;
    document.getElementById("measure").value = this.measure.id;
    this.details.drawLegend();
    this.timeline.draw();
    this.stale = this.news = true;
  }

  /** Panels beside each other or one above the other; by themselves whichever leaves them more room. */
  arrange(stacked) {
    const stage = document.getElementById("panels");
    this.stacked = stacked ?? (this.runs.length > 1 && !this.runs[0].facts.grouped && stage.clientWidth < 2.6 * stage.clientHeight);
    stage.classList.toggle("stacked", this.stacked);
    this.resize();
  }

  resize() {
    for (const panel of this.panels) panel.resize();
    this.zoom.extent([[0, 0], [this.panels[0].width, this.panels[0].height]]);
    this.sift();
    this.timeline.draw();
  }

  sift() {
    for (const panel of this.panels) panel.sift();
    this.stale = this.news = true;
  }

  hover(name, panel, event) {
    if (name !== this.hovered) { this.hovered = name; this.moved = true; }
    if (!name || !panel) { this.tip.hidden = true; return; }
    this.tip.innerHTML = `<b>${escapeText(name)}</b>${this.hint(name)}`;
    this.tip.hidden = false;
    const { offsetWidth, offsetHeight } = this.tip;
    this.tip.style.left = `${Math.min(innerWidth - offsetWidth - 8, event.clientX + 14)}px`;
    this.tip.style.top = `${Math.max(4, Math.min(innerHeight - offsetHeight - 8, event.clientY + 16))}px`;
  }

  hint(name) {
    const shown = [this.measure, ...this.measures.filter((measure) => ["load", "queue_bytes", "total.utilisation"].includes(measure.id) && measure !== this.measure)].slice(0, 3);
    const lines = this.runs.map((run) => {
      const link = run.linkOf.get(name), node = run.nodeOf.get(name);
      const dot = this.runs.length > 1 ? `<i class="dot dot${run.number}"></i>${escapeText(run.facts.scheme)}: ` : "";
      const sample = run.series ? run.sampleAt(this.time) : 0;
      if (link !== undefined) {
        const state = run.faultAt(link, this.time);
        return dot + shown.map((measure) => `${measure.label.toLowerCase()} ${FORMATS[measure.format](measure.value(run, link, sample))}`).join(", ") + (state ? `, <b>${escapeText(state)}</b>` : "");
      }
      if (node === undefined) return "";
      const [first] = shown;
      const busiest = d3.greatest(run.out[node], (a, b) => d3.ascending(first.value(run, a, sample), first.value(run, b, sample)));
      return busiest === undefined ? "" : `${dot}busiest port ${escapeText(run.linkNames[busiest])}: ${first.label.toLowerCase()} ${FORMATS[first.format](first.value(run, busiest, sample))}`;
    });
    return lines.filter(Boolean).map((line) => `<span>${line}</span>`).join("");
  }

  choose(name, fromSide) {
    this.chosen = this.runs.some((run) => run.linkOf.has(name) || run.nodeOf.has(name)) ? name : null;
    this.details.drawChosen();
    // A list from which things are chosen stays where it is.
    if (name && !fromSide) this.details.card.scrollIntoView({ block: "nearest" });
    this.details.drawBusiest();
    this.moved = true;
  }

  seek(time, byHand) {
    this.time = Math.max(0, Math.min(this.end, time));
    if (byHand && this.first && !this.packets) this.time = this.snap(this.time);
    this.timeline.update();
    this.moved = true;
    if (this.packets) this.news = true;
  }

  /** The sample nearest to a time. */
  snap(time) {
    const { start_ps, interval_ps, samples } = this.first.series;
    if (!interval_ps) return time;
    const nearest = Math.round((time - start_ps) / interval_ps);
    return start_ps + Math.max(0, Math.min(samples - 1, nearest)) * interval_ps;
  }

  get stepLength() { return this.first && this.first.series.interval_ps ? this.first.series.interval_ps : this.end / 100; }

  step(number) {
    this.play(false);
    if (!this.first) return this.seek(this.time + number * this.stepLength, true);
    // Between two samples the one before is shown: back leads to its time, on to the next.
    const { start_ps, interval_ps } = this.first.series, at = start_ps + this.first.sampleAt(this.time) * interval_ps;
    const steps = number < 0 && this.time > at + 1e-6 * interval_ps ? number + 1 : number;
    this.seek(at + steps * this.stepLength, true);
  }

  play(on) {
    if (on && this.time >= this.end - this.stepLength / 2) this.seek(0, false);
    this.playing = on;
    const button = document.getElementById("play");
    button.setAttribute("aria-pressed", String(on));
    button.setAttribute("aria-label", on ? "pause" : "play");
    button.classList.toggle("on", on);
  }

  key(event) {
    if (event.target.closest("input:not([type=range]):not([type=checkbox]), select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
    const far = event.shiftKey ? 10 : 1;
    const does = {
      " ": () => this.play(!this.playing), ArrowLeft: () => this.step(-far), ArrowRight: () => this.step(far),
      Home: () => this.seek(0, true), End: () => this.seek(this.end, true),
      "+": () => this.zoomBy(1.6), "=": () => this.zoomBy(1.6), "-": () => this.zoomBy(1 / 1.6), 0: () => this.zoomTo(d3.zoomIdentity),
      "/": () => document.getElementById("search").focus(), t: () => this.setTheme(this.theme === "dark" ? "light" : "dark"),
      l: () => this.runs.length > 1 && this.arrange(!this.stacked), Escape: () => this.choose(null), "?": () => document.getElementById("about").showModal(),
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    // A button that has the focus is pressed by the space bar itself.
    if (!does || (event.key === " " && event.target.closest("button, [role=button]"))) return;
    event.preventDefault();
    does();
  }

  /** What is shown depends on the samples and faults alone, so only another one of them is worth drawing. */
  moment() {
    return this.runs.map((run) => {
      const faults = d3.bisectRight(run.faults.map((fault) => fault.at_ps), this.time);
      return `${run.series ? run.sampleAt(this.time) : 0}/${faults}`;
    }).join(" ");
  }

  tick(now) {
    const passed = Math.min(100, now - (this.before ?? now));
    this.before = now;
    if (this.playing) {
      // Twelve samples a second, or the whole run in twenty seconds.
      const pace = this.first ? 12 * this.stepLength : this.end / 20;
      this.time = Math.min(this.end, this.time + (passed / 1000) * pace * this.speed);
      if (this.time >= this.end) this.play(false);
      this.timeline.update();
      this.moved = true;
      if (this.packets) this.news = true;
    }
    const moment = this.moment();
    if (moment !== this.drawn) { this.drawn = moment; this.fresh = this.news = true; }
    if (this.stale || this.fresh) { for (const panel of this.panels) panel.draw(this.stale); this.moved = true; }
    if (this.moved) { for (const panel of this.panels) panel.drawOver(); this.details.moveCursors(); }
    // Numbers that change faster than that cannot be read.
    if (this.news && (!this.playing || now - (this.told ?? 0) > 150)) {
      this.told = now;
      this.details.drawBusiest();
      this.details.drawChosen();
      this.packets?.count();
      this.schemes?.draw();
      this.jobs?.count();
      this.news = false;
    }
    this.stale = this.fresh = this.moved = false;
    requestAnimationFrame((now) => this.tick(now));
  }

  /** Frames per second when every frame draws every link anew: `await fabricView.measureFrames(120)` in the console. */
  measureFrames(frames) {
    const look = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    return new Promise((done) => {
      let left = frames;
      const from = performance.now();
      const next = () => {
        const run = this.first;
        if (run) this.time = run.series.start_ps + (left % run.series.samples) * run.series.interval_ps;
        for (const panel of this.panels) {
          panel.draw(false);
          panel.drawOver();
          // Reading a pixel waits until the picture is done.
          look.drawImage(panel.base, 0, 0);
          look.getImageData(0, 0, 1, 1);
        }
        this.timeline.update();
        if (--left > 0) requestAnimationFrame(next);
        else done((1000 * frames) / (performance.now() - from));
      };
      requestAnimationFrame(next);
    });
  }
}

(async () => {
  const blocks = [...document.querySelectorAll("script[type='text/plain'][data-run]")];
  try {
    const runs = [];
    for (const block of blocks) {
      runs.push(new Run(readColumns(await readBlock(block.textContent)), runs.length));
      block.remove();
    }
    await document.fonts.ready;
    window.fabricView = new App(runs);
    document.documentElement.classList.add("ready");
  } catch (error) {
    document.getElementById("broken").hidden = false;
    document.getElementById("broken").append(` ${error.message || error}`);
    throw error;
  }
})();
