//! Tests of `anabranch-collective`: one program, with a module for each subject. Each rank is this program, restarted with
//! `rank`, which writes to standard output: the standard harness would write there too.

mod common;
#[path = "../../../wire/tests/wire/fake/mod.rs"]
mod fake;

mod loopback;
mod suite;
mod verbs;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rank", "own-mtu"] => {
            let mtu = format!("{}B", 1000 + std::process::id() % 1000);
            // This process has no other thread yet.
            #[allow(unsafe_code)]
            // SAFETY: no other thread reads variables at the same time.
            unsafe {
                std::env::set_var("ANABRANCH_MTU", mtu);
            }
            common::serve();
        }
        ["rank", ..] => common::serve(),
        ["case", order] => anabranch_collective::suite::serve(order),
        ["connect", hex] => verbs::connect(hex),
        ["load"] => verbs::load(),
        _ => common::harness(&arguments, &[loopback::TESTS, suite::TESTS, verbs::TESTS].concat()),
    }
}
