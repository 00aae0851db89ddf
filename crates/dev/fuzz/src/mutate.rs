use anabranch_random::Stream;

const MAX_BYTES: usize = 1 << 16;
/// Numbers at the limits of arithmetic.
const NUMBERS: &str = "0 -1 1 255 65536 2147483648 4294967296 9223372036854775807 18446744073709551615 \
                       18446744073709551616 1e308 1e999 nan inf 0.000000000000000001";
const TOKENS: &str = "\n|\r\n|\0|\"|'|[[|]]|[|]|{|}|=|,|;|:|#|..|->|*|kind|auto|true|rank |requires |send |Nodes |\
                      Connections |ps|Gbps|MiB|bdp|\u{202e}|\u{1b}[2J|训练";

/// Mutates an input in one to four places; `other` is another input of the same target.
pub fn mutate(input: &[u8], other: &[u8], draws: &mut Stream) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..1 + draws.below(4) {
        let at = draws.below(bytes.len() as u64 + 1) as usize;
        let end = (at + draws.below(1 + (bytes.len() as u64).min(64)) as usize).min(bytes.len());
        match draws.below(10) {
            0 if at < bytes.len() => bytes[at] ^= 1 << draws.below(8),
            1 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'0'][draws.below(6) as usize],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            4 => bytes.truncate(at),
            5 if !other.is_empty() => {
                let from = draws.below(other.len() as u64) as usize;
                let to = (from + draws.below(256) as usize).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            6 | 7 => {
                let from = bytes[at..].iter().position(u8::is_ascii_digit).map_or(at, |of| at + of);
                let to =
                    bytes[from..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |of| from + of);
                bytes.splice(from..to, one_of(NUMBERS, ' ', draws).bytes());
            }
            8 => drop(bytes.splice(at..at, one_of(TOKENS, '|', draws).bytes())),
            _ => {
                let width = 1 << draws.below(4);
                let number = [0, 1, u64::MAX, u64::MAX / 2, draws.bits()][draws.below(5) as usize].to_be_bytes();
                let end = (at + width).min(bytes.len());
                bytes[at..end].copy_from_slice(&number[..end - at]);
            }
        }
    }
    bytes.truncate(MAX_BYTES);
    bytes
}

fn one_of<'a>(words: &'a str, separator: char, draws: &mut Stream) -> &'a str {
    let count = words.split(separator).count() as u64;
    words.split(separator).nth(draws.below(count) as usize).unwrap_or_default()
}
