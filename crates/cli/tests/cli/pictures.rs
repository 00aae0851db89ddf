//! Pictures of README and the book are what the program draws. `ANABRANCH_RECORD=1` writes them.

use crate::common::Folder;
use std::{env, fs, path::Path, process::Command};

struct Picture {
    size: (u32, u32),
    bytes: Vec<u8>,
}

fn read(path: &Path) -> Picture {
    let file = std::io::BufReader::new(fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    Picture { size: (info.width, info.height), bytes }
}

/// Compares pixels, since metadata names the commit: at most this share may differ in colour by more than a rounding.
fn is_drawn(name: &str, drawn: &Path, most: f64) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(name);
    if env::var_os("ANABRANCH_RECORD").is_some() {
        fs::copy(drawn, &kept).unwrap();
    }
    let (kept, drawn) = (read(&kept), read(drawn));
    let differ = kept.bytes.iter().zip(&drawn.bytes).filter(|(a, b)| a.abs_diff(**b) > 2).count();
    let share = differ as f64 / drawn.bytes.len() as f64;
    assert!(
        kept.size == drawn.size && share <= most,
        "docs/images/{name} is stale ({share}): run this test with ANABRANCH_RECORD=1"
    );
}

/// The figure of README, by README's command.
#[test]
fn figure_of_the_first_run() {
    let folder = Folder::new("picture-first-run");
    folder.ok("compare first-run --out results");
    is_drawn("first-run.png", &folder.0.join("results/figures/slowdown_cdf.png"), 0.0);
}

/// The fabric view in a browser, whose letters differ from version to version.
#[test]
#[ignore = "needs chromium"]
fn fabric_view_of_readme() {
    let folder = Folder::new("picture-view");
    folder.ok("compare web-search-128 --schemes ecmp,prime --seeds 1 --out results");
    folder.ok("view results --record --out view.html");
    let shot = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,800"])
        .args(["--virtual-time-budget=4000", "--screenshot=view.png", "view.html"])
        .current_dir(&folder.0)
        .output()
        .unwrap();
    assert!(shot.status.success(), "{}", String::from_utf8_lossy(&shot.stderr));
    is_drawn("fabric-view.png", &folder.0.join("view.png"), 0.1);
}
