//! Writes the generated pages to `docs/`.

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
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
