//! SVG to PNG, with the embedded font and nothing from the machine, so that a figure looks the same everywhere.

use crate::error::ReportError;
use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree, fontdb},
};
use std::sync::{Arc, OnceLock};

/// Inter, regular.
pub(crate) const REGULAR: &[u8] = include_bytes!("../../fonts/Inter-Regular.otf");
/// Inter, semi-bold.
pub(crate) const BOLD: &[u8] = include_bytes!("../../fonts/Inter-SemiBold.otf");

/// Pixels of the picture per pixel of the drawing.
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

/// Draws `svg`; `description` is kept in the picture.
///
/// # Errors
/// [`ReportError::Drawing`] where the drawing is not valid or has no area.
pub(crate) fn to_png(name: &str, svg: &str, description: &str) -> Result<Vec<u8>, ReportError> {
    let wrong = |message: String| ReportError::drawing(name, message);
    let options = Options { fontdb: fonts(), font_family: "Inter".to_string(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| wrong(error.to_string()))?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE).ceil() as u32, (size.height() * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| wrong("the drawing has no area".to_string()))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    // Figures have an opaque ground, so colours need no division by their alpha.
    let rgb: Vec<u8> = pixels.data().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    let mut picture = Vec::new();
    let mut encoder = png::Encoder::new(&mut picture, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    // 96 dots per inch times the scale.
    let per_metre = (96.0 * SCALE / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit: png::Unit::Meter }));
    let kept = encoder.add_itxt_chunk("Description".to_string(), description.to_string());
    kept.map_err(|error| wrong(error.to_string()))?;
    let mut writer = encoder.write_header().map_err(|error| wrong(error.to_string()))?;
    writer.write_image_data(&rgb).map_err(|error| wrong(error.to_string()))?;
    writer.finish().map_err(|error| wrong(error.to_string()))?;
    Ok(picture)
}
