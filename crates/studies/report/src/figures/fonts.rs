//! The embedded fonts as those of a PDF, with the glyphs that a drawing uses.

use super::png::fonts;
use pdf_writer::{
    Filter, Finish, Name, Pdf, Rect, Ref, Str,
    types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap},
};
use resvg::usvg::{fontdb, layout::PositionedGlyph};
use skrifa::{
    FontRef, GlyphId, MetadataProvider,
    instance::{LocationRef, Size},
};
use std::collections::BTreeMap;

const IDENTITY: SystemInfo<'static> = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// Fonts of a drawing in the order of their first use, each with its glyphs and the text that they mean.
#[derive(Debug, Default)]
pub(super) struct PdfFonts {
    used: Vec<(fontdb::ID, BTreeMap<u16, String>)>,
}

impl PdfFonts {
    /// Notes a glyph; returns the number of its font and its id. `None`: its font is none of the embedded ones.
    pub(super) fn glyph(&mut self, glyph: &PositionedGlyph) -> Option<(usize, u16)> {
        let id = u16::try_from(glyph.id.0).ok()?;
        let at = match self.used.iter().position(|(font, _)| *font == glyph.font) {
            Some(at) => at,
            None => {
                fonts().face(glyph.font)?;
                self.used.push((glyph.font, BTreeMap::new()));
                self.used.len() - 1
            }
        };
        self.used[at].1.entry(id).or_insert_with(|| glyph.text.clone());
        Some((at, id))
    }

    /// Advance of a glyph in units of its font's size.
    pub(super) fn advance(&self, font: usize, glyph: u16) -> f32 {
        with_font(self.used[font].0, |font| advance(font, glyph) / 1000.0).unwrap_or(0.0)
    }

    /// Returns the name of a font in the content of a page.
    pub(super) fn name(font: usize) -> String {
        format!("F{font}")
    }

    /// Writes the fonts and returns their references, in their order. `next` is the first free one.
    pub(super) fn write(&self, pdf: &mut Pdf, next: &mut Ref) -> Vec<Ref> {
        self.used.iter().map(|(font, glyphs)| write(pdf, next, *font, glyphs)).collect()
    }
}

fn with_font<T>(id: fontdb::ID, read: impl FnOnce(&FontRef<'_>) -> T) -> Option<T> {
    fonts().with_face_data(id, |data, index| FontRef::from_index(data, index).ok().map(|font| read(&font))).flatten()
}

/// Advance in thousandths of the font's size.
fn advance(font: &FontRef<'_>, glyph: u16) -> f32 {
    let metrics = font.glyph_metrics(Size::new(1000.0), LocationRef::default());
    metrics.advance_width(GlyphId::from(glyph)).unwrap_or(0.0)
}

fn write(pdf: &mut Pdf, next: &mut Ref, id: fontdb::ID, glyphs: &BTreeMap<u16, String>) -> Ref {
    let [font, descendant, descriptor, unicode, file] = [(); 5].map(|()| next.bump());
    let database = fonts();
    let name = database.face(id).map_or("Inter", |face| face.post_script_name.as_str());
    let name = Name(name.as_bytes());
    let described = with_font(id, |font| {
        let metrics = font.metrics(Size::new(1000.0), LocationRef::default());
        let bounds = metrics.bounds.unwrap_or_default();
        let widths: Vec<(u16, f32)> = glyphs.keys().map(|glyph| (*glyph, advance(font, *glyph))).collect();
        (metrics, bounds, widths)
    });
    let Some((metrics, bounds, widths)) = described else { return font };
    pdf.type0_font(font)
        .base_font(name)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(descendant)
        .to_unicode(unicode);
    let mut cid = pdf.cid_font(descendant);
    cid.subtype(CidFontType::Type0).base_font(name).system_info(IDENTITY).font_descriptor(descriptor);
    let mut all = cid.widths();
    for (glyph, width) in widths {
        all.consecutive(glyph, [width]);
    }
    all.finish();
    cid.finish();
    pdf.font_descriptor(descriptor)
        .name(name)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max))
        .italic_angle(metrics.italic_angle)
        .ascent(metrics.ascent)
        .descent(metrics.descent)
        .cap_height(metrics.cap_height.unwrap_or(metrics.ascent))
        .stem_v(80.0)
        .font_file3(file);
    let mut map = UnicodeCmap::new(Name(b"Anabranch"), IDENTITY);
    for (glyph, text) in glyphs.iter().filter(|(_, text)| !text.is_empty()) {
        map.pair_with_multiple(*glyph, text.chars());
    }
    pdf.cmap(unicode, &map.finish());
    let data = database.with_face_data(id, |data, _| super::pdf::compressed(data)).unwrap_or_default();
    let mut stream = pdf.stream(file, &data);
    stream.filter(Filter::FlateDecode).pair(Name(b"Subtype"), Name(b"OpenType"));
    stream.finish();
    font
}
