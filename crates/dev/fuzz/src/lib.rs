//! Fuzz targets: every decoder and reader of foreign bytes, as functions that take any bytes and must return.
//!
//! A target panics where an invariant of ours fails; errors for people are what is expected of most bytes. `tests/corpus.rs` runs
//! the corpus and mutations of it on stable Rust, `fuzz/` the same targets under libFuzzer (docs/evidence/validation.md has the commands).

mod files;
mod mutate;
mod packets;
mod text;

pub use mutate::mutate;

/// What reads foreign bytes.
pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its folder in `corpus/`.
pub const TARGETS: &[(&str, Target)] = &[
    ("header", packets::header),
    ("endpoint", packets::endpoint),
    ("transfer", packets::transfer),
    ("verbs_frame", packets::verbs_frame),
    ("nccl_handle", packets::nccl_handle),
    ("nccl_message", packets::nccl_message),
    ("statistics_page", packets::statistics_page),
    ("scenario", text::scenario),
    ("assignment", text::assignment),
    ("units", text::units),
    ("claims", text::claims),
    ("size_distribution", text::size_distribution),
    ("flow_csv", text::flow_csv),
    ("flow_conweave", text::flow_conweave),
    ("flow_htsim_cm", text::flow_htsim_cm),
    ("flow_goal", text::flow_goal),
    ("topology", text::topology),
    ("sweep_file", files::sweep_file),
    ("result_json", files::result_json),
    ("table_csv", files::table_csv),
    ("table_parquet", files::table_parquet),
];

/// Runs the target of this name.
///
/// # Panics
/// Where there is none, or the target finds an invariant broken.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(of, _)| *of == name).unwrap_or_else(|| panic!("no target {name}"));
    target(bytes);
}
