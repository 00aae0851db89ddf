//! Text form of a GOAL schedule: `num_ranks N`, then `rank r { ... }` with a statement per line.
//!
//! Statements may also end with `;`. A `requires` may name a later label of its rank. A `nic` other than 0 has no effect: a host has
//! one NIC.

use super::{
    Source,
    goal_ops::{ANY, Edge, Op, OperationKind, Rank, calc, check_peer, check_ranks},
};
use crate::{WorkloadError, error::hint};
use anabranch_settings::nearest;
use std::{collections::BTreeMap, iter::Peekable};

const OF_A_RANK: [&str; 3] = ["send", "recv", "calc"];

const END: &str = "\n";

#[derive(Clone, Copy)]
struct Token<'t> {
    line: usize,
    text: &'t str,
}

/// Skips comments.
struct Tokens<'t> {
    lines: std::iter::Enumerate<std::str::Lines<'t>>,
    rest: Option<&'t str>,
    line: usize,
    /// Line of an unterminated `/*`.
    open_comment: Option<usize>,
}

impl<'t> Tokens<'t> {
    fn new(text: &'t str) -> Self {
        Tokens { lines: text.lines().enumerate(), rest: None, line: 0, open_comment: None }
    }

    fn cut(&mut self, text: &'t str) -> Option<&'t str> {
        let mut rest = text;
        loop {
            if self.open_comment.is_some() {
                rest = &rest[rest.find("*/")? + 2..];
                self.open_comment = None;
            }
            rest = rest.trim_start();
            let first = *rest.as_bytes().first()?;
            if first == b'#' || rest.starts_with("//") {
                return None;
            }
            if let Some(after) = rest.strip_prefix("/*") {
                (rest, self.open_comment) = (after, Some(self.line));
                continue;
            }
            let ends = |(at, sign): (usize, char)| match sign {
                '{' | '}' | ':' | ';' | '#' => true,
                '/' => matches!(rest.as_bytes().get(at + 1), Some(b'/' | b'*')),
                _ => sign.is_whitespace(),
            };
            let length = match first {
                b'{' | b'}' | b':' | b';' => 1,
                _ => rest.char_indices().find(|&at| ends(at)).map_or(rest.len(), |(at, _)| at),
            };
            let (word, after) = rest.split_at(length);
            self.rest = Some(after);
            return Some(if word == ";" { END } else { word });
        }
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        let rest = match self.rest.take() {
            Some(rest) => rest,
            None => {
                let (number, text) = self.lines.next()?;
                self.line = number + 1;
                text
            }
        };
        let text = self.cut(rest).unwrap_or(END);
        Some(Token { line: self.line, text })
    }
}

/// `a requires b`, or `irequires`.
struct Wait<'t> {
    line: usize,
    waiter: &'t str,
    cause: &'t str,
    of_start: bool,
}

#[derive(Default)]
struct Block<'t> {
    rank: u32,
    line: usize,
    made: Rank,
    labels: BTreeMap<&'t str, (u32, usize)>,
    waits: Vec<Wait<'t>>,
}

impl Block<'_> {
    fn on_nic(&mut self, line: u32, nic: u32) {
        if nic != 0 {
            self.made.other_nic.get_or_insert((line, nic as u8));
        }
    }
}

struct Reader<'a, 't> {
    source: &'a Source<'a>,
    tokens: Peekable<Tokens<'t>>,
    line: usize,
}

pub(super) fn read(source: &Source<'_>) -> Result<Vec<Rank>, WorkloadError> {
    let text = source.text()?.trim_start_matches('\u{feff}');
    if text.contains("/*") {
        let mut tokens = Tokens::new(text);
        tokens.by_ref().for_each(drop);
        if let Some(line) = tokens.open_comment {
            return Err(source.wrong(line, "the comment `/*` has no end `*/`"));
        }
    }
    Reader { source, tokens: Tokens::new(text).peekable(), line: 1 }.schedule()
}

impl<'t> Reader<'_, 't> {
    fn wrong(&self, message: impl Into<String>) -> WorkloadError {
        self.source.wrong(self.line, message)
    }

    fn take(&mut self) -> Option<&'t str> {
        let token = self.tokens.next()?;
        self.line = token.line;
        Some(token.text)
    }

    fn word(&mut self) -> Option<&'t str> {
        match self.tokens.peek()?.text {
            END | "}" => None,
            _ => self.take(),
        }
    }

    fn expect(&mut self, expected: &str) -> Result<&'t str, WorkloadError> {
        self.word().ok_or_else(|| self.wrong(format!("the statement ends, expected {expected}")))
    }

    fn sign(&mut self, sign: &str) -> Result<(), WorkloadError> {
        match self.expect(&format!("`{sign}`"))? {
            found if found == sign => Ok(()),
            found => Err(self.wrong(format!("found `{found}`, expected `{sign}`"))),
        }
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, WorkloadError> {
        let expected = format!("a whole number for `{what}`");
        let found = self.expect(&expected)?;
        let digits = found.bytes().all(|byte| byte.is_ascii_digit());
        match found.parse() {
            Ok(number) if digits => Ok(number),
            _ if digits => Err(self.wrong(format!("{what}: found `{found}`, which is too large"))),
            _ => Err(self.wrong(format!("{what}: found `{found}`, expected a whole number"))),
        }
    }

    fn number_or_any(&mut self, what: &str) -> Result<u32, WorkloadError> {
        if self.tokens.peek().is_some_and(|token| token.text == "-1") {
            self.take();
            return Ok(ANY);
        }
        match self.number(what)? {
            ANY => Err(self.wrong(format!("{what}: found `{ANY}`, which is too large"))),
            number => Ok(number),
        }
    }

    fn schedule(mut self) -> Result<Vec<Rank>, WorkloadError> {
        let mut announced: Option<(usize, u32)> = None;
        let mut blocks: BTreeMap<u32, (usize, Rank)> = BTreeMap::new();
        while let Some(word) = self.take() {
            match (word, announced) {
                (END, _) => {}
                ("num_ranks", None) => {
                    let found = self.number("num_ranks")?;
                    let ranks = check_ranks(found, self.source.hosts).map_err(|message| self.wrong(message))?;
                    announced = Some((self.line, ranks));
                }
                ("num_ranks", Some((before, _))) => {
                    return Err(self.wrong(format!("`num_ranks` was given before, in line {before}")));
                }
                ("rank", None) => return Err(self.wrong("found `rank`, expected `num_ranks N` before it")),
                ("rank", Some((_, ranks))) => {
                    let block = self.block(ranks)?;
                    if let Some((before, _)) = blocks.get(&block.rank) {
                        let message = format!("the rank {} was given before, in line {before}", block.rank);
                        return Err(self.source.wrong(block.line, message));
                    }
                    blocks.insert(block.rank, (block.line, block.made));
                }
                (found, _) => {
                    let near = hint(nearest(found, ["num_ranks", "rank"]));
                    return Err(self.wrong(format!("found `{found}`, expected `num_ranks N` or `rank r {{`{near}")));
                }
            }
        }
        let (line, ranks) = announced.ok_or_else(|| self.source.wrong(1, "the file lacks the line `num_ranks N`"))?;
        if let Some(missing) = (0..ranks).find(|rank| !blocks.contains_key(rank)) {
            let message = format!("`num_ranks {ranks}` is announced, and the rank {missing} does not follow");
            return Err(self.source.wrong(line, message));
        }
        Ok(blocks.into_values().map(|(_, rank)| rank).collect())
    }

    fn block(&mut self, ranks: u32) -> Result<Block<'t>, WorkloadError> {
        let rank = self.number("rank")?;
        if rank >= ranks {
            return Err(self.wrong(format!("rank {rank}: no such rank; ranks are 0 to {}", ranks - 1)));
        }
        let mut block = Block { rank, line: self.line, ..Block::default() };
        while self.tokens.peek().is_some_and(|token| token.text == END) {
            self.take();
        }
        self.sign("{")?;
        loop {
            match self.take() {
                Some(END) => {}
                Some("}") => break,
                Some(word) => self.statement(word, ranks, &mut block)?,
                None => {
                    return Err(self.source.wrong(block.line, format!("the block of rank {rank} has no end `}}`")));
                }
            }
        }
        self.resolve(&mut block)?;
        Ok(block)
    }

    fn statement(&mut self, first: &'t str, ranks: u32, block: &mut Block<'t>) -> Result<(), WorkloadError> {
        let next = self.tokens.peek().map_or(END, |token| token.text);
        match (first, next) {
            (_, ":") => {
                self.take();
                if !first.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                    return Err(
                        self.wrong(format!("label: found `{first}`, expected a word that begins with a letter"))
                    );
                }
                if let Some((_, before)) = block.labels.get(first) {
                    return Err(self.wrong(format!("the label `{first}` was given before, in line {before}")));
                }
                let op = self.expect("send, recv or calc")?;
                block.labels.insert(first, (block.made.ops.len() as u32, self.line));
                self.operation(op, ranks, block)?;
            }
            (_, "requires" | "irequires") => {
                self.take();
                let cause = self.expect("a label")?;
                block.waits.push(Wait { line: self.line, waiter: first, cause, of_start: next == "irequires" });
            }
            _ => self.operation(first, ranks, block)?,
        }
        match self.word() {
            Some(more) => Err(self.wrong(format!("found `{more}`, expected the end of the statement"))),
            None => Ok(()),
        }
    }

    fn operation(&mut self, word: &str, ranks: u32, block: &mut Block<'t>) -> Result<(), WorkloadError> {
        let line = self.line as u32;
        let what = match word {
            "calc" => {
                let ns = self.number("calc")?;
                let [_, cpu, nic] = self.options(false)?;
                block.on_nic(line, nic);
                calc(ns, cpu as u8)
            }
            "send" | "recv" => {
                let bytes = self.bytes(word)?;
                let towards = if word == "send" { "to" } else { "from" };
                self.sign(towards)?;
                let peer = self.number_or_any(towards)?;
                let [tag, _, nic] = self.options(true)?;
                block.on_nic(line, nic);
                Ok(match word {
                    "send" => OperationKind::Send { to: peer, bytes, tag },
                    _ => OperationKind::Receive { from: peer, bytes, tag },
                })
            }
            _ => {
                let near = hint(nearest(word, OF_A_RANK));
                let expected = "send, recv, calc, a label with `:`, `requires` or `irequires`, or `}`";
                return Err(self.wrong(format!("found `{word}`, expected {expected}{near}")));
            }
        };
        let what = what
            .and_then(|what| check_peer(block.rank, ranks, what).map(|()| what))
            .map_err(|message| self.wrong(message))?;
        block.made.ops.push(Op { what, at: line });
        Ok(())
    }

    /// Reads `10b` or `10 b`.
    fn bytes(&mut self, word: &str) -> Result<u64, WorkloadError> {
        let found = self.expect("a size such as `10b`")?;
        let wrong = |this: &Self| {
            Err(this.wrong(format!("{word}: found `{found}`, expected a whole number of bytes such as `10b`")))
        };
        let digits = match found.strip_suffix('b') {
            Some(digits) => digits,
            None if self.tokens.peek().is_some_and(|token| token.text == "b") => {
                self.take();
                found
            }
            None => return wrong(self),
        };
        match digits.parse() {
            Ok(bytes) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(bytes),
            _ => wrong(self),
        }
    }

    /// In any order; each defaults to zero.
    fn options(&mut self, message: bool) -> Result<[u32; 3], WorkloadError> {
        let names: &[&str] = if message { &["tag", "cpu", "nic"] } else { &["cpu", "nic"] };
        let mut values = [None; 3];
        while let Some(word) = self.word() {
            let value = match word {
                "tag" if message => self.number_or_any("tag")?,
                "cpu" | "nic" => u32::from(self.number::<u8>(word)?),
                _ => {
                    let near = hint(nearest(word, names.iter().copied()));
                    return Err(self.wrong(format!("unknown word `{word}`; allowed are {}{near}", names.join(", "))));
                }
            };
            let slot = ["tag", "cpu", "nic"].iter().position(|name| *name == word).unwrap_or_default();
            if values[slot].replace(value).is_some() {
                return Err(self.wrong(format!("`{word}` comes twice")));
            }
        }
        Ok(values.map(Option::unwrap_or_default))
    }

    fn resolve(&self, block: &mut Block<'t>) -> Result<(), WorkloadError> {
        for wait in &block.waits {
            let find = |label: &str| match block.labels.get(label) {
                Some((op, _)) => Ok(*op),
                None => {
                    let near = hint(nearest(label, block.labels.keys().copied()));
                    let message = format!("the rank {} has no label `{label}`{near}", block.rank);
                    Err(self.source.wrong(wait.line, message))
                }
            };
            let (waiter, cause) = (find(wait.waiter)?, find(wait.cause)?);
            block.made.edges.push(Edge { cause, of_start: wait.of_start, waiter });
        }
        Ok(())
    }
}
