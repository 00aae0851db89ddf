// What the schemes of a traced flow knew: a line per column of their state over time, and marks of their choices.

class Schemes {
  constructor(app, place) {
    this.app = app;
    this.place = place;
    place.hidden = false;
  }

  /** Draws the first flow that is shown; after a change of time its cursor and values alone. */
  draw() {
    const { app } = this, flow = app.packets?.flows.find((flow) => !app.packets.hidden.has(flow.flow_id))?.flow_id;
    if (flow !== this.flow || !this.lines) this.lay(flow);
    for (const { svg, rows, time, values, words, text } of this.lines) {
      const at = d3.bisector((row) => time[row]).right(rows, app.time) - 1;
      const x = this.x(Math.max(this.x.domain()[0], Math.min(this.x.domain()[1], app.time)));
      svg.querySelector(".cursor").setAttribute("x1", x);
      svg.querySelector(".cursor").setAttribute("x2", x);
      words.textContent = at >= 0 ? text(values[rows[at]]) : "\u2013";
    }
  }

  lay(flow) {
    const { app, place } = this, width = 300, height = 34;
    this.flow = flow;
    this.lines = [];
    const parts = [];
    for (const run of app.runs) (run.facts.schemes || []).forEach((scheme, number) => {
      const column = (name) => run.columns[`scheme.${number}.${name}`];
      const [time, flows, events, tags] = ["time_ps", "flow_id", "event", "tag"].map(column);
      const rows = d3.range(time.length).filter((row) => flows[row] === flow);
      if (rows.length) parts.push({ run, scheme, column, time, rows, marks: this.marks(rows, events, tags) });
    });
    const ends = parts.flatMap(({ time, rows }) => [time[rows[0]], time[rows[rows.length - 1]]]);
    this.x = d3.scaleLinear([Math.min(...ends), Math.max(...ends) + 1], [0, width]);
    place.innerHTML = parts.length ? `<h2>State of the scheme, flow ${flow}</h2><p class="note">Marks: \u25b4 another path, \u25cf hold or wait, \u25cb probe or reply</p>` : "";
    for (const { run, scheme, column, time, rows, marks } of parts) {
      place.insertAdjacentHTML("beforeend", `<h3><i class="dot dot${run.number}"></i>${escapeText(scheme.name.replace("scheme_", ""))}</h3>`);
      for (const { name, unit, meaning } of scheme.columns) {
        const values = column(name), text = (value) => (Number.isNaN(value) ? "\u2013" : unit === "ps" ? timeText(value) : `${value.toLocaleString("en", { maximumFractionDigits: 4 })} ${unit}`);
        const [least, most] = d3.extent(rows, (row) => values[row]);
        if (least === undefined) continue;
        const y = d3.scaleLinear([least, most > least ? most : least + 1], [height - 2, 8]);
        const line = d3.line((row) => this.x(time[row]), (row) => y(values[row])).curve(d3.curveStepAfter).defined((row) => !Number.isNaN(values[row]));
        const title = `${meaning} ${text(least)} to ${text(most)}`;
        place.insertAdjacentHTML("beforeend", `<div class="state" data-column="${name}" title="${escapeText(title)}"><span>${escapeText(name.replace(/_ps$/, "").replaceAll("_", " "))}</span><output></output>
          <svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeText(title)}"><path class="curve s${run.number}" d="${line(rows)}"/>${marks.map(([row, mark]) => `<text class="mark" x="${this.x(time[row])}" y="7">${mark}</text>`).join("")}<line class="cursor" y1="0" y2="${height}"/></svg></div>`);
        const block = place.lastElementChild;
        this.lines.push({ svg: block.querySelector("svg"), words: block.querySelector("output"), rows, time, values, text });
      }
    }
  }

  /** Rows of choices that are more than the next packet on the same path, each with its mark. */
  marks(rows, events, tags) {
    let last = NaN;
    const of = (row) => {
      const event = events[row];
      if (event === "hold" || event === "wait") return "\u25cf";
      if (event.startsWith("probe") || event.startsWith("reply")) return "\u25cb";
      if (event !== "send" && event !== "send-ack-request" && event !== "forward") return null;
      const before = last;
      last = tags[row];
      return !Number.isNaN(before) && before !== last ? "\u25b4" : null;
    };
    const marks = rows.map((row) => [row, of(row)]).filter(([, mark]) => mark);
    // A scheme that sprays moves with every packet: its moves are no event.
    return marks.length > 200 ? marks.filter(([, mark]) => mark !== "\u25b4") : marks;
  }
}
