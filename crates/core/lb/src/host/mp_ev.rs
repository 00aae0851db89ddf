//! Multi-part entropy values: their encoding, and the permutation round robin that generates them (PRIME §III-D and
//! Alg. 2, specification 5.3).
//!
//! Each part selects an uplink of one tier, part 0 the leaf's. Part 0 runs through a random permutation; after that
//! pass, part 1 advances by one, and so forth. Step j of the Fisher-Yates shuffle (from the last position down) fixes
//! position j permanently, so the shuffle is spread over its pass.
//!
//! Paths are excluded and restored in O(parts); one that returns within its pass is sent in that pass. While every path
//! is included, any U0*U1*... values that start at a multiple of that number are all paths, each once.

use crate::Tag;
use anabranch_random::Stream;

/// Maximum parts of a multi-part entropy value.
pub(crate) const MAX_PARTS: usize = 4;
/// Maximum paths of a flow.
pub(crate) const MAX_PATHS: u32 = 32_000;

/// Encoding of paths: the parts concatenated, part 0 in the low bits, `ceil(log2 U_i)` bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathEncoding {
    sizes: [u16; MAX_PARTS],
    shifts: [u8; MAX_PARTS + 1],
    parts: u8,
    paths: u16,
}

impl PathEncoding {
    /// Creates the encoding of uplinks per tier, leaf first; `None` if there is no choice, or too many parts or paths.
    pub(crate) fn new(uplinks: &[u32]) -> Option<PathEncoding> {
        if uplinks.len() > MAX_PARTS {
            return None;
        }
        let mut shape = PathEncoding { sizes: [1; MAX_PARTS], shifts: [0; MAX_PARTS + 1], parts: 0, paths: 1 };
        let mut paths = 1u64;
        for (i, &size) in uplinks.iter().enumerate() {
            let size = size.max(1);
            paths = paths.saturating_mul(u64::from(size));
            if paths > u64::from(MAX_PATHS) {
                return None;
            }
            shape.sizes[i] = size as u16;
            shape.shifts[i + 1] = shape.shifts[i] + size.next_power_of_two().trailing_zeros() as u8;
            shape.parts += 1;
        }
        shape.paths = paths as u16;
        (paths > 1).then_some(shape)
    }

    pub(crate) fn paths(&self) -> u32 {
        u32::from(self.paths)
    }

    pub(crate) fn parts(&self) -> usize {
        usize::from(self.parts)
    }

    /// Returns the number of values of a part.
    pub(crate) fn size(&self, part: usize) -> u16 {
        self.sizes[part]
    }

    #[inline]
    pub(crate) fn value(&self, path: u16, part: usize) -> u16 {
        self.sizes[..part].iter().fold(path, |path, size| path / size) % self.sizes[part]
    }

    /// Returns the paths with the first `parts` values of `path`, which are those over the link that these values name.
    pub(crate) fn alike(&self, path: u16, parts: usize) -> impl Iterator<Item = u16> + use<> {
        let stride: u16 = self.sizes[..parts.min(self.parts())].iter().product();
        (path % stride..self.paths).step_by(usize::from(stride))
    }

    pub(crate) fn tag(&self, path: u16) -> Tag {
        (0..self.parts()).fold(0, |tag, part| tag | Tag::from(self.value(path, part)) << self.shifts[part])
    }

    /// Returns the path of a tag (index: part 0 + U0 * (part 1 + U1 * ...)), `None` if no path has that tag.
    #[inline]
    pub(crate) fn path(&self, tag: Tag) -> Option<u16> {
        let parts = self.parts as usize;
        let mut path = 0u32;
        for i in (0..parts).rev() {
            let (low, high) = (self.shifts[i], self.shifts[i + 1]);
            let value = tag >> low & ((1u32 << (high - low)) - 1);
            if value >= u32::from(self.sizes[i]) {
                return None;
            }
            path = path * u32::from(self.sizes[i]) + value;
        }
        (tag >> self.shifts[parts] == 0).then_some(path as u16)
    }
}

/// A path and its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    pub path: u16,
    pub tag: Tag,
}

/// Seat s of a permutation holds `value`; value v is in `seat`. Both have the same index to share cache lines.
#[derive(Clone, Copy, Debug)]
struct Seat {
    value: u16,
    seat: u16,
}

/// The seats of one permutation are in four ranges: included and waiting `0..waiting`, included and sent in this pass
/// `waiting..inside`, excluded and not sent `inside..missed`, excluded and sent `missed..`.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    waiting: u16,
    inside: u16,
    missed: u16,
}

/// Alg. 2 of PRIME for one flow.
#[derive(Clone, Debug)]
pub(crate) struct Generator {
    stream: Stream,
    shape: PathEncoding,
    /// Running permutation of part 0, kept outside `groups` meanwhile.
    row: Group,
    /// Its first path.
    first: u16,
    /// The higher parts of the tags of this pass.
    prefix: Tag,
    /// Running permutation per level.
    current: [u16; MAX_PARTS],
    /// Children of all permutations: paths, then the permutations of part 0, then those of part 1 ...
    seats: Box<[Seat]>,
    /// Permutations of part 0 (one per combination of the higher parts), then of part 1, ...; the last is the top.
    groups: Box<[Group]>,
}

impl Generator {
    /// Creates the generator with every path included and none sent. The order is a function of `stream` alone.
    pub(crate) fn new(shape: PathEncoding, stream: Stream) -> Self {
        let (mut seats, mut groups) = (Vec::new(), Vec::new());
        let mut children = shape.paths;
        for &size in &shape.sizes[..shape.parts as usize] {
            seats.extend((0..children).map(|i| Seat { value: i % size, seat: i % size }));
            children /= size;
            groups.extend((0..children).map(|_| Group { waiting: 0, inside: size, missed: size }));
        }
        Generator {
            stream,
            shape,
            row: groups[0],
            first: 0,
            prefix: 0,
            current: [0; MAX_PARTS],
            seats: seats.into(),
            groups: groups.into(),
        }
    }

    pub(crate) fn encoding(&self) -> &PathEncoding {
        &self.shape
    }

    /// Returns the next path in generation order, or `None` if every path is excluded.
    #[inline]
    pub(crate) fn generate(&mut self) -> Option<Pick> {
        if self.row.waiting == 0 && !self.turn() {
            return None;
        }
        let value = draw(&mut self.stream, &mut self.row, &mut self.seats[self.first as usize..]);
        Some(Pick { path: self.first + value, tag: self.prefix | Tag::from(value) })
    }

    /// Includes or excludes a path.
    pub(crate) fn set(&mut self, path: u16, inside: bool) {
        let parts = self.shape.parts as usize;
        let (mut child, mut base) = (path as usize, 0);
        let (mut children, mut groups_below) = (self.shape.paths as usize, 0);
        for level in 0..parts {
            let size = self.shape.sizes[level] as usize;
            let (index, value) = if level + 1 == parts { (0, child) } else { (child / size, child % size) };
            let seats = &mut self.seats[base + index * size..][..size];
            let group = if level == 0 && index == self.current[0] as usize {
                &mut self.row
            } else {
                &mut self.groups[groups_below + index]
            };
            let before = group.inside;
            group.move_to(seats, value, inside);
            if (before == 0) == (group.inside == 0) {
                return;
            }
            base += children;
            children /= size;
            groups_below += children;
            child = index;
        }
    }

    /// Advances the higher parts after a pass of part 0; `false` if no path is included.
    fn turn(&mut self) -> bool {
        let parts = self.shape.parts as usize;
        self.groups[self.current[0] as usize] = self.row;
        // Start of the children and the permutations of each level.
        let (mut bases, mut below, mut children) = ([0; MAX_PARTS], [0; MAX_PARTS], self.shape.paths as usize);
        for level in 1..parts {
            bases[level] = bases[level - 1] + children;
            children /= self.shape.sizes[level - 1] as usize;
            below[level] = below[level - 1] + children;
        }
        let mut level = 1;
        while level < parts && self.groups[below[level] + self.current[level] as usize].waiting == 0 {
            level += 1;
        }
        if level >= parts {
            level = parts - 1;
            let top = &mut self.groups[below[level]];
            top.restart(self.shape.sizes[level]);
            if top.inside == 0 {
                self.row = self.groups[self.current[0] as usize];
                return false;
            }
        }
        while level > 0 {
            let (size, index) = (self.shape.sizes[level] as usize, self.current[level] as usize);
            let first = bases[level] + index * size;
            let value = draw(&mut self.stream, &mut self.groups[below[level] + index], &mut self.seats[first..]);
            let (low, high) = (self.shape.shifts[level], self.shape.shifts[level + 1]);
            let mask = ((1u32 << (high - low)) - 1) << low;
            self.prefix = self.prefix & !mask | Tag::from(value) << low;
            level -= 1;
            let child = index * size + value as usize;
            self.current[level] = child as u16;
            self.groups[below[level] + child].restart(self.shape.sizes[level]);
        }
        self.row = self.groups[self.current[0] as usize];
        self.first = self.current[0] * self.shape.sizes[0];
        true
    }

    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.seats) + size_of_val(&*self.groups)
    }
}

/// One step of Fisher-Yates: fixes the last waiting seat and returns its value.
#[inline]
fn draw(stream: &mut Stream, group: &mut Group, seats: &mut [Seat]) -> u16 {
    let last = group.waiting - 1;
    let other = if last == 0 { 0 } else { stream.below(u64::from(group.waiting)) as u16 };
    group.waiting = last;
    swap(seats, last, other)
}

#[inline]
fn swap(seats: &mut [Seat], a: u16, b: u16) -> u16 {
    let (at_a, at_b) = (seats[a as usize].value, seats[b as usize].value);
    seats[a as usize].value = at_b;
    seats[b as usize].value = at_a;
    seats[at_a as usize].seat = b;
    seats[at_b as usize].seat = a;
    at_b
}

impl Group {
    fn restart(&mut self, size: u16) {
        self.waiting = self.inside;
        self.missed = size;
    }

    /// Moves a value between the ranges by exchanging it with their first or last seats.
    fn move_to(&mut self, seats: &mut [Seat], value: usize, inside: bool) {
        let seat = seats[value].seat;
        if (seat < self.inside) == inside {
            return;
        }
        let mut to = |from: u16, to: u16| {
            swap(seats, from, to);
            to
        };
        if inside && seat < self.missed {
            let seat = to(seat, self.inside);
            to(seat, self.waiting);
            self.inside += 1;
            self.waiting += 1;
        } else if inside {
            let seat = to(seat, self.missed);
            to(seat, self.inside);
            self.missed += 1;
            self.inside += 1;
        } else if seat < self.waiting {
            self.waiting -= 1;
            self.inside -= 1;
            let seat = to(seat, self.waiting);
            to(seat, self.inside);
        } else {
            self.inside -= 1;
            self.missed -= 1;
            let seat = to(seat, self.inside);
            to(seat, self.missed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_concatenated_part_0_low() {
        // 3-tier, 16 ports: two parts of 3 bits. Uplink 5 at the leaf, 6 above: 6 * 8 + 5 = 53 both as tag and path.
        let eight = PathEncoding::new(&[8, 8]).unwrap();
        assert_eq!(eight.path(6 << 3 | 5), Some(53));
        assert_eq!(eight.path(64), None);
        assert_eq!((eight.value(53, 0), eight.value(53, 1), eight.tag(53)), (5, 6, 6 << 3 | 5));
        // 6 uplinks take 3 bits, so tags 6 and 7 name no path, and part 1 starts at bit 3.
        let six = PathEncoding::new(&[6, 3]).unwrap();
        assert_eq!(six.path(5), Some(5));
        assert_eq!(six.path(6), None);
        assert_eq!(six.path(2 << 3 | 4), Some(4 + 6 * 2));
        assert_eq!(six.path(3 << 3), None);
        assert_eq!(six.paths(), 18);
        assert!((0..18).all(|path| six.path(six.tag(path)) == Some(path)));
        // One uplink takes no bit.
        assert_eq!(PathEncoding::new(&[1, 4]).unwrap().path(3), Some(3));
        assert_eq!(PathEncoding::new(&[]), None);
        assert_eq!(PathEncoding::new(&[1]), None);
        assert_eq!(PathEncoding::new(&[64, 64]).map(|s| s.paths()), Some(4096));
        assert_eq!(PathEncoding::new(&[256, 256]), None);
    }

    #[test]
    fn the_shuffle_is_fisher_yates() {
        // The whole shuffle of Alg. 2 with the same draws, then read from the last position down.
        let mut draws = Stream::keyed(5, 5, "t");
        let mut generator = Generator::new(PathEncoding::new(&[8]).unwrap(), draws.clone());
        let mut permutation: Vec<u16> = (0..8).collect();
        for _ in 0..20 {
            for j in (1..8).rev() {
                permutation.swap(j, draws.below(j as u64 + 1) as usize);
            }
            let sent: Vec<u16> = (0..8).map(|_| generator.generate().unwrap().path).collect();
            assert_eq!(sent, permutation.iter().rev().copied().collect::<Vec<_>>());
        }
    }

    #[test]
    fn without_selectable_paths_none_is_generated() {
        for uplinks in [&[3u32][..], &[2, 2], &[2, 3, 2]] {
            let shape = PathEncoding::new(uplinks).unwrap();
            let mut generator = Generator::new(shape, Stream::keyed(1, 1, "t"));
            generator.generate();
            for path in 0..shape.paths() as u16 {
                generator.set(path, false);
            }
            assert_eq!(generator.generate(), None);
            generator.set(1, true);
            for _ in 0..5 {
                assert_eq!(generator.generate().map(|p| p.path), Some(1));
            }
        }
    }
}
