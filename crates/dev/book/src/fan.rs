//! Pictures of two leaves with four paths between them: packets, their paths, and the state that selects them.

use crate::svg::{FLOWS, Svg};
use serde::Deserialize;

const WIDTH: u32 = 760;
const HEIGHT: u32 = 316;
const LANES: [f64; 4] = [70.0, 128.0, 186.0, 244.0];
const MIDDLE: f64 = 157.0;
/// Position of the last packet sent, and the step to the one before.
const LAST: f64 = 326.0;
const STEP: f64 = 26.0;

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Memory {
    /// A title, and rows of cells: `LABEL :: CELL | CELL`. A cell ends with ` +` where it is good, ` !` bad, ` *` chosen; `_` is
    /// an empty one.
    Cells(Vec<String>),
    /// A title, named values from 0 to 1, and named thresholds.
    Bars { title: String, values: Vec<(String, f64)>, thresholds: Vec<(String, f64)> },
}

/// `sent` lists packets in order: a letter per flow (`P`: a probe), the path, and `!` for a mark on its path; `_` is a pause,
/// `h` a pause that the host has lengthened.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Fan {
    sent: String,
    host: Option<Memory>,
    leaf: Option<Memory>,
    /// Packets that the receiver's leaf holds back.
    held: Option<Memory>,
    /// Packets in the queues of the leaf's ports.
    queues: [u8; 4],
    /// Ports that the leaf samples, and the one it selects.
    sampled: Vec<usize>,
    taken: Option<usize>,
    congested: Vec<usize>,
    labels: [String; 4],
    /// Packets in the reverse direction.
    feedback: String,
}

impl Fan {
    pub(crate) fn draw(&self, title: &str, says: &str) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        for (lane, y) in LANES.iter().enumerate() {
            let congested = self.congested.contains(&lane);
            let class = if congested { "link slow" } else { "link" };
            svg.line(class, "", &[(232.0, MIDDLE), (282.0, *y), (540.0, *y), (588.0, MIDDLE)], false);
            let label = if self.labels[lane].is_empty() { format!("path {lane}") } else { self.labels[lane].clone() };
            svg.text("s", "start", (290.0, y - 17.0), &label);
            if congested {
                svg.text("s", "end", (536.0, y - 17.0), "congested");
            }
            self.queue(&mut svg, lane, *y);
        }
        svg.line("link", "", &[(84.0, MIDDLE), (180.0, MIDDLE)], false);
        svg.line("link", "", &[(640.0, MIDDLE), (700.0, MIDDLE)], false);
        for (x, width, name) in
            [(20.0, 64.0, "sender"), (180.0, 52.0, "leaf"), (588.0, 52.0, "leaf"), (690.0, 62.0, "receiver")]
        {
            svg.rect("box", (x, MIDDLE - 18.0), (width, 36.0));
            svg.text("b", "middle", (x + width / 2.0, MIDDLE + 4.0), name);
        }
        self.packets(&mut svg);
        if !self.feedback.is_empty() {
            svg.line("back", "", &[(720.0, MIDDLE - 18.0), (720.0, 30.0), (272.0, 30.0)], true);
            svg.text("s", "end", (714.0, 24.0), &self.feedback);
        }
        for (memory, at) in [(&self.host, (20.0, 20.0)), (&self.leaf, (20.0, 226.0)), (&self.held, (596.0, 226.0))] {
            if let Some(memory) = memory {
                memory.draw(&mut svg, at);
            }
        }
        svg.finish(title, says)
    }

    fn queue(&self, svg: &mut Svg, lane: usize, y: f64) {
        if self.queues.iter().all(|waiting| *waiting == 0) {
            return;
        }
        let is_sampled = self.sampled.contains(&lane);
        let class = if self.taken == Some(lane) { "pick" } else { "cell" };
        svg.rect(class, (238.0, y - 9.0), (44.0, 18.0));
        for waiting in 0..self.queues[lane] {
            svg.filled("#8793a0", (273.0 - 8.0 * f64::from(waiting), y - 6.0), (6.0, 12.0));
        }
        if is_sampled {
            svg.text("s", "end", (234.0, y + 4.0), "looks");
        }
    }

    fn packets(&self, svg: &mut Svg) {
        let words: Vec<&str> = self.sent.split_whitespace().collect();
        let mut counts = [0; 5];
        for (index, word) in words.iter().enumerate() {
            let x = LAST + STEP * (words.len() - 1 - index) as f64;
            let mut letters = word.chars();
            let flow = match letters.next() {
                Some('_') => {
                    pause(svg, x, "pause");
                    continue;
                }
                Some('h') => {
                    pause(svg, x, "held");
                    continue;
                }
                Some('P') => 4,
                Some(letter) => (letter as usize - 'A' as usize).min(3),
                None => continue,
            };
            let lane = letters.next().and_then(|c| c.to_digit(10)).unwrap_or(0) as usize;
            counts[flow] += 1;
            let at = (x - 11.0, LANES[lane] - 9.0);
            svg.filled(FLOWS[flow], at, (22.0, 18.0));
            if word.ends_with('!') {
                svg.rect("mark", (at.0 - 2.0, at.1 - 2.0), (26.0, 22.0));
            }
            let name =
                if flow == 4 { "P".to_string() } else { format!("{}{}", ["A", "B", "C", "D"][flow], counts[flow]) };
            svg.text("n", "middle", (x, LANES[lane] + 4.0), &name);
        }
    }
}

fn pause(svg: &mut Svg, x: f64, what: &str) {
    svg.line("back", "", &[(x, 50.0), (x, 262.0)], false);
    svg.text("s", "middle", (x, 274.0), what);
}

impl Memory {
    fn draw(&self, svg: &mut Svg, at: (f64, f64)) {
        let (x, y) = at;
        match self {
            Memory::Cells(lines) => {
                let Some((title, rows)) = lines.split_first() else { return };
                svg.text("s b", "start", (x, y), title);
                for (row, line) in rows.iter().enumerate() {
                    let (label, cells) = line.split_once(" :: ").unwrap_or(("", line));
                    let y = y + 8.0 + 27.0 * row as f64;
                    let mut left = x;
                    if !label.is_empty() {
                        svg.text("s", "start", (left, y + 15.0), label);
                        left += 8.0 + 6.6 * label.chars().count() as f64;
                    }
                    for cell in cells.split(" | ") {
                        let marks = [(" +", "good"), (" !", "bad"), (" *", "pick")];
                        let marked = marks.iter().find_map(|(end, class)| Some((cell.strip_suffix(end)?, *class)));
                        let (text, class) = marked.unwrap_or((cell, "cell"));
                        let text = if text == "_" { " " } else { text };
                        let width = (8.0 + 7.0 * text.chars().count() as f64).max(22.0);
                        svg.rect(class, (left, y), (width, 21.0));
                        svg.text("s", "middle", (left + width / 2.0, y + 15.0), text);
                        left += width + 4.0;
                    }
                }
            }
            Memory::Bars { title, values, thresholds } => {
                const HEIGHT: f64 = 54.0;
                svg.text("s b", "start", (x, y), title);
                let floor = y + 12.0 + HEIGHT;
                for (i, (name, value)) in values.iter().enumerate() {
                    let left = x + 4.0 + 30.0 * i as f64;
                    svg.filled("#8793a0", (left, floor - HEIGHT * value), (22.0, HEIGHT * value));
                    svg.text("s", "middle", (left + 11.0, floor + 12.0), name);
                }
                let right = x + 30.0 * values.len() as f64;
                for (name, value) in thresholds {
                    let height = floor - HEIGHT * value;
                    svg.line("red", "", &[(x, height), (right, height)], false);
                    svg.text("s", "start", (right + 4.0, height + 4.0), name);
                }
            }
        }
    }
}
