//! Generated pages of the book: a page per scheme with a picture of its mechanism, and the reference of scenario keys.
//! `cargo run --profile fast -p anabranch-book` writes them to `docs/`, and with `-- --expert` the page of further keys to
//! standard output, for the site.

mod contents;
mod fan;
mod groups;
mod pages;
mod pictures;
mod svg;

pub use pages::{Page, expert_page, pages};
pub use pictures::{Side, picture};

/// The Rust blocks of the repository's pages, compiled and run as doctests (`build.rs`).
#[cfg(doctest)]
mod blocks {
    include!(concat!(env!("OUT_DIR"), "/pages.rs"));
}
