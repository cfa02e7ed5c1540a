//! Good PDFs, made of a seed, with at most one part changed before the offsets are computed.

use std::fmt::Write as _;

use lopdf::{Dictionary, Stream};

use crate::damage::DamageSequence;
use crate::support::quarters;

/// Objects before the pages: catalog, page tree, typeface, picture, layer.
const SHARED: usize = 5;

/// One change to the text of a file, outside of the contents of its pages.
pub struct TextChange {
    from: &'static str,
    to: &'static str,
    /// Number of objects with this text to leave as they are.
    skip: usize,
    pub is_done: bool,
}

impl TextChange {
    pub fn new(from: &'static str, to: &'static str, skip: usize) -> Self {
        Self {
            from,
            to,
            skip,
            is_done: false,
        }
    }

    fn apply(&mut self, text: &mut String) {
        if self.is_done || !text.contains(self.from) {
            return;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }

        *text = text.replacen(self.from, self.to, 1);
        self.is_done = true;
    }
}

struct MadeObject {
    text: String,
    data: Option<Vec<u8>>,
}

/// A document of one to three pages.
pub struct MadePdf {
    objects: Vec<MadeObject>,
    /// Its objects are in an object stream, found through a cross-reference stream.
    is_packed: bool,
    is_flate: bool,
}

impl MadePdf {
    /// Makes a document; the content of each page ends with `ending`.
    pub fn new(seed: usize, ending: &str) -> Self {
        let pages = 1 + seed % 3;
        let mut made = Self {
            objects: Vec::new(),
            is_packed: seed / 2 % 2 == 1,
            is_flate: seed % 2 == 1,
        };
        made.add("<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[5 0 R]/D<</OFF[5 0 R]>>>>>>");

        let kids: Vec<String> = (0..pages)
            .map(|page| format!("{} 0 R", SHARED + 1 + 2 * page))
            .collect();
        made.add(&format!(
            "<</Type/Pages/Kids[{}]/Count {pages}>>",
            kids.join(" ")
        ));

        made.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>");
        made.picture();
        made.add("<</Type/OCG/Name(Hidden)>>");

        for page in 0..pages {
            // Every fifth document begins with a page on its side.
            let rotation = if page == 0 && seed % 5 == 4 { 90 } else { 0 };
            let content_number = SHARED + 2 + 2 * page;
            let contents = if seed % 7 < 5 {
                format!("/Contents {content_number} 0 R")
            } else {
                format!("/Contents[{content_number} 0 R]")
            };
            made.add(&format!(
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Rotate {rotation}{contents}\
                 /Resources<</Font<</F1 3 0 R>>/XObject<</Im 4 0 R>>/Properties<</Hidden 5 0 R>>>>>>"
            ));

            let content = content(seed, page) + ending;
            made.stream("", content.as_bytes());
        }

        made
    }

    fn add(&mut self, text: &str) {
        self.objects.push(MadeObject {
            text: text.to_owned(),
            data: None,
        });
    }

    fn stream(&mut self, entries: &str, data: &[u8]) {
        let (filter, data) = self.packed(data);
        self.objects.push(MadeObject {
            text: format!("<<{entries}/Length LENGTH{filter}>>"),
            data: Some(data),
        });
    }

    fn picture(&mut self) {
        let pixels = quarters(16, 16).to_rgb8().into_raw();
        self.stream(
            "/Type/XObject/Subtype/Image/Width 16/Height 16/BitsPerComponent 8/ColorSpace/DeviceRGB",
            &pixels,
        );
    }

    /// Returns the filter entry and the encoded data of a stream.
    fn packed(&self, data: &[u8]) -> (&'static str, Vec<u8>) {
        let mut stream = Stream::new(Dictionary::new(), data.to_vec());
        if self.is_flate {
            stream.compress().expect("data in memory can be compressed");
        }

        let is_smaller = stream.content.len() < data.len();
        let filter = if is_smaller {
            "/Filter/FlateDecode"
        } else {
            ""
        };

        (filter, stream.content)
    }

    /// Returns the stored content of some page, if this document compresses contents.
    pub fn compressed_content(&mut self, sequence: &mut DamageSequence) -> Option<&mut Vec<u8>> {
        let pages = (self.objects.len() - SHARED) / 2;
        let object = SHARED + 1 + 2 * sequence.below(pages);
        let content = self.objects.get_mut(object)?.data.as_mut();
        content.filter(|_| self.is_flate)
    }

    pub fn write(self) -> Vec<u8> {
        self.write_with(&mut TextChange {
            is_done: true,
            ..TextChange::new("", "", 0)
        })
    }

    /// Returns the bytes of the document. Offsets are right for the changed text.
    pub fn write_with(mut self, change: &mut TextChange) -> Vec<u8> {
        for object in &mut self.objects {
            change.apply(&mut object.text);
        }

        let places = if self.is_packed {
            self.pack(change)
        } else {
            vec![None; self.objects.len()]
        };

        let mut file = b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n".to_vec();
        let mut entries = Vec::new();
        for (index, (object, place)) in self.objects.iter().zip(places).enumerate() {
            entries.push(place.unwrap_or(Place::Offset(file.len())));
            if place.is_none() {
                file.extend(object.written(index + 1));
            }
        }

        if self.is_packed {
            write_stream_end(&mut file, &entries, change);
        } else {
            write_table_end(&mut file, &entries, change);
        }

        file
    }

    /// Moves all objects without data into an object stream, which is added as the last one.
    fn pack(&mut self, change: &mut TextChange) -> Vec<Option<Place>> {
        let (mut header, mut body, mut places) = (String::new(), String::new(), Vec::new());
        let stream = self.objects.len() + 1;
        let mut count = 0;
        for (index, object) in self.objects.iter().enumerate() {
            if object.data.is_some() {
                places.push(None);
                continue;
            }

            places.push(Some(Place::Packed(stream, count)));
            let _ = write!(header, "{} {} ", index + 1, body.len());
            body.push_str(&object.text);
            body.push('\n');

            count += 1;
        }

        places.push(None);

        change.apply(&mut header);
        let entries = format!("/Type/ObjStm/N {count}/First {}", header.len());
        self.stream(&entries, (header + &body).as_bytes());
        if let Some(last) = self.objects.last_mut() {
            change.apply(&mut last.text);
        }

        places
    }
}

impl MadeObject {
    fn written(&self, number: usize) -> Vec<u8> {
        let mut bytes = format!("{number} 0 obj\n").into_bytes();
        let length = self.data.as_ref().map_or(0, Vec::len).to_string();
        bytes.extend(self.text.replace("LENGTH", &length).bytes());

        if let Some(data) = &self.data {
            bytes.extend(b"\nstream\n");
            bytes.extend(data);
            bytes.extend(b"\nendstream");
        }

        bytes.extend(b"\nendobj\n");
        bytes
    }
}

/// Where an object is.
#[derive(Clone, Copy)]
enum Place {
    Offset(usize),
    /// Number of the object stream, and position in it.
    Packed(usize, usize),
}

/// Returns lines, a picture and a bar, in the upper two thirds of the page.
fn content(seed: usize, page: usize) -> String {
    let mut content = String::new();
    for line in 0..12 {
        let y = 720 - 20 * line;
        let _ = writeln!(
            content,
            "BT /F1 11 Tf 60 {y} Td (Clause {line} on page {page} of contract {seed}) Tj ET"
        );
    }

    if seed % 4 < 2 {
        content.push_str("q 80 0 0 80 400 400 cm /Im Do Q\n");
    }

    let _ = write!(content, "0.8 g 60 {} 200 9 re f", 330 + seed % 90);
    content
}

fn write_table_end(file: &mut Vec<u8>, entries: &[Place], change: &mut TextChange) {
    let size = entries.len() + 1;
    let start = file.len();
    let mut end = format!("xref\n0 {size}\n0000000000 65535 f \n");
    for entry in entries {
        let (Place::Offset(offset) | Place::Packed(offset, _)) = entry;
        let _ = writeln!(end, "{offset:010} 00000 n ");
    }

    let _ = write!(end, "trailer\n<</Size {size}/Root 1 0 R>>");
    end.push_str("\nstartxref\nSTART\n%%EOF\n");

    change.apply(&mut end);
    file.extend(end.replace("START", &start.to_string()).bytes());
}

fn write_stream_end(file: &mut Vec<u8>, entries: &[Place], change: &mut TextChange) {
    let number = entries.len() + 1;
    let start = file.len();
    let mut data = vec![0; 7];
    for entry in entries.iter().copied().chain([Place::Offset(start)]) {
        let (kind, first, second) = match entry {
            Place::Offset(offset) => (1, offset, 0),
            Place::Packed(stream, index) => (2, stream, index),
        };
        data.push(kind);
        data.extend(u32::try_from(first).expect("small files").to_be_bytes());
        data.extend(u16::try_from(second).expect("few objects").to_be_bytes());
    }

    let mut text = format!(
        "{number} 0 obj\n<</Type/XRef/W[1 4 2]/Index[0 {0}]/Size {0}/Root 1 0 R/Length LENGTH>>",
        number + 1
    );
    change.apply(&mut text);
    file.extend(text.replace("LENGTH", &data.len().to_string()).bytes());
    file.extend(b"\nstream\n");

    file.extend(data);
    let mut end = "\nendstream\nendobj\nstartxref\nSTART\n%%EOF\n".to_owned();
    change.apply(&mut end);

    file.extend(end.replace("START", &start.to_string()).bytes());
}
