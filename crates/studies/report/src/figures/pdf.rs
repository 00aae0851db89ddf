//! Drawings as PDF vector graphics. Texts are shapes, which require no font, or text in embedded fonts.

use super::fonts::PdfFonts;
use pdf_writer::{
    Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr,
    types::{LineCapStyle, LineJoinStyle},
};
use resvg::{
    tiny_skia::{PathSegment, Transform},
    usvg::{FillRule, Group, LineCap, LineJoin, Node, Paint, Path, Text, Tree, layout::PositionedGlyph},
};
use std::{collections::BTreeMap, io::Write};

/// PDF points per pixel of a drawing.
const POINTS: f32 = 0.75;

/// Form of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    Shapes,
    /// Text that can be searched, copied and edited.
    Text,
}

pub(crate) fn to_pdf(tree: &Tree, letters: Letters, title: &str, description: &str) -> Vec<u8> {
    let [catalog, pages, page, contents, info] = [1, 2, 3, 4, 5].map(Ref::new);
    let (width, height) = (tree.size().width() * POINTS, tree.size().height() * POINTS);
    let mut drawing =
        Drawing { content: Content::new(), letters, opacities: BTreeMap::new(), fonts: PdfFonts::default() };
    // The y axis of a drawing points down, that of a page up.
    drawing.content.transform([POINTS, 0.0, 0.0, -POINTS, 0.0, height]);
    drawing.group(tree.root());
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let mut next = Ref::new(6);
    let fonts = drawing.fonts.write(&mut pdf, &mut next);
    let states: Vec<(u8, Ref)> = drawing.opacities.keys().map(|opacity| (*opacity, next.bump())).collect();
    let mut sheet = pdf.page(page);
    sheet.media_box(Rect::new(0.0, 0.0, width, height)).parent(pages).contents(contents);
    let mut resources = sheet.resources();
    let mut names = resources.ext_g_states();
    for (opacity, reference) in &states {
        names.pair(Name(state(*opacity).as_bytes()), reference);
    }
    names.finish();
    if !fonts.is_empty() {
        let mut named = resources.fonts();
        for (number, reference) in fonts.iter().enumerate() {
            named.pair(Name(PdfFonts::name(number).as_bytes()), reference);
        }
        named.finish();
    }
    resources.finish();
    sheet.finish();
    for (opacity, reference) in states {
        let share = f32::from(opacity) / 255.0;
        pdf.ext_graphics(reference).non_stroking_alpha(share).stroking_alpha(share);
    }
    pdf.stream(contents, &compressed(&drawing.content.finish())).filter(Filter::FlateDecode);
    pdf.document_info(info).title(TextStr(title)).subject(TextStr(description)).creator(TextStr("Anabranch"));
    pdf.finish()
}

pub(super) fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

fn state(opacity: u8) -> String {
    format!("a{opacity}")
}

struct Drawing {
    content: Content,
    letters: Letters,
    opacities: BTreeMap<u8, ()>,
    fonts: PdfFonts,
}

impl Drawing {
    fn group(&mut self, group: &Group) {
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group),
                Node::Path(path) if path.is_visible() => self.path(path),
                Node::Text(text) => match self.letters {
                    Letters::Shapes => self.group(text.flattened()),
                    Letters::Text => self.text(text),
                },
                Node::Path(_) | Node::Image(_) => {}
            }
        }
    }

    fn text(&mut self, text: &Text) {
        for span in text.layouted().iter().filter(|span| span.visible) {
            let Some(fill) = &span.fill else { continue };
            let Some(colour) = colour(fill.paint()) else { continue };
            self.content.save_state();
            self.opacity(fill.opacity().get());
            self.content.set_fill_rgb(colour[0], colour[1], colour[2]).begin_text();
            for run in span.positioned_glyphs.chunk_by(|a, b| a.font == b.font) {
                self.glyphs(run, text.abs_transform());
            }
            self.content.end_text().restore_state();
        }
    }

    /// Shows glyphs of one font on one line, at the places that the layout gave them.
    fn glyphs(&mut self, run: &[PositionedGlyph], absolute: Transform) {
        let Some(first) = run.first() else { return };
        // Text space is that of a font of size 1, whose outlines have the y axis up.
        let place = |glyph: &PositionedGlyph| {
            let (size, t) = (glyph.font_size(), glyph.transform());
            absolute.pre_concat(Transform::from_row(size, 0.0, 0.0, -size, t.tx, t.ty))
        };
        let origin = place(first);
        let Some(back) = origin.invert() else { return };
        let glyphs: Vec<(usize, u16, f32)> = run
            .iter()
            .filter_map(|glyph| {
                let (font, id) = self.fonts.glyph(glyph)?;
                Some((font, id, back.pre_concat(place(glyph)).tx))
            })
            .collect();
        let Some((font, ..)) = glyphs.first() else { return };
        self.content.set_font(Name(PdfFonts::name(*font).as_bytes()), 1.0);
        self.content.set_text_matrix([origin.sx, origin.ky, origin.kx, origin.sy, origin.tx, origin.ty]);
        let mut line = self.content.show_positioned();
        let mut items = line.items();
        let mut at = 0.0;
        for (font, glyph, x) in &glyphs {
            if (x - at).abs() > 0.0005 {
                items.adjust((at - x) * 1000.0);
            }
            items.show(Str(&glyph.to_be_bytes()));
            at = x + self.fonts.advance(*font, *glyph);
        }
        items.finish();
        line.finish();
    }

    fn path(&mut self, path: &Path) {
        let fill = path.fill().and_then(|fill| Some((colour(fill.paint())?, fill.opacity().get(), fill.rule())));
        let stroke = path.stroke().and_then(|stroke| Some((colour(stroke.paint())?, stroke)));
        self.content.save_state();
        let t: Transform = path.abs_transform();
        if !t.is_identity() {
            self.content.transform([t.sx, t.ky, t.kx, t.sy, t.tx, t.ty]);
        }
        if let Some((colour, opacity, rule)) = fill {
            self.opacity(opacity);
            self.content.set_fill_rgb(colour[0], colour[1], colour[2]);
            self.outline(path);
            match rule {
                FillRule::NonZero => self.content.fill_nonzero(),
                FillRule::EvenOdd => self.content.fill_even_odd(),
            };
        }
        if let Some((colour, stroke)) = stroke {
            self.opacity(stroke.opacity().get());
            self.content.set_stroke_rgb(colour[0], colour[1], colour[2]).set_line_width(stroke.width().get());
            self.content.set_line_cap(match stroke.linecap() {
                LineCap::Butt => LineCapStyle::ButtCap,
                LineCap::Round => LineCapStyle::RoundCap,
                LineCap::Square => LineCapStyle::ProjectingSquareCap,
            });
            self.content.set_line_join(match stroke.linejoin() {
                LineJoin::Round => LineJoinStyle::RoundJoin,
                LineJoin::Bevel => LineJoinStyle::BevelJoin,
                LineJoin::Miter | LineJoin::MiterClip => LineJoinStyle::MiterJoin,
            });
            if let Some(dashes) = stroke.dasharray() {
                self.content.set_dash_pattern(dashes.iter().copied(), stroke.dashoffset());
            }
            self.outline(path);
            self.content.stroke();
        }
        self.content.restore_state();
    }

    fn opacity(&mut self, opacity: f32) {
        let steps = (opacity * 255.0).round() as u8;
        self.opacities.insert(steps, ());
        self.content.set_parameters(Name(state(steps).as_bytes()));
    }

    fn outline(&mut self, path: &Path) {
        let content = &mut self.content;
        let mut last = (0.0, 0.0);
        for segment in path.data().segments() {
            match segment {
                PathSegment::MoveTo(p) => {
                    content.move_to(p.x, p.y);
                    last = (p.x, p.y);
                }
                PathSegment::LineTo(p) => {
                    content.line_to(p.x, p.y);
                    last = (p.x, p.y);
                }
                PathSegment::QuadTo(c, p) => {
                    // A quadratic curve as a cubic one.
                    let handle =
                        |end: (f32, f32)| (end.0 + (c.x - end.0) * 2.0 / 3.0, end.1 + (c.y - end.1) * 2.0 / 3.0);
                    let (a, b) = (handle(last), handle((p.x, p.y)));
                    content.cubic_to(a.0, a.1, b.0, b.1, p.x, p.y);
                    last = (p.x, p.y);
                }
                PathSegment::CubicTo(a, b, p) => {
                    content.cubic_to(a.x, a.y, b.x, b.y, p.x, p.y);
                    last = (p.x, p.y);
                }
                PathSegment::Close => {
                    content.close_path();
                }
            }
        }
    }
}

/// Figures use only plain colours.
fn colour(paint: &Paint) -> Option<[f32; 3]> {
    match paint {
        Paint::Color(c) => Some([c.red, c.green, c.blue].map(|part| f32::from(part) / 255.0)),
        _ => None,
    }
}
