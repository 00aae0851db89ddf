// Packets of traced flows: where each is at a time, and the ways they take.

const ENDS = { received: 1, dropped: 2, lost: 3 };
const DATA = 0;
/** For how many steps of the page a dropped packet stays to be seen. */
const LINGER = 3;
/** Cool colours: the warm ones say how busy links are. */
const FLOW_COLOURS = ["#2f7fd6", "#13a383", "#8a63e8", "#1fb0d0", "#6c9a16", "#c25fd8", "#5570a8", "#2fc29a"];

/** The journeys of a run's packets, in the order of their begins. */
class Journeys {
  constructor(run) {
    const column = (name) => run.columns[`trace.${name}`];
    this.run = run;
    this.flow = column("flow");
    this.kind = column("kind");
    this.psn = column("psn");
    this.again = column("again");
    this.end = column("end");
    this.hops = column("hops");
    this.begin = column("begin");
    this.took = column("took");
    [this.link, this.joined, this.waited, this.flags] = ["link", "joined", "waited", "flags"].map((name) => run.columns[`hop.${name}`]);
    this.number = this.flow.length;
    this.first = new Uint32Array(this.number + 1);
    this.longest = 0;
    for (let i = 0; i < this.number; i++) {
      this.first[i + 1] = this.first[i] + this.hops[i];
      this.longest = Math.max(this.longest, this.took[i]);
    }
  }

  /** Calls `each(journey)` for those that have begun by `to` and were not over before `from`. */
  between(from, to, each) {
    for (let i = d3.bisectLeft(this.begin, from - this.longest); i < this.number && this.begin[i] <= to; i++) {
      if (this.begin[i] + this.took[i] >= from) each(i);
    }
  }

  /** Link, share of the way along it, and whether it waits at its begin, at a time in the journey. */
  placeAt(i, time) {
    const passed = time - this.begin[i], last = this.first[i + 1] - 1;
    let hop = this.first[i];
    while (hop < last && this.joined[hop + 1] <= passed) hop++;
    const left = this.joined[hop] + this.waited[hop];
    if (passed < left) return { hop, share: 0, waits: true };
    // A packet that is dropped at the next port is seen there; one that is lost, in the middle of the link.
    const arrives = hop < last ? this.joined[hop + 1] : this.took[i];
    const share = arrives > left ? Math.min(1, (passed - left) / (arrives - left)) : 1;
    return { hop, share: hop === last && this.end[i] === ENDS.lost ? Math.min(share, 0.5) : share, waits: false };
  }

  /** Names of the nodes that a journey passes. */
  way(i) {
    const { run } = this, nodes = [run.names[run.from[this.link[this.first[i]]]]];
    for (let hop = this.first[i]; hop < this.first[i + 1]; hop++) nodes.push(run.names[run.to[this.link[hop]]]);
    return nodes;
  }
}

class Packets {
  constructor(app, place) {
    this.app = app;
    this.place = place;
    this.of = app.runs.map((run) => (run.facts.trace ? new Journeys(run) : null));
    this.flows = [];
    for (const run of app.runs) for (const flow of run.facts.trace?.flows || []) if (!this.flows.some((other) => other.flow_id === flow.flow_id)) this.flows.push(flow);
    this.flows.sort((a, b) => a.flow_id - b.flow_id);
    this.hidden = new Set(this.flows.slice(12).map((flow) => flow.flow_id));
    this.answers = true;
    // Per run the flow's place among `flows`.
    this.places = app.runs.map((run) => (run.facts.trace?.flows || []).map((flow) => this.flows.findIndex((other) => other.flow_id === flow.flow_id)));
    place.hidden = false;
    place.addEventListener("change", (event) => this.change(event.target));
    this.list();
  }

  /** Shows one flow alone, at the middle of its time. */
  follow(number, id) {
    const of = this.of[number], place = this.flows.findIndex((flow) => flow.flow_id === id);
    this.hidden = new Set(this.flows.filter((flow) => flow.flow_id !== id).map((flow) => flow.flow_id));
    let from = Infinity, to = 0;
    for (let i = 0; i < of.number; i++) {
      if (this.places[number][of.flow[i]] !== place) continue;
      from = Math.min(from, of.begin[i]);
      to = Math.max(to, of.begin[i] + of.took[i]);
    }
    this.list();
    this.app.play(false);
    this.app.seek((from + to) / 2, true);
    this.app.stale = true;
  }

  colour(place) { return FLOW_COLOURS[place % FLOW_COLOURS.length]; }

  change(box) {
    if (box.id === "answers") this.answers = box.checked;
    else if (box.checked) this.hidden.delete(Number(box.value));
    else this.hidden.add(Number(box.value));
    this.app.moved = this.app.news = true;
  }

  list() {
    const title = (flow) => `host${flow.src} \u2192 host${flow.dst}, ${scaled(flow.size_bytes ?? NaN, "B")}`;
    this.place.innerHTML = `<h2>Traced flows</h2><label class="tick"><input type="checkbox" id="answers" checked> acknowledgements</label>
      <div class="flows">${this.flows.map((flow, place) => `<label class="tick"><input type="checkbox" value="${flow.flow_id}" ${this.hidden.has(flow.flow_id) ? "" : "checked"}><i class="dot" style="background:${this.colour(place)}"></i>flow ${flow.flow_id}: ${title(flow)}</label>`).join("")}</div>
      <div id="counts"></div>
      <p class="note keys"><i class="packet"></i>data <i class="packet marked"></i>marked <i class="packet header"></i>trimmed <i class="packet answer"></i>answer <i class="packet gone">\u00d7</i>dropped</p>`;
  }

  shows(run, i) {
    const of = this.of[run];
    return !this.hidden.has(this.flows[this.places[run][of.flow[i]]].flow_id) && (this.answers || of.kind[i] === DATA);
  }

  /** What has become of the packets sent so far, and over how many ways. */
  count() {
    const { runs, time } = this.app;
    const rows = ["sent", "in flight", "received", "marked", "trimmed", "retransmitted", "dropped or lost", "paths used"];
    const values = this.of.map((of, run) => {
      const sums = new Array(rows.length - 1).fill(0), ways = new Set();
      if (!of) return null;
      of.between(-Infinity, time, (i) => {
        if (of.kind[i] !== DATA || !this.shows(run, i)) return;
        const over = of.begin[i] + of.took[i] <= time;
        let flags = 0, way = "";
        for (let hop = of.first[i]; hop < of.first[i + 1]; hop++) {
          if (of.begin[i] + of.joined[hop] + of.waited[hop] <= time) flags |= of.flags[hop];
          way += `${of.link[hop]} `;
        }
        sums[0]++;
        sums[1] += !over;
        sums[2] += over && of.end[i] === ENDS.received;
        sums[3] += flags & 1;
        sums[4] += (flags >> 1) & 1;
        sums[5] += of.again[i];
        sums[6] += over && of.end[i] >= ENDS.dropped;
        if (of.end[i] === ENDS.received) ways.add(`${of.flow[i]}:${way}`);
      });
      return [...sums, ways.size];
    });
    const lines = rows.map((words, row) => [`trace_${words.replaceAll(" ", "_")}`, words, "count", runs.map((_, run) => values[run]?.[row])]);
    this.place.querySelector("#counts").innerHTML = numberTable(this.app, `Data packets shown, up to ${timeText(time)}`, lines);
  }

  draw(panel) {
    const { run, pen } = panel, of = this.of[run.number], { time } = this.app;
    if (!of) return;
    const linger = LINGER * this.app.stepLength, size = Math.max(2.2, Math.min(5.5, 2.4 + panel.wire));
    this.drawWays(panel, of);
    of.between(time - linger, time, (i) => {
      if (!this.shows(run.number, i)) return;
      const over = of.begin[i] + of.took[i] < time;
      if (over && of.end[i] < ENDS.dropped) return;
      const { hop, share, waits } = of.placeAt(i, Math.min(time, of.begin[i] + of.took[i]));
      const [x, y] = panel.along(of.link[hop], share, panel.lane() + (waits ? size : 0));
      const colour = this.colour(this.places[run.number][of.flow[i]]);
      if (over) return this.cross(pen, x, y, colour, 1 - (time - of.begin[i] - of.took[i]) / linger);
      let flags = 0;
      for (let at = of.first[i]; at <= hop; at++) if (at < hop || !waits) flags |= of.flags[at];
      const data = of.kind[i] === DATA, r = data ? (flags & 2 ? size * 0.72 : size) : size * 0.5;
      pen.beginPath();
      pen.arc(x, y, r, 0, 2 * Math.PI);
      pen.globalAlpha = data ? 1 : 0.75;
      pen.fillStyle = flags & 2 ? this.app.inks.paper : colour;
      pen.fill();
      pen.lineWidth = flags & 1 ? 2 : 1.2;
      pen.strokeStyle = flags & 2 ? colour : flags & 1 ? this.app.inks.mark : this.app.inks.paper;
      pen.stroke();
      pen.globalAlpha = 1;
    });
  }

  cross(pen, x, y, colour, alpha) {
    pen.globalAlpha = Math.max(0, alpha);
    pen.strokeStyle = colour;
    pen.lineWidth = 2.4;
    pen.beginPath();
    pen.moveTo(x - 5, y - 5); pen.lineTo(x + 5, y + 5); pen.moveTo(x + 5, y - 5); pen.lineTo(x - 5, y + 5);
    pen.stroke();
    pen.globalAlpha = 1;
  }

  /** The links on which data of the flows shown lay in the last stretch of time. */
  drawWays(panel, of) {
    const { run, pen } = panel, { time } = this.app;
    const used = new Map();
    of.between(time - of.longest, time, (i) => {
      if (of.kind[i] !== DATA || !this.shows(run.number, i)) return;
      const place = this.places[run.number][of.flow[i]];
      if (!used.has(place)) used.set(place, new Set());
      for (let hop = of.first[i]; hop < of.first[i + 1]; hop++) if (of.begin[i] + of.joined[hop] <= time) used.get(place).add(of.link[hop]);
    });
    pen.globalAlpha = 0.4;
    pen.lineWidth = Math.max(1.6, panel.wire * 1.5);
    for (const [place, links] of used) {
      pen.beginPath();
      for (const link of links) panel.trace(pen, link);
      pen.strokeStyle = this.colour(place);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }
}
