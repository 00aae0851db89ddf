// The time axis: what the network carried, faults, the slider and play.

class Timeline {
  constructor(app, place) {
    this.app = app;
    this.place = place;
    this.svg = d3.select(place.querySelector(".chart svg"));
    this.slider = place.querySelector("input[type=range]");
    this.clock = place.querySelector(".clock");
    this.slider.addEventListener("input", () => app.seek(this.timeOf(Number(this.slider.value)), true));
    const seek = (event) => {
      const [x] = d3.pointer(event, this.svg.node());
      app.seek(this.x.invert(Math.max(this.x.range()[0], Math.min(this.x.range()[1], x))), true);
    };
    this.svg.on("pointerdown", (event) => { this.svg.node().setPointerCapture(event.pointerId); this.dragging = true; seek(event); })
      .on("pointermove", (event) => { if (this.dragging) seek(event); })
      .on("pointerup pointercancel", () => { this.dragging = false; });
  }

  timeOf(step) { return (step / 1e6) * this.app.end; }

  draw() {
    const { app } = this;
    const box = this.place.querySelector(".chart").getBoundingClientRect();
    const [width, height] = [box.width, 74], pad = 8, floor = height - 20, roof = 16;
    this.svg.attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height);
    this.x = d3.scaleLinear([0, app.end], [pad, width - pad]);
    this.svg.selectAll("*").remove();
    const measure = app.chartMeasure();
    const lines = measure ? app.runs.filter((run) => run.series).map((run) => ({ run, ...overTime(run, measure) })) : [];
    const most = measure ? Math.max(1e-12, d3.max(lines, (line) => d3.max(line.sums)) || 0) : 1;
    const y = d3.scaleLinear([0, most * 1.05], [floor, roof]);
    this.svg.append("line").attr("class", "axis").attr("x1", pad).attr("x2", width - pad).attr("y1", floor).attr("y2", floor);
    const unit = app.end >= 1e12 ? [1e12, "s"] : app.end >= 1e9 ? [1e9, "ms"] : [1e6, "\u00b5s"];
    const ticks = d3.scaleLinear([0, app.end / unit[0]], [pad, width - pad]);
    for (const tick of ticks.ticks(Math.max(3, Math.floor(width / 110)))) {
      const at = ticks(tick);
      this.svg.append("line").attr("class", "axis").attr("x1", at).attr("x2", at).attr("y1", floor).attr("y2", floor + 4);
      this.svg.append("text").attr("x", at).attr("y", floor + 15).attr("text-anchor", at < 30 ? "start" : at > width - 40 ? "end" : "middle").text(`${tick} ${unit[1]}`);
    }
    for (const { run, sums } of lines) {
      const at = (sample) => run.series.start_ps + sample * run.series.interval_ps;
      // No more points than pixels: of those that share one the highest is kept.
      const bucket = Math.max(1, Math.floor(sums.length / (2 * width)));
      const points = d3.range(0, sums.length, bucket).map((from) => {
        let best = from;
        for (let i = from; i < Math.min(sums.length, from + bucket); i++) if (sums[i] > sums[best]) best = i;
        return [this.x(at(best)), y(sums[best])];
      });
      if (lines.length === 1) this.svg.append("path").attr("class", `fill s${run.number}`).attr("d", d3.area().y0(floor)(points));
      this.svg.append("path").attr("class", `curve s${run.number}`).attr("d", d3.line()(points));
    }
    const words = measure
      ? `${measure.label}, ${lines[0].words}; most ${FORMATS[measure.format](most)}`
      : "no series were recorded: links show totals of the run";
    this.svg.append("text").attr("class", "words").attr("x", pad).attr("y", 11).text(words);
    this.drawFaults(floor, roof);
    this.cursor = this.svg.append("line").attr("class", "cursor").attr("y1", roof - 3).attr("y2", floor + 4);
    this.update();
  }

  drawFaults(floor, roof) {
    const { app } = this;
    const times = new Map();
    for (const run of app.runs) {
      for (const fault of run.faults) {
        if (fault.at_ps > app.end) continue;
        const words = `${fault.links.length === 1 ? run.linkNames[fault.links[0]] : `${fault.links.length} links`}: ${fault.what}`;
        if (!times.has(fault.at_ps)) times.set(fault.at_ps, new Set());
        times.get(fault.at_ps).add(words);
      }
    }
    for (const [at, words] of times) {
      const x = this.x(at), text = `${timeText(at)}: ${[...words].join("; ")}`;
      const mark = this.svg.append("g").attr("class", "fault").attr("role", "button").attr("tabindex", 0).attr("aria-label", `fault at ${text}`)
        .on("pointerdown", (event) => { event.stopPropagation(); app.seek(at, true); })
        .on("keydown", (event) => { if (event.key === "Enter") app.seek(at, true); });
      mark.append("line").attr("x1", x).attr("x2", x).attr("y1", roof).attr("y2", floor);
      mark.append("path").attr("d", `M${x - 5},${roof - 3}h10l-5,8z`);
      mark.append("title").text(text);
    }
  }

  update() {
    const { app } = this;
    const x = this.x(app.time);
    this.cursor?.attr("x1", x).attr("x2", x);
    this.slider.value = Math.round((app.time / app.end) * 1e6);
    const text = timeText(app.time);
    this.slider.setAttribute("aria-valuetext", text);
    const run = app.runs.find((run) => run.series);
    this.clock.textContent = text;
    this.clock.title = run ? `sample ${run.sampleAt(app.time) + 1} of ${run.series.samples}` : "";
  }
}
