// Groups of jobs: one is chosen, and its hosts and flows light up.

const MAX_SLOWEST = 5;

class Jobs {
  constructor(app, place) {
    this.app = app;
    this.place = place;
    this.chosen = null;
    // Per run and group in a repetition: its row, its hosts and its flows.
    this.of = app.runs.map((run) => (run.facts.jobs ? this.read(run.columns) : new Map()));
    this.keys = [...new Set(this.of.flatMap((of) => [...of.keys()]))];
    this.workloads = [...new Set(app.runs.flatMap((run) => run.columns["job.workload"] || []))];
    this.workload = this.workloads[0];
    place.hidden = false;
    place.addEventListener("change", (event) => this.change(event.target));
    place.addEventListener("click", (event) => {
      const key = event.target.closest("[data-group]")?.dataset.group;
      if (key !== undefined) this.choose(key || null);
    });
    this.list();
  }

  key(workload, group, repetition) { return `${group}/${repetition}/${workload}`; }

  read(columns) {
    const rows = columns["job.workload"].map((workload, row) => ({ row, workload, group: columns["job.group"][row], repetition: columns["job.repetition"][row], hosts: new Set(), flows: [] }));
    (columns["rank.job"] || []).forEach((job, at) => rows[job].hosts.add(columns["rank.node"][at]));
    (columns["job_flow.job"] || []).forEach((job, at) => rows[job].flows.push(at));
    return new Map(rows.map((row) => [this.key(row.workload, row.group, row.repetition), row]));
  }

  cell(run, column, key) {
    const row = this.of[run.number].get(key);
    const value = row && run.columns[`job.${column}`]?.[row.row];
    return typeof value === "number" && Number.isNaN(value) ? undefined : value;
  }

  /** Groups of the workload by their slowest completion in any run, the slowest first. */
  slowest() {
    const time = (key) => d3.max(this.app.runs, (run) => this.cell(run, "completion_ps", key)) ?? Infinity;
    const own = this.keys.filter((key) => this.of.some((of) => of.get(key)?.workload === this.workload));
    return own.map((key) => [time(key), key]).sort((a, b) => b[0] - a[0]).map(([, key]) => key);
  }

  list() {
    const row = (key) => this.of.map((of) => of.get(key)).find(Boolean);
    const title = (key) => { const { group, repetition } = row(key); return `group ${group}${this.repeats ? `, repetition ${repetition}` : ""}`; };
    const slowest = this.slowest();
    const own = slowest.map(row);
    this.repeats = own.some((of) => of.repetition > 0);
    const groups = [...new Set(own.map((of) => of.group))].sort((a, b) => a - b), repetitions = [...new Set(own.map((of) => of.repetition))].sort((a, b) => a - b);
    const chosen = this.chosen ? row(this.chosen) : null;
    const option = (value, words, on) => `<option value="${value}"${on ? " selected" : ""}>${words}</option>`;
    const select = (id, words, options) => `<label>${words} <select id="${id}">${options}</select></label>`;
    this.place.innerHTML = `<h2>Groups of jobs</h2><p class="pick">
      ${this.workloads.length > 1 ? select("job-workload", "Job", this.workloads.map((name) => option(escapeText(name), escapeText(name), name === this.workload)).join("")) : ""}
      ${select("job-group", "Group", option("", "none", !chosen) + groups.map((group) => option(group, group, chosen?.group === group)).join(""))}
      ${this.repeats ? select("job-repetition", "Repetition", repetitions.map((number) => option(number, number, (chosen?.repetition ?? 0) === number)).join("")) : ""}</p>
      <p class="note">Slowest: ${slowest.slice(0, MAX_SLOWEST).map((key) => `<button type="button" class="name" data-group="${escapeText(key)}">${title(key)}</button>`).join(", ")}</p>
      <div id="job-numbers"></div>`;
    this.count();
  }

  change(select) {
    if (select.id === "job-workload") {
      this.workload = select.value;
      return this.choose(null);
    }
    const value = (id) => this.place.querySelector(`#${id}`)?.value;
    const group = value("job-group");
    this.choose(group === "" ? null : this.key(this.workload, group, value("job-repetition") ?? 0));
  }

  choose(key) {
    this.chosen = key !== null && this.of.some((of) => of.has(key)) ? key : null;
    if (this.chosen) this.workload = this.of.map((of) => of.get(this.chosen)).find(Boolean).workload;
    this.list();
    const first = this.app.runs.find((run) => this.cell(run, "completion_ps", this.chosen) !== undefined);
    // To the middle of its time, where the time shown is not of it.
    if (first && !this.app.runs.some((run) => this.isOn(run))) {
      this.app.play(false);
      this.app.seek(this.cell(first, "start_ps", this.chosen) + this.cell(first, "completion_ps", this.chosen) / 2, true);
    }
    this.app.moved = true;
  }

  /** Chooses the group that a link names. */
  follow(wanted) {
    const names = wanted.has("workload") ? [wanted.get("workload")] : this.workloads;
    const keys = names.map((name) => this.key(name, Number(wanted.get("group")), Number(wanted.get("repetition") ?? 0)));
    this.choose(keys.find((key) => this.of.some((of) => of.has(key))) ?? null);
  }

  /** Whether the group runs at the time shown. */
  isOn(run) {
    const start = this.cell(run, "start_ps", this.chosen), took = this.cell(run, "completion_ps", this.chosen);
    return start !== undefined && this.app.time >= start && this.app.time <= start + (took ?? Infinity);
  }

  /** Flows of the group that are under way at the time shown. */
  open(run) {
    const { columns } = run, { time } = this.app, row = this.of[run.number].get(this.chosen);
    return (row?.flows || []).filter((at) => columns["job_flow.start_ps"][at] <= time && !(columns["job_flow.start_ps"][at] + columns["job_flow.took_ps"][at] < time));
  }

  count() {
    const place = this.place.querySelector("#job-numbers");
    if (!this.chosen) { place.innerHTML = '<p class="note">Choose a group: its hosts and its flows light up.</p>'; return; }
    const { runs } = this.app;
    const per = (column) => runs.map((run) => this.cell(run, column, this.chosen));
    const rows = [["job_start", "Start", "time", per("start_ps")], ["job_completion", "Completion", "time", per("completion_ps")], ["job_slowdown", "Slowdown against alone", "real", per("slowdown")],
      ["job_last_rank", "Last rank", "count", per("last_rank")], ["job_last_flow", "Last flow", "count", per("last_flow")], ["job_held", "Its longest wait at a link", "time", per("last_link_ps")],
      ["job_critical", "Messages of the critical path", "count", per("critical_messages")], ["job_critical_held", "Their waits at one link", "time", per("critical_link_ps")],
      ["job_open", "Flows under way now", "count", runs.map((run) => (run.facts.jobs?.flows ? this.open(run).length : undefined))]];
    const names = (column) => [...new Set(runs.map((run) => this.cell(run, column, this.chosen)?.replace("->", "\u2192")).filter((name) => name && runs.some((run) => run.linkOf.has(name))))];
    const buttons = (column) => names(column).map((name) => `<button type="button" class="name" data-name="${escapeText(name)}">${escapeText(name)}</button>`).join(", ");
    const [held, critical] = [buttons("last_link"), buttons("critical_link")];
    place.innerHTML = numberTable(this.app, "Of the group", rows) + (held ? `<p class="note">The last flow was held longest at ${held}${critical ? `, its critical path at ${critical}` : ""}.</p>` : "") +
      (runs.some((run) => run.facts.jobs && !run.facts.jobs.flows) ? '<p class="note">Its flows have no rows, or too many to draw: hosts alone are marked.</p>' : "");
  }

  draw(panel) {
    const row = this.of[panel.run.number].get(this.chosen);
    if (!row) return;
    const { run, pen } = panel, { columns } = run, { inks } = this.app;
    // The links of its hosts, which all of its flows take, and an arc from sender to receiver: their paths between are those of the scheme.
    const open = this.open(run), from = new Set(open.map((at) => columns["job_flow.from"][at])), to = new Set(open.map((at) => columns["job_flow.to"][at]));
    pen.strokeStyle = inks.mark;
    // Of a large group thinner, so that its hosts stay apart.
    const many = row.hosts.size > 64;
    pen.lineWidth = many ? panel.wire : Math.max(2, panel.wire * 1.6);
    pen.beginPath();
    for (const node of from) for (const link of run.out[node]) panel.trace(pen, link);
    for (const node of to) for (const link of run.in[node]) panel.trace(pen, link);
    pen.stroke();
    pen.globalAlpha = Math.max(0.25, Math.min(0.9, 24 / Math.max(1, open.length)));
    pen.lineWidth = 1.6;
    pen.beginPath();
    for (const at of open) this.arc(panel, columns["job_flow.from"][at], columns["job_flow.to"][at]);
    pen.stroke();
    pen.globalAlpha = 1;
    for (const node of row.hosts) panel.ring(node, inks.mark, many ? 1 : 2.4, many ? 0.5 : 3);
  }

  /** A curve above its hosts; the two directions between hosts differ in height, so that both are seen. */
  arc(panel, from, to) {
    const { pen, px, py } = panel, [x0, y0, x1, y1] = [px[from], py[from], px[to], py[to]];
    const height = Math.min(90, 12 + 0.2 * Math.hypot(x1 - x0, y1 - y0)) * (x1 > x0 ? 1 : 0.65);
    const [cx, cy] = panel.run.facts.grouped ? panel.bend(x0, y0, x1, y1) : [(x0 + x1) / 2, Math.min(y0, y1) - height];
    pen.moveTo(x0, y0);
    pen.quadraticCurveTo(cx, cy, x1, y1);
  }
}
