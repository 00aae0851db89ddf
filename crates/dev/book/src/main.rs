//! Writes the generated pages to `docs/`, or with `--expert` the page that only the site has to standard output.

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    if std::env::args().any(|argument| argument == "--expert") {
        print!("{}", anabranch_book::expert_page());
        return Ok(());
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    for page in anabranch_book::pages() {
        let path = docs.join(&page.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        if fs::read_to_string(&path).ok().as_deref() != Some(&page.text) {
            println!("docs/{}", page.path);
            fs::write(path, page.text)?;
        }
    }
    Ok(())
}
