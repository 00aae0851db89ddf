use super::{
    model::Figure,
    pdf::to_pdf,
    png::{shapes, to_png, to_svg},
};
use crate::{error::ReportError, staging::Staging};

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
        staging.write_all(&format!("figures/{name}.svg"), &contents.svg)?;
        staging.write_all(&format!("figures/{name}.pdf"), &contents.pdf)?;
        staging.write_all(&format!("figures/{name}.png"), &contents.png)?;
        staging.write_all(&format!("figures/{name}.csv"), &contents.csv)?;
        Ok(contents)
    }
}
