//! Fuzz targets: every decoder and reader of foreign bytes, as functions that accept any bytes and return.
//!
//! A target panics if an invariant fails. `tests/fuzz/corpus.rs` runs the corpus and mutations of it on stable Rust, `fuzz/` the
//! same targets under libFuzzer (docs/evidence/validation.md has the commands).

mod files;
mod mutate;
mod packets;
mod text;

pub use mutate::mutate;

/// Reader of foreign bytes.
pub type Target = fn(&[u8]);

/// All targets by name, which is also that of their folder in `corpus/`.
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

/// Runs a target by name.
///
/// # Panics
/// If there is no such target, or it finds an invariant broken.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(of, _)| *of == name).unwrap_or_else(|| panic!("no target {name}"));
    target(bytes);
}
