//! Writer of the small PDFs used by the tests, and by tests and benchmarks of other crates.

#![allow(dead_code, reason = "none of them uses all of it")]

use std::fmt::Write as _;

/// Objects of a PDF under construction; object 1 is the catalog, 2 the page tree.
pub struct PdfBuilder {
    objects: Vec<Vec<u8>>,
    pages: Vec<usize>,
    catalog_extra: String,
}

impl PdfBuilder {
    /// Creates a document without pages. `/F1` is Helvetica, as object 3.
    pub fn new() -> Self {
        Self {
            objects: vec![
                Vec::new(),
                Vec::new(),
                b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
                    .to_vec(),
            ],
            pages: Vec::new(),
            catalog_extra: String::new(),
        }
    }

    /// Adds an object and returns its number.
    pub fn object(&mut self, body: &str) -> usize {
        self.objects.push(body.as_bytes().to_vec());
        self.objects.len()
    }

    /// Adds a stream; `entries` are further dictionary entries.
    pub fn stream(&mut self, entries: &str, data: &[u8]) -> usize {
        let mut body = format!("<< {entries} /Length {} >>\nstream\n", data.len()).into_bytes();
        body.extend_from_slice(data);
        body.extend_from_slice(b"\nendstream");
        self.objects.push(body);
        self.objects.len()
    }

    /// Returns the number of objects so far; the next object gets this number plus one.
    pub fn objects_planned(&self) -> usize {
        self.objects.len()
    }

    /// Adds a page of 200 by 100 points with this content.
    pub fn page(&mut self, content: &str) -> &mut Self {
        self.page_with("/MediaBox [0 0 200 100]", "", content)
    }

    /// Adds a page; `entries` go into its dictionary, and `resources` are added to the font `/F1`,
    /// or replace it if they name fonts.
    pub fn page_with(&mut self, entries: &str, resources: &str, content: &str) -> &mut Self {
        let content = self.stream("", content.as_bytes());
        let fonts = if resources.contains("/Font") {
            ""
        } else {
            "/Font << /F1 3 0 R >>"
        };
        let page = self.object(&format!(
            "<< /Type /Page /Parent 2 0 R {entries} /Contents {content} 0 R \
             /Resources << {fonts} {resources} >> >>"
        ));
        self.pages.push(page);

        self
    }

    /// Adds a page of letter size with content that is already deflated.
    pub fn page_of(&mut self, deflated: &[u8]) -> &mut Self {
        let content = self.stream("/Filter /FlateDecode", deflated);
        let page = self.object(&format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R \
             /Resources << /Font << /F1 3 0 R >> >> >>"
        ));
        self.pages.push(page);
        self
    }

    /// Adds entries to the catalog.
    pub fn catalog(&mut self, entries: &str) -> &mut Self {
        self.catalog_extra.push_str(entries);
        self
    }

    /// Returns the finished file with a correct cross-reference table.
    pub fn build(&self) -> Vec<u8> {
        let mut objects = self.objects.clone();
        objects[0] =
            format!("<< /Type /Catalog /Pages 2 0 R {} >>", self.catalog_extra).into_bytes();
        let kids = self.pages.iter().fold(String::new(), |mut kids, page| {
            let _ = write!(kids, "{page} 0 R ");
            kids
        });
        objects[1] = format!(
            "<< /Type /Pages /Kids [{kids}] /Count {} >>",
            self.pages.len()
        )
        .into_bytes();

        let mut file = b"%PDF-1.7\n".to_vec();
        let mut table = String::from("0000000000 65535 f \n");
        for (index, body) in objects.iter().enumerate() {
            let _ = writeln!(table, "{:010} 00000 n ", file.len());
            file.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
            file.extend_from_slice(body);
            file.extend_from_slice(b"\nendobj\n");
        }

        let start = file.len();
        let size = objects.len() + 1;
        file.extend_from_slice(
            format!(
                "xref\n0 {size}\n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
            )
            .as_bytes(),
        );

        file
    }
}

/// Returns a document of one page with this content.
pub fn one_page(content: &str) -> Vec<u8> {
    PdfBuilder::new().page(content).build()
}
