// The blocks of data: read once, kept as typed arrays.

async function readBlock(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function readColumns(bytes) {
  const view = new DataView(bytes.buffer);
  const headEnd = 4 + view.getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(bytes.subarray(4, headEnd)));
  const columns = {};
  let at = headEnd;
  for (const column of facts.columns) {
    const part = bytes.subarray(at, at + column.bytes);
    columns[column.name] = READERS[column.kind](part, column, facts);
    at += column.bytes;
  }
  return { facts, columns };
}

const READERS = {
  text: (part) => new TextDecoder().decode(part).split("\n"),
  real: (part) => new Float64Array(part.slice().buffer),
  near: (part) => new Float32Array(part.slice().buffer),
  whole: (part, column) => {
    const values = new Float64Array(column.rows);
    leb128(part, (value, row) => { values[row] = value; });
    return values;
  },
  // Columns that count from the start of the run are kept as what was added since the sample before.
  steps: (part, column, facts) => {
    const counts = facts.series.counts.includes(column.name.slice("series.".length));
    const values = new Float64Array(column.rows);
    let before = 0, most = 0;
    leb128(part, (value, row) => {
      const step = value % 2 ? -(value + 1) / 2 : value / 2;
      const first = row % column.period === 0;
      if (counts) values[row] = first ? 0 : step;
      else values[row] = before = (first ? 0 : before) + step;
      if (values[row] > most) most = values[row];
    });
    return most < 2 ** 32 ? Uint32Array.from(values) : values;
  },
};

/** Calls `each(value, row)` for the LEB128 numbers of `part`; numbers above 2^31 need more than shifts. */
function leb128(part, each) {
  let row = 0;
  for (let at = 0; at < part.length; row++) {
    let byte = part[at++], value = byte & 0x7f, factor = 128;
    while (byte >= 0x80) {
      byte = part[at++];
      value += (byte & 0x7f) * factor;
      factor *= 128;
    }
    each(value, row);
  }
}

/** A run as the page uses it. */
class Run {
  constructor({ facts, columns }, number) {
    this.number = number;
    this.facts = facts;
    this.columns = columns;
    this.name = `${facts.scheme}, seed ${facts.seed}`;
    this.links = facts.links;
    this.from = Uint32Array.from(columns["link.from"]);
    this.to = Uint32Array.from(columns["link.to"]);
    this.linkClass = Uint8Array.from(columns["link.class"]);
    this.directions = columns["link.direction"];
    this.rate = columns["link.rate_bps"] || new Float64Array(this.links);
    this.names = columns["node.name"];
    this.heights = columns["node.height"];
    this.groups = columns["node.group"];
    this.x = columns["node.x"];
    this.y = columns["node.y"];
    this.nodeOf = new Map(this.names.map((name, node) => [name, node]));
    this.out = this.names.map(() => []);
    this.in = this.names.map(() => []);
    for (let link = 0; link < this.links; link++) {
      this.out[this.from[link]].push(link);
      this.in[this.to[link]].push(link);
    }
    this.linkNames = [];
    for (let link = 0; link < this.links; link++) {
      const number = columns["link.parallel"][link];
      this.linkNames.push(`${this.names[this.from[link]]}\u2192${this.names[this.to[link]]}${number ? `#${number}` : ""}`);
    }
    this.linkOf = new Map(this.linkNames.map((name, link) => [name, link]));
    this.series = facts.series || null;
    // Per link its stretch of the series, -1 where it has none.
    this.stretch = new Int32Array(this.links).fill(-1);
    if (this.series) columns["series.link"].forEach((link, stretch) => { this.stretch[link] = stretch; });
    this.readFaults();
    this.readServers();
  }

  /** Per node of a NIC its server and its GPUs; per server its nodes. */
  readServers() {
    this.serverOf = new Map();
    this.gpusOf = new Map();
    this.nodesOf = new Map();
    if (!this.facts.servers) return;
    const { columns } = this;
    columns["gpu.node"].forEach((node, row) => {
      const server = columns["gpu.server"][row];
      this.serverOf.set(node, server);
      this.gpusOf.set(node, [...(this.gpusOf.get(node) || []), columns["gpu.number"][row]]);
      if (!this.nodesOf.has(server)) this.nodesOf.set(server, new Set());
      this.nodesOf.get(server).add(node);
    });
  }

  /** The NICs of the server that a node is a NIC of. */
  serverNodes(node) { return this.nodesOf.get(this.serverOf.get(node)) || []; }

  readFaults() {
    this.faults = this.facts.faults;
    // Per link what struck it, in the order of time.
    this.faultsOf = new Map();
    for (const fault of this.faults) {
      for (const link of fault.links) {
        if (!this.faultsOf.has(link)) this.faultsOf.set(link, []);
        this.faultsOf.get(link).push(fault);
      }
    }
  }

  /** What holds for a link at a time: "down", "100Gbps", "loses 1 % of packets"; "" where it is well. */
  faultAt(link, time) {
    let state = "";
    for (const fault of this.faultsOf.get(link) || []) {
      if (fault.at_ps > time) break;
      state = fault.what === "up" ? "" : fault.what;
    }
    return state;
  }

  /** Number of the last sample at or before a time. */
  sampleAt(time) {
    const { start_ps, interval_ps, samples } = this.series;
    if (!interval_ps) return 0;
    return Math.max(0, Math.min(samples - 1, Math.floor((time - start_ps) / interval_ps + 1e-9)));
  }

  get end() {
    const series = this.series ? this.series.start_ps + this.series.interval_ps * (this.series.samples - 1) : 0;
    const faults = this.faults.length ? this.faults[this.faults.length - 1].at_ps : 0;
    return Math.max(series, this.facts.simulated_ps, Math.min(faults, this.facts.simulated_ps));
  }
}
