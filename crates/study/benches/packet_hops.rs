//! `cargo bench -p anabranch-study`: packet-hops per second of the full simulator beside the stripped loop.

use anabranch_study::bench::{CASES, measure, median};

fn main() {
    for case in CASES {
        let measured = match measure(case, 1, 5, &|| false) {
            Ok(measured) => measured,
            Err(error) => {
                eprintln!("{}: {error}", case.scenario);
                std::process::exit(1);
            }
        };
        println!(
            "{}: simulator {:.2} M packet-hops/s, stripped loop {:.2} M, ratio {:.2}, {} B per host (medians of 5)",
            measured.scenario,
            median(&measured.simulator) / 1e6,
            median(&measured.stripped) / 1e6,
            measured.ratio(),
            measured.bytes_per_host,
        );
    }
}
