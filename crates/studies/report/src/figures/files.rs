use super::{
    Caption, Figure, Layout,
    layout::PAGE,
    pdf::to_pdf,
    png::{shapes, to_png, to_svg},
};
use anabranch_results::{FileEntry, ReportError, Staging};
use base64::{Engine, prelude::BASE64_STANDARD};

/// The embedded fonts as browsers read them.
pub(crate) const REGULAR: &[u8] = include_bytes!("../../fonts/Inter-Regular.woff2");
pub(crate) const BOLD: &[u8] = include_bytes!("../../fonts/Inter-SemiBold.woff2");

#[derive(Debug)]
pub(crate) struct FigureFiles {
    pub(crate) svg: String,
    pub(crate) pdf: Vec<u8>,
    pub(crate) png: Vec<u8>,
    pub(crate) csv: String,
}

impl FigureFiles {
    pub(crate) fn stage(figure: &Figure, provenance: &str, staging: &mut Staging) -> Result<Self, ReportError> {
        let name = &figure.file;
        let shapes = shapes(name, &figure.svg)?;
        let contents = FigureFiles {
            svg: to_svg(&shapes, &figure.title, provenance),
            pdf: to_pdf(&shapes, &figure.title, provenance),
            png: to_png(name, &shapes, provenance)?,
            csv: figure.to_csv(),
        };
        staging.write_all(&figure.path(&PAGE, "svg"), &contents.svg)?;
        staging.write_all(&figure.path(&PAGE, "pdf"), &contents.pdf)?;
        staging.write_all(&figure.path(&PAGE, "png"), &contents.png)?;
        staging.write_all(&figure.path(&PAGE, "csv"), &contents.csv)?;
        Ok(contents)
    }
}

/// Stages the files of figures that were drawn with `layout`, and returns their entries.
pub(crate) fn stage_style(
    figures: &[Figure],
    layout: &Layout,
    caption: &Caption,
    provenance: &str,
    staging: &mut Staging,
) -> Result<Vec<FileEntry>, ReportError> {
    for figure in figures {
        let tree = shapes(&figure.file, &figure.svg)?;
        for extension in layout.extensions {
            let content: Vec<u8> = match *extension {
                "svg" => with_fonts(&figure.svg).into_bytes(),
                "pdf" => to_pdf(&tree, &figure.title, provenance),
                "png" => to_png(&figure.file, &tree, provenance)?,
                _ => caption.file(figure, layout).into_bytes(),
            };
            staging.write_all(&figure.path(layout, extension), content)?;
        }
    }
    Ok(figures.iter().flat_map(|figure| figure.entries(layout)).collect())
}

/// Embeds the fonts in a drawing whose texts are text.
fn with_fonts(svg: &str) -> String {
    let face = |weight: u32, font: &[u8]| {
        let font = BASE64_STANDARD.encode(font);
        format!(
            "@font-face{{font-family:Inter;font-weight:{weight};src:url(data:font/woff2;base64,{font}) format(\"woff2\")}}"
        )
    };
    let style = format!("<style>{}{}</style>\n", face(400, REGULAR), face(600, BOLD));
    svg.replacen("<desc>", &format!("{style}<desc>"), 1)
}
