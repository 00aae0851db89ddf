//! Drawings as PDF vector graphics. Texts are shapes, which require no font.

use pdf_writer::{
    Content, Filter, Finish, Name, Pdf, Rect, Ref, TextStr,
    types::{LineCapStyle, LineJoinStyle},
};
use resvg::{
    tiny_skia::{PathSegment, Transform},
    usvg::{FillRule, Group, LineCap, LineJoin, Node, Paint, Path, Tree},
};
use std::{collections::BTreeMap, io::Write};

/// PDF points per pixel of a drawing.
const POINTS: f32 = 0.75;

pub(crate) fn to_pdf(tree: &Tree, title: &str, description: &str) -> Vec<u8> {
    let [catalog, pages, page, contents, info] = [1, 2, 3, 4, 5].map(Ref::new);
    let (width, height) = (tree.size().width() * POINTS, tree.size().height() * POINTS);
    let mut drawing = Drawing { content: Content::new(), opacities: BTreeMap::new() };
    // The y axis of a drawing points down, that of a page up.
    drawing.content.transform([POINTS, 0.0, 0.0, -POINTS, 0.0, height]);
    drawing.group(tree.root());
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let mut next = Ref::new(6);
    let states: Vec<(u8, Ref)> = drawing.opacities.keys().map(|opacity| (*opacity, next.bump())).collect();
    let mut sheet = pdf.page(page);
    sheet.media_box(Rect::new(0.0, 0.0, width, height)).parent(pages).contents(contents);
    let mut resources = sheet.resources();
    let mut names = resources.ext_g_states();
    for (opacity, reference) in &states {
        names.pair(Name(state(*opacity).as_bytes()), reference);
    }
    names.finish();
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

fn compressed(bytes: &[u8]) -> Vec<u8> {
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
    opacities: BTreeMap<u8, ()>,
}

impl Drawing {
    fn group(&mut self, group: &Group) {
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group),
                Node::Path(path) if path.is_visible() => self.path(path),
                Node::Text(text) => self.group(text.flattened()),
                Node::Path(_) | Node::Image(_) => {}
            }
        }
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
