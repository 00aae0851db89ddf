//! Drawings as SVG without texts, and as PNG: with the embedded font alone, the same on every machine.

use super::canvas::escape;
use anabranch_results::ReportError;
use resvg::{
    tiny_skia::{Color, Pixmap, Transform},
    usvg::{Indent, Options, Tree, WriteOptions, fontdb},
};
use std::sync::{Arc, OnceLock};

const REGULAR: &[u8] = include_bytes!("../../fonts/Inter-Regular.otf");
const BOLD: &[u8] = include_bytes!("../../fonts/Inter-SemiBold.otf");

/// PNG pixels per pixel of the drawing.
const SCALE: f32 = 2.0;

fn fonts() -> Arc<fontdb::Database> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let load = || {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(REGULAR.to_vec());
        fonts.load_font_data(BOLD.to_vec());
        fonts.set_sans_serif_family("Inter");
        Arc::new(fonts)
    };
    FONTS.get_or_init(load).clone()
}

/// Converts the texts of a drawing to shapes.
pub(crate) fn shapes(name: &str, svg: &str) -> Result<Tree, ReportError> {
    let options = Options { fontdb: fonts(), font_family: "Inter".to_string(), ..Options::default() };
    Tree::from_str(svg, &options).map_err(|error| ReportError::drawing(name, error))
}

/// Returns an SVG that requires no font.
pub(crate) fn to_svg(shapes: &Tree, title: &str, description: &str) -> String {
    let options = WriteOptions {
        preserve_text: false,
        coordinates_precision: 2,
        transforms_precision: 4,
        indent: Indent::None,
        ..WriteOptions::default()
    };
    let svg = shapes.to_string(&options);
    let words = format!("<title>{}</title><desc>{}</desc>", escape(title), escape(description));
    match svg.find("<svg").and_then(|at| Some(at + svg[at..].find('>')? + 1)) {
        Some(at) => format!("{}{words}{}", &svg[..at], &svg[at..]),
        None => svg,
    }
}

pub(crate) fn to_png(name: &str, shapes: &Tree, description: &str) -> Result<Vec<u8>, ReportError> {
    let wrong = |message: String| ReportError::drawing(name, message);
    let size = shapes.size();
    let (width, height) = ((size.width() * SCALE).ceil() as u32, (size.height() * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| wrong("the drawing has no area".to_string()))?;
    // The last pixel of a row or column may be covered in part.
    pixels.fill(Color::WHITE);
    resvg::render(shapes, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    let mut picture = Vec::new();
    let mut encoder = png::Encoder::new(&mut picture, width, height);
    // Figures have an opaque background, so colours need no division by their alpha. Without it, all pixels would be copied.
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    // Higher compression took half the time of a report; most lines equal the line above.
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Up);
    // 96 dots per inch times the scale.
    let per_metre = (96.0 * SCALE / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit: png::Unit::Meter }));
    let kept = encoder.add_itxt_chunk("Description".to_string(), description.to_string());
    kept.map_err(|error| wrong(error.to_string()))?;
    let mut writer = encoder.write_header().map_err(|error| wrong(error.to_string()))?;
    writer.write_image_data(pixels.data()).map_err(|error| wrong(error.to_string()))?;
    writer.finish().map_err(|error| wrong(error.to_string()))?;
    Ok(picture)
}
