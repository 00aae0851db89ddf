// What links are coloured by, and how numbers are written.

const SI = ["", "k", "M", "G", "T", "P"];

function scaled(value, unit, digits = 3) {
  if (!Number.isFinite(value)) return "\u2013";
  let step = 0;
  while (Math.abs(value) >= 999.5 && step < SI.length - 1) { value /= 1000; step++; }
  const text = value === 0 ? "0" : String(Number(value.toPrecision(digits)));
  return `${text} ${SI[step]}${unit}`.trim();
}

const FORMATS = {
  percent: (value) => (Number.isFinite(value) ? `${(100 * value).toFixed(1)} %` : "\u2013"),
  bytes: (value) => scaled(value, "B"),
  rate: (value) => scaled(value, "b/s"),
  count: (value) => (Number.isFinite(value) ? Math.round(value).toLocaleString("en") : "\u2013"),
  time: (value) => (Number.isFinite(value) ? timeText(value) : "\u2013"),
  real: (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : "\u2013"),
};

function timeText(ps, digits = 4) {
  const [factor, unit] = ps >= 1e12 ? [1e12, "s"] : ps >= 1e9 ? [1e9, "ms"] : ps >= 1e6 || ps === 0 ? [1e6, "\u00b5s"] : [1e3, "ns"];
  return `${Number((ps / factor).toPrecision(digits))} ${unit}`;
}

/** Counts and states that rows of series may have, with words for people; others are shown under their own name. */
const SERIES_WORDS = {
  queue_bytes: ["Queue", "bytes"],
  queue_packets: ["Queue in packets", "count"],
  sent_packets: ["Packets sent", "count"],
  ecn_marks: ["ECN marks", "count"],
  trims: ["Trims", "count"],
  drops: ["Drops", "count"],
  pauses: ["PFC pauses", "count"],
  paused: ["Paused classes", "count"],
};

const TOTALS = [
  ["utilisation", "Utilisation", "percent"],
  ["window_utilisation", "Utilisation while flows start", "percent"],
  ["queue_mean_bytes", "Queue, mean", "bytes"],
  ["queue_p99_bytes", "Queue, 99th percentile", "bytes"],
  ["queue_max_bytes", "Queue, most", "bytes"],
  ["ecn_marks", "ECN marks", "count"],
  ["trims", "Trims", "count"],
  ["drops", "Drops", "count"],
  ["pauses", "PFC pauses", "count"],
];

/** Share of a link's rate that it used in the interval before a sample. */
function loadAt(run, link, sample) {
  const stretch = run.stretch[link];
  if (stretch < 0) return NaN;
  const { samples, interval_ps } = run.series;
  return (run.columns["series.sent_bytes"][stretch * samples + sample] * 8e12) / (run.rate[link] * interval_ps);
}

function seriesAt(run, column, link, sample) {
  const stretch = run.stretch[link];
  const cells = run.columns[`series.${column}`];
  return stretch < 0 || !cells ? NaN : cells[stretch * run.series.samples + sample];
}

/** Bytes of each link over the mean of its tier and direction. */
function evenSplit(run) {
  const bytes = run.columns["link.bytes"] || new Float64Array(run.links);
  const group = (link) => `${run.linkClass[link]} ${run.directions[link]}`;
  const sums = new Map();
  for (let link = 0; link < run.links; link++) {
    const [sum, links] = sums.get(group(link)) || [0, 0];
    sums.set(group(link), [sum + bytes[link], links + 1]);
  }
  return Float64Array.from(bytes, (sent, link) => { const [sum, links] = sums.get(group(link)); return sum > 0 ? (sent * links) / sum : 0; });
}

/** The measures that the rows of the runs allow. */
function measuresOf(runs) {
  const measures = [];
  const recorded = runs.filter((run) => run.series && run.series.samples > 0);
  const columns = recorded.length ? recorded[0].series.columns.filter((name) => recorded.every((run) => run.series.columns.includes(name))) : [];
  if (columns.includes("sent_bytes")) {
    measures.push({ id: "load", label: "Load", over: true, format: "percent", most: 1, sum: "mean", value: loadAt,
      note: "share of the rate used since the sample before" });
  }
  for (const column of columns) {
    if (column === "sent_bytes") continue;
    const [label, format] = SERIES_WORDS[column] || [column.replaceAll("_", " "), "count"];
    let most = 0;
    for (const run of recorded) for (const value of run.columns[`series.${column}`]) if (value > most) most = value;
    const counts = recorded[0].series.counts.includes(column);
    measures.push({ id: column, label, over: true, format, most, sum: "total", value: (run, link, sample) => seriesAt(run, column, link, sample),
      note: counts ? "since the sample before" : "at the sample" });
  }
  const several = runs.length > 1, common = Math.max(...runs.map((run) => run.facts.simulated_ps));
  if (several) {
    for (const run of runs) run.evenSplit = evenSplit(run);
    const most = Math.max(...runs.map((run) => d3.max(run.evenSplit)));
    measures.push({ id: "total.even_split", label: "Bytes over even split", over: false, format: "real", most, sum: "mean",
      value: (run, link) => run.evenSplit[link], note: "1: every link of a tier and direction carries the same" });
  }
  for (const [column, label, format] of TOTALS) {
    // A percentile over time is of a run of its own length.
    if (several && column === "queue_p99_bytes") continue;
    // Runs of different lengths compare over the longest.
    const scaled = several && (column === "utilisation" || column === "queue_mean_bytes");
    const part = (run) => (scaled ? run.facts.simulated_ps / common : 1);
    const cells = runs.map((run) => run.columns[`link.${column}`]);
    if (cells.some((cells) => !cells || cells.every(Number.isNaN))) continue;
    let most = 0;
    runs.forEach((run, at) => { for (const value of cells[at]) if (value * part(run) > most) most = value * part(run); });
    if (format === "percent") {
      if (most === 0) continue;
      most = 1;
    }
    measures.push({ id: `total.${column}`, label, over: false, format, most, sum: "mean", value: (run, link) => run.columns[`link.${column}`][link] * part(run),
      note: column === "window_utilisation" ? "while flows start" : scaled ? `over 0 to ${timeText(common)}, the longest run` : "over the whole run" });
  }
  // Shares are seen on a straight scale; of queues and counts the small ones matter too.
  for (const measure of measures) measure.power = measure.format === "percent" ? 1 : 0.5;
  return measures;
}

const RAMPS = {
  light: ["#dfe3e9", "#f2cf73", "#e8813f", "#c2254f", "#4d0f52"],
  dark: ["#2c333d", "#5b2a75", "#b8356f", "#f3834f", "#fdeb9a"],
};
const LEVELS = 40;

function coloursOf(theme) {
  const ramp = d3.interpolateRgbBasis(RAMPS[theme]);
  return d3.range(LEVELS).map((level) => ramp(level / (LEVELS - 1)));
}

function levelOf(measure, value) {
  if (!(value > 0) || measure.most === 0) return 0;
  const share = Math.min(1, value / measure.most);
  return Math.max(1, Math.round(Math.pow(share, measure.power) * (LEVELS - 1)));
}

/** Per sample the mean or sum over links between switches (all recorded ones where there are none). */
function overTime(run, measure) {
  run.sums ??= new Map();
  if (run.sums.has(measure.id)) return run.sums.get(measure.id);
  const { samples } = run.series;
  const recorded = d3.range(run.links).filter((link) => run.stretch[link] >= 0);
  const between = recorded.filter((link) => run.heights[run.from[link]] > 0 && run.heights[run.to[link]] > 0);
  const links = between.length ? between : recorded;
  const sums = new Float64Array(samples);
  for (const link of links) for (let sample = 0; sample < samples; sample++) sums[sample] += measure.value(run, link, sample);
  if (measure.sum === "mean" && links.length) for (let sample = 0; sample < samples; sample++) sums[sample] /= links.length;
  const found = { sums, words: `${measure.sum === "mean" ? "mean" : "sum"} over ${links.length.toLocaleString("en")} links${between.length ? " between switches" : ""}` };
  run.sums.set(measure.id, found);
  return found;
}
