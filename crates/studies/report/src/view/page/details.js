// The side: legend, what is chosen, the busiest links.

const escapeText = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/** Rows of numbers, a column per run. `rows`: [key, words, format, value per run]. */
function numberTable(app, caption, rows) {
  const heads = app.runs.length > 1 ? `<tr><th scope="col"></th>${app.runs.map((run) => `<th scope="col"><i class="dot dot${run.number}"></i>${escapeText(run.facts.scheme)}</th>`).join("")}</tr>` : "";
  // Rounded for reading; pointing at a cell tells the number of the row.
  const exact = (value, format) => (typeof value === "number" && format !== "count" ? ` title="${value.toLocaleString("en", { maximumFractionDigits: 9 })}"` : "");
  const cell = (key, format, value, run) => `<td data-key="${key}" data-run="${run}" data-value="${value ?? ""}"${exact(value, format)}>${value === undefined || value === null ? "\u2013" : typeof value === "string" ? escapeText(value) || "none" : FORMATS[format](value)}</td>`;
  const lines = rows.filter((row) => row[3].some((value) => value !== undefined));
  if (!lines.length) return "";
  return `<table class="numbers"><caption>${escapeText(caption)}</caption><thead>${heads}</thead><tbody>${lines
    .map(([key, words, format, values]) => `<tr><th scope="row">${escapeText(words)}</th>${values.map((value, run) => cell(key, format, value, run)).join("")}</tr>`).join("")}</tbody></table>`;
}

class Details {
  constructor(app, place) {
    this.app = app;
    this.legend = place.querySelector("#legend");
    this.card = place.querySelector("#chosen");
    this.busiest = place.querySelector("#busiest");
    const take = (event) => {
      const name = event.target.closest("[data-name]")?.dataset.name;
      if (name) app.choose(name, true);
    };
    // While it plays, what is pressed may be drawn anew before it is let go: a press counts at once, by keyboard as a click.
    place.addEventListener("pointerdown", take);
    place.addEventListener("click", (event) => { if (event.detail === 0) take(event); });
    place.addEventListener("pointerover", (event) => app.hover(event.target.closest("[data-name]")?.dataset.name ?? null));
    place.addEventListener("pointerleave", () => app.hover(null));
  }

  drawLegend() {
    const { measure, colours, runs } = this.app;
    const format = FORMATS[measure.format];
    const stops = colours.map((colour, level) => `${colour} ${(100 * level) / (LEVELS - 1)}%`).join(",");
    const marks = measure.most === 0 ? [] : measure.format === "percent" ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.05, 0.25, 0.5, 1].map((share) => share * measure.most);
    const ticks = marks.map((value) => `<span style="left:${100 * Math.pow(value / measure.most, measure.power)}%">${format(value)}</span>`).join("");
    const faults = runs.some((run) => run.faults.length);
    const silent = measure.over && runs.some((run) => run.series && run.series.links < run.links);
    this.legend.innerHTML = `<div class="scale" role="img" aria-label="colours from 0 to ${format(measure.most)}" style="background:linear-gradient(90deg,${stops})"></div>
      <div class="ticks">${ticks || "<span>0 everywhere</span>"}</div>
      <p class="note">${escapeText(measure.label)}, ${escapeText(measure.note)}${measure.power < 1 && measure.most > 0 ? "; square-root scale" : ""}.</p>
      ${faults ? '<p class="note keys"><i class="key down"></i>down <i class="key hurt"></i>slower or lossy</p>' : ""}
      ${silent ? '<p class="note keys"><i class="key silent"></i>no series of this link</p>' : ""}`;
  }

  /** Draws the card anew where another thing is chosen, else only its numbers. */
  drawChosen() {
    const name = this.app.chosen;
    if (!name) {
      this.card.innerHTML = '<h2>Nothing chosen</h2><p class="note">Point at a link, switch or host; press it to keep its numbers here.</p>';
      return;
    }
    const link = this.app.runs.some((run) => run.linkOf.has(name));
    this.card.innerHTML = link ? this.linkCard(name) : this.nodeCard(name);
    if (link) this.drawCurves(name);
  }

  now(run) { return run.series ? run.sampleAt(this.app.time) : 0; }

  linkCard(name) {
    const { runs, time } = this.app;
    const links = runs.map((run) => run.linkOf.get(name));
    const first = runs.find((run, i) => links[i] !== undefined), link = first.linkOf.get(name);
    const per = (value) => runs.map((run, i) => (links[i] === undefined ? undefined : value(run, links[i], this.now(run))));
    const series = (column) => per((run, link, sample) => { const value = seriesAt(run, column, link, sample); return Number.isNaN(value) ? undefined : value; });
    const total = (column) => per((run, link) => { const cells = run.columns[`link.${column}`]; return cells && !Number.isNaN(cells[link]) ? cells[link] : undefined; });
    const load = per((run, link, sample) => { const value = loadAt(run, link, sample); return Number.isNaN(value) ? undefined : value; });
    const sent = series("sent_bytes");
    const rate = sent.map((value, i) => (value === undefined ? undefined : (value * 8e12) / runs[i].series.interval_ps));
    const rows = [["load", "Load", "percent", load], ["rate", "Throughput", "rate", rate], ["sent_bytes", "Sent since the sample before", "bytes", sent]];
    const columns = first.series ? first.series.columns : [];
    for (const column of columns) if (column !== "sent_bytes") rows.push([column, (SERIES_WORDS[column] || [column.replaceAll("_", " ")])[0], (SERIES_WORDS[column] || [])[1] || "count", series(column)]);
    const state = runs.map((run, i) => (links[i] === undefined ? "" : run.faultAt(links[i], time)));
    const whole = [["bytes", "Sent", "bytes", total("bytes")], ["packets", "Packets sent", "count", total("packets")],
      ...TOTALS.map(([column, words, format]) => [column, words, format, total(column)]), ["fault", "Faults", "text", per((run, link) => run.columns["link.fault"]?.[link])]];
    const ends = [first.from[link], first.to[link]].map((node) => `<button type="button" class="name" data-name="${escapeText(first.names[node])}">${escapeText(first.names[node])}</button>`);
    const back = first.linkNames.find((_, other) => first.from[other] === first.to[link] && first.to[other] === first.from[link] && first.columns["link.parallel"][other] === first.columns["link.parallel"][link]);
    return `<h2>${escapeText(name)}</h2>
      <p class="note">${escapeText(first.facts.classes[first.linkClass[link]])}, ${escapeText(first.directions[link])}, ${scaled(first.rate[link], "b/s")}; from ${ends[0]} to ${ends[1]}${back ? ` \u00b7 <button type="button" class="name" data-name="${escapeText(back)}">other direction</button>` : ""}</p>
      ${state.some(Boolean) ? `<p class="fault-state">${escapeText([...new Set(state.filter(Boolean))].join("; "))} at this time</p>` : ""}
      <div id="now">${numberTable(this.app, `At ${timeText(time)}`, rows)}</div>
      <div id="curves"></div>
      ${numberTable(this.app, "Whole run", whole)}`;
  }

  drawCurves(name) {
    const { runs } = this.app;
    const place = this.card.querySelector("#curves");
    const recorded = runs.filter((run) => run.series && run.stretch[run.linkOf.get(name)] >= 0);
    if (!recorded.length) return;
    const width = 300, height = 64;
    const x = d3.scaleLinear([0, this.app.end], [0, width]);
    for (const measure of this.app.measures.filter((measure) => ["load", "queue_bytes"].includes(measure.id))) {
      const of = (run) => d3.range(run.series.samples).map((sample) => measure.value(run, run.linkOf.get(name), sample));
      const lines = recorded.map((run) => ({ run, values: of(run) }));
      const most = Math.max(1, d3.max(lines, (line) => d3.max(line.values)));
      const y = d3.scaleLinear([0, most], [height - 1, 14]);
      const paths = lines.map(({ run, values }) => `<path class="curve s${run.number}" d="${d3.line((value, sample) => x(run.series.start_ps + sample * run.series.interval_ps), y)(values)}"/>`);
      place.insertAdjacentHTML("beforeend", `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${measure.label} of ${escapeText(name)} over time"><line class="axis" x2="${width}" y1="${height - 1}" y2="${height - 1}"/>${paths.join("")}<text class="words" y="9">${measure.label}, axis to ${FORMATS[measure.format](most)}</text><line class="cursor" y1="12" y2="${height}"/></svg>`);
    }
    this.curveScale = x;
    this.moveCursors();
  }

  moveCursors() {
    for (const cursor of this.card.querySelectorAll("#curves .cursor")) {
      const at = this.curveScale(this.app.time);
      cursor.setAttribute("x1", at);
      cursor.setAttribute("x2", at);
    }
  }

  nodeCard(name) {
    const { runs, time, measure } = this.app;
    const nodes = runs.map((run) => run.nodeOf.get(name));
    const first = runs.find((run, i) => nodes[i] !== undefined), node = first.nodeOf.get(name);
    const host = first.heights[node] === 0;
    const per = (value) => runs.map((run, i) => (nodes[i] === undefined ? undefined : value(run, nodes[i])));
    const sum = (value) => per((run, node) => { let total = 0, some = false; for (const link of run.out[node]) { const v = value(run, link, this.now(run)); if (v !== undefined && !Number.isNaN(v)) { total += v; some = true; } } return some ? total : undefined; });
    const series = (column) => sum((run, link, sample) => seriesAt(run, column, link, sample));
    const rate = series("sent_bytes").map((value, i) => (value === undefined ? undefined : (value * 8e12) / runs[i].series.interval_ps));
    const columns = first.series ? first.series.columns : [];
    const rows = [["rate", "Throughput", "rate", rate]];
    for (const column of columns) if (column !== "sent_bytes") rows.push([column, (SERIES_WORDS[column] || [column.replaceAll("_", " ")])[0], (SERIES_WORDS[column] || [])[1] || "count", series(column)]);
    const own = (column) => per((run, node) => { const cells = run.columns[`node.${column}`]; return cells && !Number.isNaN(cells[node]) ? cells[node] : undefined; });
    const flows = host ? [["flows_sent", "Flows sent", "count", own("flows_sent")], ["bytes_sent", "Payload of them", "bytes", own("bytes_sent")], ["flows_received", "Flows received", "count", own("flows_received")],
      ["bytes_received", "Payload of them", "bytes", own("bytes_received")], ["slowdown_max", "Slowdown of its slowest flow", "real", own("slowdown_max")], ["unfinished", "Flows without an end", "count", own("unfinished")]] : [];
    const total = (column) => sum((run, link) => run.columns[`link.${column}`]?.[link]);
    const whole = [...flows, ["bytes", "Sent on the wire", "bytes", total("bytes")], ["ecn_marks", "ECN marks", "count", total("ecn_marks")], ["trims", "Trims", "count", total("trims")],
      ["drops", "Drops", "count", total("drops")], ["pauses", "PFC pauses", "count", total("pauses")]];
    const value = (link) => d3.max(runs, (run) => { const of = run.linkOf.get(link); return of === undefined ? 0 : measure.value(run, of, this.now(run)) || 0; });
    const ports = [...first.out[node], ...(host ? first.in[node] : [])].map((link) => first.linkNames[link]).sort((a, b) => value(b) - value(a));
    const listed = ports.slice(0, 8).map((link) => `<li><button type="button" class="name" data-name="${escapeText(link)}">${escapeText(link)}</button><span>${FORMATS[measure.format](value(link))}</span></li>`).join("");
    const server = first.serverOf.get(node), gpus = first.gpusOf.get(node) || [];
    const others = [...first.serverNodes(node)].filter((other) => other !== node).map((other) => `<button type="button" class="name" data-name="${escapeText(first.names[other])}">${escapeText(first.names[other])}</button>`);
    const inServer = server === undefined ? "" : `<p class="note">NIC of server ${server}, with ${gpus.length > 1 ? `GPUs ${gpus[0]} to ${gpus[gpus.length - 1]}` : `GPU ${gpus[0]}`}${others.length ? `; other NICs: ${others.join(", ")}` : ""}</p>`;
    const group = first.groups[node] ? `, group ${first.groups[node] - 1}` : "";
    return `<h2>${escapeText(name)}</h2><p class="note">${host ? "host" : `switch with ${first.out[node].length} ports`}${group}${host ? "" : "; sums over what its ports send"}</p>
      ${inServer}
      <div id="now">${first.series ? numberTable(this.app, `At ${timeText(time)}`, rows) : ""}</div>
      ${numberTable(this.app, "Whole run", whole)}
      <h3>${host ? "Its links" : "Busiest ports"}, by ${escapeText(measure.label.toLowerCase())}</h3><ol class="ports">${listed}</ol>${ports.length > 8 ? `<p class="note">and ${ports.length - 8} more</p>` : ""}`;
  }

  drawBusiest() {
    const { runs, measure, time, panels } = this.app;
    const MAX_LISTED = 10;
    const best = new Map();
    runs.forEach((run, i) => {
      const sample = this.now(run), top = [];
      for (let link = 0; link < run.links; link++) {
        if (!panels[i].visible[link]) continue;
        const value = measure.value(run, link, sample);
        if (!(value > 0) || (top.length === MAX_LISTED && value <= top[MAX_LISTED - 1][0])) continue;
        let at = top.length;
        while (at > 0 && top[at - 1][0] < value) at--;
        top.splice(at, 0, [value, link]);
        if (top.length > MAX_LISTED) top.pop();
      }
      for (const [value, link] of top) best.set(run.linkNames[link], Math.max(value, best.get(run.linkNames[link]) || 0));
    });
    const names = [...best].sort((a, b) => b[1] - a[1]).slice(0, MAX_LISTED).map(([name]) => name);
    const cell = (run, name) => { const link = run.linkOf.get(name); return link === undefined ? "\u2013" : FORMATS[measure.format](measure.value(run, link, this.now(run))); };
    const head = runs.length > 1 ? runs.map((run) => `<th scope="col"><i class="dot dot${run.number}"></i>${escapeText(run.facts.scheme)}</th>`).join("") : `<th scope="col">${escapeText(measure.label)}</th>`;
    this.busiest.innerHTML = `<table><caption>Busiest links${measure.over ? ` at ${timeText(time)}` : ", whole run"}</caption><thead><tr><th scope="col">link</th>${head}</tr></thead><tbody>${names
      .map((name) => `<tr data-name="${escapeText(name)}"${name === this.app.chosen ? ' class="on"' : ""}><th scope="row"><button type="button" class="name">${escapeText(name)}</button></th>${runs.map((run) => `<td>${cell(run, name)}</td>`).join("")}</tr>`).join("")}</tbody></table>${names.length ? "" : '<p class="note">none above zero</p>'}`;
  }
}
