//! Turns a drawn SVG into a PDF of one page that is as large as the picture, with letters as outlines.
//!
//! It knows what our pictures are made of (shapes in plain colours, letters, images without transparency) and refuses the
//! rest of SVG.

use std::io::Write;

use anyhow::{Context, Result, bail, ensure};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::{LineCapStyle, LineJoinStyle};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, TextStr};
use resvg::tiny_skia::{Path, PathSegment, Point, Transform};
use resvg::usvg::{self, FillRule, Group, ImageKind, LineCap, LineJoin, Node, Paint, Tree};

/// Points of a PDF, of which an inch has 72, for each unit of an SVG, of which it has 96.
const SCALE: f32 = 0.75;

/// The picture as the bytes of a PDF file.
///
/// # Errors
/// When the picture has something in it that our pictures do not have.
pub fn pdf(tree: &Tree, title: &str) -> Result<Vec<u8>> {
    let [width, height] = [tree.size().width(), tree.size().height()].map(|x| x * SCALE);
    let mut page = Page { content: Content::new(), opacities: Vec::new(), images: Vec::new() };
    // A PDF counts from the bottom.
    page.content.transform([SCALE, 0.0, 0.0, -SCALE, 0.0, height]);
    page.group(tree.root(), 1.0)?;
    page.write([width, height], title)
}

/// A page that is being drawn, and what it refers to.
struct Page {
    content: Content,
    /// Opacities of areas and lines, each with a state of its own.
    opacities: Vec<f32>,
    images: Vec<Pixels>,
}

/// An image: its size, and its red, green and blue bytes.
struct Pixels {
    size: [u32; 2],
    bytes: Vec<u8>,
}

impl Page {
    fn group(&mut self, group: &Group, opacity: f32) -> Result<()> {
        let plain = group.clip_path().is_none() && group.mask().is_none() && group.filters().is_empty();
        ensure!(plain, "a picture with clips, masks or filters");
        // Our pictures make single shapes transparent, so what a group says holds for each shape in it.
        let opacity = opacity * group.opacity().get();
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group, opacity)?,
                Node::Text(text) => self.group(text.flattened(), opacity)?,
                Node::Path(path) => self.path(path, opacity)?,
                Node::Image(image) => self.image(image, opacity)?,
            }
        }
        Ok(())
    }

    /// Draws within a frame of its own, at this place and with this opacity.
    fn apart(&mut self, place: Transform, opacity: f32, draw: impl FnOnce(&mut Self)) {
        self.content.save_state();
        let Transform { sx, ky, kx, sy, tx, ty } = place;
        if !place.is_identity() {
            self.content.transform([sx, ky, kx, sy, tx, ty]);
        }
        if opacity < 1.0 {
            let known = self.opacities.iter().position(|&known| known == opacity);
            let state = known.unwrap_or_else(|| {
                self.opacities.push(opacity);
                self.opacities.len() - 1
            });
            self.content.set_parameters(Name(format!("O{state}").as_bytes()));
        }
        draw(self);
        self.content.restore_state();
    }

    fn path(&mut self, path: &usvg::Path, opacity: f32) -> Result<()> {
        if let Some(fill) = path.fill() {
            let colour = colour(fill.paint())?;
            self.apart(path.abs_transform(), opacity * fill.opacity().get(), |page| {
                page.content.set_fill_rgb(colour[0], colour[1], colour[2]);
                page.outline(path.data());
                match fill.rule() {
                    FillRule::NonZero => page.content.fill_nonzero(),
                    FillRule::EvenOdd => page.content.fill_even_odd(),
                };
            });
        }
        if let Some(stroke) = path.stroke() {
            let colour = colour(stroke.paint())?;
            self.apart(path.abs_transform(), opacity * stroke.opacity().get(), |page| {
                page.content.set_stroke_rgb(colour[0], colour[1], colour[2]);
                page.line_style(stroke);
                page.outline(path.data());
                page.content.stroke();
            });
        }
        Ok(())
    }

    fn line_style(&mut self, stroke: &usvg::Stroke) {
        self.content.set_line_width(stroke.width().get());
        self.content.set_miter_limit(stroke.miterlimit().get());
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
    }

    fn outline(&mut self, path: &Path) {
        let mut last = Point::zero();
        for segment in path.segments() {
            match segment {
                PathSegment::MoveTo(to) => _ = self.content.move_to(short(to.x), short(to.y)),
                PathSegment::LineTo(to) => _ = self.content.line_to(short(to.x), short(to.y)),
                PathSegment::QuadTo(by, to) => {
                    // A PDF has cubic curves alone.
                    let third =
                        |end: Point| [end.x + (by.x - end.x) * 2.0 / 3.0, end.y + (by.y - end.y) * 2.0 / 3.0];
                    self.curve([third(last), third(to), [to.x, to.y]]);
                }
                PathSegment::CubicTo(by, then, to) => self.curve([by, then, to].map(|at| [at.x, at.y])),
                PathSegment::Close => _ = self.content.close_path(),
            }
            if let PathSegment::MoveTo(to)
            | PathSegment::LineTo(to)
            | PathSegment::QuadTo(_, to)
            | PathSegment::CubicTo(_, _, to) = segment
            {
                last = to;
            }
        }
    }

    fn curve(&mut self, points: [[f32; 2]; 3]) {
        let [[a, b], [c, d], [e, f]] = points.map(|at| at.map(short));
        self.content.cubic_to(a, b, c, d, e, f);
    }

    fn image(&mut self, image: &usvg::Image, opacity: f32) -> Result<()> {
        let ImageKind::PNG(png) = image.kind() else { bail!("an image that is no PNG") };
        let pixels = image::load_from_memory(png).context("an image within a picture")?.to_rgb8();
        let size = [pixels.width(), pixels.height()];
        let name = format!("I{}", self.images.len());
        self.images.push(Pixels { size, bytes: pixels.into_raw() });
        let (width, height) = (image.size().width(), image.size().height());
        self.apart(image.abs_transform(), opacity, |page| {
            // An image fills the unit square, from the bottom.
            page.content.transform([width, 0.0, 0.0, -height, 0.0, height]);
            page.content.x_object(Name(name.as_bytes()));
        });
        Ok(())
    }

    fn write(self, [width, height]: [f32; 2], title: &str) -> Result<Vec<u8>> {
        let [catalogue, pages, page, content, information] = [1, 2, 3, 4, 5].map(Ref::new);
        let states: Vec<Ref> = (6..).map(Ref::new).take(self.opacities.len()).collect();
        let images: Vec<Ref> = (6..).map(Ref::new).skip(states.len()).take(self.images.len()).collect();
        let mut pdf = Pdf::new();
        pdf.catalog(catalogue).pages(pages);
        pdf.pages(pages).kids([page]).count(1);
        pdf.document_info(information).title(TextStr(title));
        let mut sheet = pdf.page(page);
        sheet.media_box(Rect::new(0.0, 0.0, width, height)).parent(pages).contents(content);
        let mut resources = sheet.resources();
        let mut named = resources.ext_g_states();
        for (i, state) in states.iter().enumerate() {
            named.pair(Name(format!("O{i}").as_bytes()), state);
        }
        named.finish();
        let mut named = resources.x_objects();
        for (i, image) in images.iter().enumerate() {
            named.pair(Name(format!("I{i}").as_bytes()), image);
        }
        named.finish();
        resources.finish();
        sheet.finish();
        for (&state, &opacity) in states.iter().zip(&self.opacities) {
            pdf.ext_graphics(state).non_stroking_alpha(opacity).stroking_alpha(opacity);
        }
        for (&image, Pixels { size, bytes }) in images.iter().zip(&self.images) {
            let bytes = deflated(bytes)?;
            let mut object = pdf.image_xobject(image, &bytes);
            object.filter(Filter::FlateDecode);
            object.width(size[0].try_into()?).height(size[1].try_into()?);
            object.color_space().device_rgb();
            object.bits_per_component(8);
        }
        pdf.stream(content, &deflated(&self.content.finish())?).filter(Filter::FlateDecode);
        Ok(pdf.finish())
    }
}

fn colour(paint: &Paint) -> Result<[f32; 3]> {
    let Paint::Color(colour) = paint else { bail!("a picture with gradients or patterns") };
    Ok([colour.red, colour.green, colour.blue].map(|part| f32::from(part) / 255.0))
}

/// A length with three decimals, which is finer than any printer.
fn short(x: f32) -> f32 {
    (1000.0 * x).round() / 1000.0
}

fn deflated(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
