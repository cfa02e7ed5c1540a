//! The objects of a document, as the reader that draws its pages finds them.
//!
//! The writer has no parser of its own: it writes the objects of that reader. Two parsers would disagree
//! about damaged files, and one of them would write pages that were never shown.

use std::collections::{BTreeMap, BTreeSet};

use hayro_syntax::Filter;
use hayro_syntax::object::{
    Array, Dict, MaybeRef, Number, Object as Parsed, ObjectIdentifier, Stream as ParsedStream,
};
use hayro_syntax::xref::XRef;
use holdfast_reader::{FileSurvey, PdfDocument};
use lopdf::xref::{Xref, XrefType};
use lopdf::{Dictionary, Document, Object, ObjectId, Stream, StringFormat};

use crate::DocumentError;
use crate::error::{Result, over_limit, unreadable};
use crate::read_back::READS_DIFFERENTLY;
use crate::source::{LEFT_OUT, MAX_PAGES, resolve_in};

/// Highest object number accepted. New objects are numbered after it, and cross-reference tables
/// grow with it.
const MAX_OBJECT_NUMBER: u32 = 8_000_000;

/// Deepest nesting of direct objects.
const MAX_NESTING: usize = 200;

/// Deepest nesting of the page tree.
const MAX_TREE_DEPTH: usize = 64;

/// How much of the streams is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamData {
    All,
    /// Without the data of pictures and typefaces. They are most of a document, and no update touches them.
    WithoutBulk,
}

/// A document made of the reader's objects.
pub(crate) struct ObjectTable {
    pub(crate) document: Document,
    /// Pages in order.
    pub(crate) pages: Vec<ObjectId>,
    /// Index of each of them among the pages that the reader shows.
    pub(crate) shown_as: Vec<usize>,
    /// Pages without a size, for which the reader and others assume different ones.
    pub(crate) without_size: BTreeSet<usize>,
    /// Reasons why other readers may see something else, so the document has to be written anew.
    pub(crate) repairs: Vec<&'static str>,
}

impl ObjectTable {
    /// Reads all objects that the catalog and the information dictionary lead to.
    pub(crate) fn read(reader: &PdfDocument, wanted: StreamData) -> Result<Self> {
        let survey = reader.survey();
        let mut found = objects(reader, wanted)?;
        if !survey.is_sound {
            // Reading one object may have made the reader rebuild its table: its findings before that
            // could be of another revision.
            found = objects(reader, wanted)?;
        }

        if let Some(number) = found.lost.or(survey.ambiguous) {
            return Err(unreadable(format!(
                "{READS_DIFFERENTLY}: not all of them find object {number}"
            )));
        }

        let mut table = Self {
            document: document(reader, survey, found.objects),
            pages: Vec::new(),
            shown_as: Vec::new(),
            without_size: BTreeSet::new(),
            repairs: Vec::new(),
        };
        // A hostile file can name a huge number, and a table of that size would fill the sandbox.
        if table.document.max_id > MAX_OBJECT_NUMBER {
            return Err(over_limit(format!(
                "object numbers end at {MAX_OBJECT_NUMBER}"
            )));
        }

        for (is_needed, why) in [
            (survey.is_encrypted, ENCRYPTED),
            (!survey.is_sound, "its cross-reference table is damaged"),
            (found.has_wrong_length, "the length of a stream is wrong"),
        ] {
            table.repairs.extend(is_needed.then_some(why));
        }

        table.find_pages(reader)?;
        Ok(table)
    }

    /// Lists the pages, and gives each one an object of its own and a page box.
    fn find_pages(&mut self, reader: &PdfDocument) -> Result<()> {
        let mut walk = PageWalk::default();
        let root = self
            .document
            .trailer
            .get(b"Root")
            .and_then(Object::as_reference);
        let tree = root
            .and_then(|root| self.document.get_dictionary(root))
            .and_then(|catalog| catalog.get(b"Pages"))
            .and_then(Object::as_reference);
        if let Ok(tree) = tree {
            walk.visit(&mut self.document, tree, 0)?;
        }

        // The reader shows a page that is listed twice once.
        let shown = reader.page_count();
        let listed = walk.pages.len() - walk.repeated;
        if listed != shown {
            return Err(unreadable(format!(
                "its page tree reads as {listed} pages one way and {shown} another"
            )));
        }

        if walk.repeated > 0 {
            self.repairs.push("a page is listed twice");
        }

        if walk.without_object > 0 {
            self.repairs.push("a page has no object of its own");
        }

        if walk.is_unclear {
            self.repairs.push(DAMAGED_TREE);
        }

        self.pages = walk.pages;
        self.shown_as = walk.shown_as;
        for (index, page) in self.pages.clone().into_iter().enumerate() {
            let size = inherited(&self.document, page, b"MediaBox");
            if !size.is_some_and(|size| is_rectangle(&self.document, size)) {
                // The size that other readers assume.
                let letter = vec![0.into(), 0.into(), 612.into(), 792.into()];
                self.document
                    .get_dictionary_mut(page)?
                    .set("MediaBox", letter);
                self.repairs.push("a page has no size");
                self.without_size.insert(index);
            }
        }

        // One reason for each kind is enough: it becomes a sentence of the warning.
        self.repairs.dedup();
        Ok(())
    }
}

/// Why a document with a wrong page tree is written anew.
pub(crate) const DAMAGED_TREE: &str = "its page tree is damaged";

/// Why a protected document is written anew.
pub(crate) const ENCRYPTED: &str = "its encryption, which needs no password, is removed";

struct FoundObjects {
    objects: BTreeMap<ObjectId, Object>,
    has_wrong_length: bool,
    /// Number of an object that other readers find, and this one does not, or the reverse.
    lost: Option<u32>,
}

fn objects(reader: &PdfDocument, wanted: StreamData) -> Result<FoundObjects> {
    let xref = reader.parsed().xref();
    let root = xref.root_id();
    let mut walk = ObjectWalk {
        xref,
        survey: reader.survey(),
        wanted,
        is_encrypted: reader.is_encrypted(),
        waiting: vec![id_of(root)],
        found: FoundObjects {
            objects: BTreeMap::new(),
            has_wrong_length: false,
            lost: None,
        },
    };

    walk.waiting.extend(reader.survey().information);
    walk.run()?;
    Ok(walk.found)
}

/// Walk over references. A work list, because hostile documents nest arbitrarily deep.
struct ObjectWalk<'a> {
    xref: &'a XRef,
    survey: &'a FileSurvey,
    wanted: StreamData,
    is_encrypted: bool,
    waiting: Vec<ObjectId>,
    found: FoundObjects,
}

impl<'a> ObjectWalk<'a> {
    fn run(&mut self) -> Result<()> {
        while let Some(id) = self.waiting.pop() {
            if self.found.objects.contains_key(&id) {
                continue;
            }

            let parsed = self
                .xref
                .get::<Parsed<'a>>(ObjectIdentifier::new(id.0, i32::from(id.1)));
            let Some(parsed) = parsed else {
                self.found.lost = self.found.lost.or(self.lost(id));
                continue;
            };

            // Some readers search the file for such an object, and others take it for none.
            if self.survey.unplaced.contains(&id.0) {
                self.found.lost = Some(id.0);
            }

            if self.found.objects.len() > MAX_OBJECT_NUMBER as usize {
                return Err(over_limit(format!(
                    "object numbers end at {MAX_OBJECT_NUMBER}"
                )));
            }

            // Reserved, so a cycle ends.
            self.found.objects.insert(id, Object::Null);
            let object = self.object(parsed, 0)?;
            self.found.objects.insert(id, object);
        }

        Ok(())
    }

    /// Returns the number of an object that other readers may find, although this one does not. A reference to
    /// an object that does not exist at all is null, and needs none.
    fn lost(&self, (number, generation): ObjectId) -> Option<u32> {
        /// Files with objects that were deleted more often come from no writer.
        const GENERATIONS: u16 = 4;

        let is_other = |other: &u16| *other != generation;
        let mut others = (0..GENERATIONS).filter(is_other);
        let has_other = others.any(|other| {
            let id = ObjectIdentifier::new(number, i32::from(other));
            self.xref.get::<Parsed<'a>>(id).is_some()
        });

        (has_other || self.survey.placed.contains(&number)).then_some(number)
    }

    fn object(&mut self, parsed: Parsed<'a>, depth: usize) -> Result<Object> {
        if depth > MAX_NESTING {
            return Err(over_limit(format!(
                "objects nested more than {MAX_NESTING} deep"
            )));
        }

        Ok(match parsed {
            Parsed::Null(_) => Object::Null,
            Parsed::Boolean(value) => Object::Boolean(value),
            Parsed::Number(number) => number_of(number),
            Parsed::String(text) => Object::String(text.as_bytes().to_vec(), StringFormat::Literal),
            Parsed::Name(name) => Object::Name(name.as_ref().to_vec()),
            Parsed::Array(array) => Object::Array(self.items(&array, depth)?),
            Parsed::Dict(dict) => Object::Dictionary(self.entries(&dict, depth)?),
            Parsed::Stream(stream) => Object::Stream(self.stream(&stream, depth)?),
        })
    }

    fn any(&mut self, item: MaybeRef<Parsed<'a>>, depth: usize) -> Result<Object> {
        match item {
            MaybeRef::Ref(reference) => {
                let id = id_of(reference.into());
                // Objects that nothing refers to are never visited, and are not written again.
                if !self.found.objects.contains_key(&id) {
                    self.waiting.push(id);
                }
                Ok(Object::Reference(id))
            }
            MaybeRef::NotRef(object) => self.object(object, depth + 1),
        }
    }

    fn items(&mut self, array: &Array<'a>, depth: usize) -> Result<Vec<Object>> {
        array.raw_iter().map(|item| self.any(item, depth)).collect()
    }

    fn entries(&mut self, dict: &Dict<'a>, depth: usize) -> Result<Dictionary> {
        let mut entries = Dictionary::new();
        for (key, value) in dict.entries() {
            entries.set(key.as_ref().to_vec(), self.any(value, depth)?);
        }
        Ok(entries)
    }

    fn stream(&mut self, stream: &ParsedStream<'a>, depth: usize) -> Result<Stream> {
        let mut dict = self.entries(stream.dict(), depth)?;
        let data = stream.raw_data();
        let length = stream
            .dict()
            .get::<Number>("Length")
            .map(|length| length.as_i64());
        // The length of an encrypted stream is that of its encrypted data, so it may differ here.
        if !self.is_encrypted {
            self.found.has_wrong_length |= length != i64::try_from(data.len()).ok();
        } else if stream.filters().first() == Some(&Filter::Crypt) {
            drop_first_filter(&mut dict);
        }

        let content = if self.wanted == StreamData::WithoutBulk && is_bulk(&dict, data.len()) {
            dict.set(LEFT_OUT, true);
            Vec::new()
        } else {
            data.into_owned()
        };

        // The length may have been a reference, or wrong; the writer needs the number.
        dict.set("Length", content.len() as i64);
        Ok(Stream {
            dict,
            content,
            allows_compression: true,
            start_position: None,
        })
    }
}

fn id_of(id: ObjectIdentifier) -> ObjectId {
    // No writer uses generations beyond the range; such an object is not found under another one.
    (
        id.obj_number,
        u16::try_from(id.gen_number).unwrap_or(u16::MAX),
    )
}

fn number_of(number: Number) -> Object {
    // The writer has single precision for fractions.
    // The comparison after each write finds a place that moves.
    let (whole, exact) = (number.as_i64(), number.as_f64());
    #[expect(clippy::float_cmp, reason = "a number without a fraction is exact")]
    if whole as f64 == exact {
        Object::Integer(whole)
    } else {
        Object::Real(exact as f32)
    }
}

/// Returns whether only a viewer needs the data of a stream.
fn is_bulk(dict: &Dictionary, size: usize) -> bool {
    const SMALL: usize = 4 * 1024;
    size > SMALL && is_picture_or_typeface(dict)
}

pub(crate) fn is_picture_or_typeface(dict: &Dictionary) -> bool {
    let subtype = dict.get(b"Subtype").and_then(Object::as_name).ok();
    dict.has(b"Length1")
        || matches!(
            subtype,
            Some(b"Image" | b"Type1C" | b"CIDFontType0C" | b"OpenType")
        )
}

/// Removes `Crypt`, which the reader has applied.
fn drop_first_filter(dict: &mut Dictionary) {
    for key in [&b"Filter"[..], b"DecodeParms"] {
        match dict.get_mut(key) {
            Ok(Object::Array(items)) if !items.is_empty() => drop(items.remove(0)),
            _ => drop(dict.remove(key)),
        }
    }
}

fn document(
    reader: &PdfDocument,
    survey: &FileSurvey,
    objects: BTreeMap<ObjectId, Object>,
) -> Document {
    let mut document = Document::with_version(version(reader));
    let highest = objects.keys().map(|(number, _)| *number).max();
    // An update must not take a number that an earlier revision used: it would replace that object.
    document.max_id = survey.highest_number.max(highest.unwrap_or(0));
    let kind = if survey.is_stream {
        XrefType::CrossReferenceStream
    } else {
        XrefType::CrossReferenceTable
    };
    document.reference_table = Xref::new(0, kind);

    document.xref_start = survey.start.unwrap_or(0);

    let root = id_of(reader.parsed().xref().root_id());
    document.trailer.set("Root", Object::Reference(root));
    if let Some(information) = survey.information.filter(|id| objects.contains_key(id)) {
        document.trailer.set("Info", Object::Reference(information));
    }

    if let Some(identifier) = &survey.identifier {
        // Only the first part stays across revisions. The writer sets the second one at every save.
        let part = Object::String(identifier.clone(), StringFormat::Hexadecimal);
        document.trailer.set("ID", vec![part.clone(), part]);
    }

    document.objects = objects;
    document
}

fn version(reader: &PdfDocument) -> &'static str {
    use hayro_syntax::PdfVersion;

    match reader.parsed().version() {
        PdfVersion::Pdf20 => "2.0",
        PdfVersion::Pdf10
        | PdfVersion::Pdf11
        | PdfVersion::Pdf12
        | PdfVersion::Pdf13
        | PdfVersion::Pdf14
        | PdfVersion::Pdf15
        | PdfVersion::Pdf16
        | PdfVersion::Pdf17 => "1.7",
    }
}

/// Walk over the page tree.
#[derive(Default)]
struct PageWalk {
    visited: BTreeSet<ObjectId>,
    pages: Vec<ObjectId>,
    /// Position of each page among those that the reader shows, in the order of the pages and by object.
    shown_as: Vec<usize>,
    order: BTreeMap<ObjectId, usize>,
    /// Pages that stand in the list once more.
    repeated: usize,
    /// Pages that stand in the tree themselves instead of a reference.
    without_object: usize,
    /// A node has a wrong number of pages, contains itself, or holds something of another type.
    is_unclear: bool,
}

impl PageWalk {
    fn visit(&mut self, document: &mut Document, node: ObjectId, depth: usize) -> Result<()> {
        // The node is noted before its kids, so a tree that contains itself ends.
        self.visited.insert(node);
        let kids = kids(document, node);
        if depth > MAX_TREE_DEPTH {
            return Err(over_limit(format!(
                "a page tree of {MAX_TREE_DEPTH} levels"
            )));
        }

        let (before, repeated_before) = (self.pages.len(), self.repeated);
        let mut own = Vec::with_capacity(kids.len());
        for kid in kids {
            if self.pages.len() > MAX_PAGES {
                return Err(over_limit(format!("more than {MAX_PAGES} pages")));
            }

            let id = match kid {
                Object::Reference(id) => id,
                Object::Dictionary(_) => {
                    self.without_object += 1;
                    document.try_add_object(kid)?
                }
                _ => return Err(missing_page()),
            };
            let Ok(dictionary) = document.get_dictionary(id) else {
                return Err(missing_page());
            };

            let is_node = is_named(document, dictionary, b"Type", b"Pages");
            let is_known = self.visited.contains(&id);
            if is_node && !is_known {
                self.visit(document, id, depth + 1)?;
            } else if !is_node && is_known {
                // Readers disagree about a page that is listed twice.
                // As two pages, all of them show it twice.
                let copy = dictionary.clone();
                let copy = document.try_add_object(copy)?;
                document.get_dictionary_mut(copy)?.set("Parent", node);
                self.shown_as
                    .push(self.order.get(&id).copied().unwrap_or_default());
                self.pages.push(copy);
                self.repeated += 1;

                own.push(Object::Reference(copy));
                continue;
            } else if !is_node {
                self.visited.insert(id);
                let next = self.pages.len() - self.repeated;
                self.order.insert(id, next);
                self.shown_as.push(next);
                self.pages.push(id);
                self.is_page(document, id)?;
            } else {
                // The tree contains itself; readers leave the inner one out.
                self.is_unclear = true;
                continue;
            }

            own.push(Object::Reference(id));
        }

        let count = i64::try_from(self.pages.len() - before).unwrap_or(i64::MAX);
        // Readers that trust the stated number would show fewer pages, or more.
        let stated = document.get_dictionary(node)?.get_deref(b"Count", document);
        let is_counted = stated
            .and_then(Object::as_i64)
            .is_ok_and(|stated| stated == count);
        self.is_unclear |= !is_counted;

        if self.repeated > 0 || self.without_object > 0 || self.is_unclear {
            let has_repeats = self.repeated > repeated_before;
            let node = document.get_dictionary_mut(node)?;
            node.set("Kids", own);

            // Of a page that is listed twice, readers show as many as are counted.
            if !has_repeats {
                node.set("Count", count);
            }
        }

        Ok(())
    }

    /// Gives a page the type that it should have. Readers disagree about others.
    fn is_page(&mut self, document: &mut Document, page: ObjectId) -> Result<()> {
        let dictionary = document.get_dictionary(page)?;
        let kind = dictionary.get_deref(b"Type", document);
        let is_other = kind
            .and_then(Object::as_name)
            .is_ok_and(|kind| kind != b"Page");
        if is_other {
            document.get_dictionary_mut(page)?.set("Type", "Page");
            self.is_unclear = true;
        }

        Ok(())
    }
}

fn missing_page() -> DocumentError {
    unreadable(format!(
        "{READS_DIFFERENTLY}: its page tree lists a page that does not exist"
    ))
}

/// Returns whether an object is a rectangle with a size.
fn is_rectangle(document: &Document, object: &Object) -> bool {
    let Ok(edges) = object.as_array() else {
        return false;
    };
    let edges = edges
        .iter()
        .map(|edge| resolve_in(document, edge).as_float());
    let edges: Vec<f32> = edges.filter_map(std::result::Result::ok).collect();
    matches!(edges.as_slice(), [left, bottom, right, top] if left != right && bottom != top)
}

fn kids(document: &Document, node: ObjectId) -> Vec<Object> {
    let node = document.get_dictionary(node);
    let kids = node.and_then(|node| node.get_deref(b"Kids", document));
    kids.and_then(Object::as_array).cloned().unwrap_or_default()
}

fn is_named(document: &Document, dictionary: &Dictionary, key: &[u8], name: &[u8]) -> bool {
    let entry = dictionary.get_deref(key, document);
    entry
        .and_then(Object::as_name)
        .is_ok_and(|found| found == name)
}

/// Returns an entry of a page, or of the nearest node above it.
fn inherited<'a>(document: &'a Document, page: ObjectId, key: &[u8]) -> Option<&'a Object> {
    let mut node = document.get_dictionary(page).ok()?;
    // Bounded, because the parents in a hostile document can form a cycle.
    for _ in 0..MAX_TREE_DEPTH {
        if let Ok(entry) = node.get_deref(key, document) {
            return Some(entry);
        }
        node = node.get_deref(b"Parent", document).ok()?.as_dict().ok()?;
    }
    None
}
