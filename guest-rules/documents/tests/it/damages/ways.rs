//! Ways in which programs, transfers and editors damage documents.

#![expect(
    clippy::ptr_arg,
    reason = "all ways have one type, and some change the length"
)]

use memchr::memmem;

use crate::damage::{DamageSequence, mutate};

/// Changes bytes, or returns `None` where the file has nothing to be damaged this way.
pub type ByteDamage = fn(&mut Vec<u8>, &mut DamageSequence) -> Option<()>;

#[derive(Clone, Copy)]
pub enum Damage {
    /// Replaces text of an object or of the trailer; offsets are right.
    Text(&'static str, &'static str),
    /// Adds operators to the end of each page's content.
    Ending(&'static str),
    /// Changes the compressed content of a page; its length and the offsets are right.
    Flate(ByteDamage),
    /// Changes the written file.
    File(ByteDamage),
}

use Damage::{Ending, File, Flate, Text};

/// Each way of damage. The ones that are most common in uploads come first, because a short run tries only these.
#[rustfmt::skip]
pub const WAYS: &[(&str, Damage)] = &[
    ("length: too large", Text("/Length LENGTH", "/Length 100189")),
    ("content: states left open", Ending("\nq q q")),
    ("offset: one too high", File(|file, sequence| shift_entry(file, sequence, 1))),
    ("Flate: data ends early", Flate(cut_end)),
    ("update: /Prev is one too high", File(|file, _| update(file, Update { prev_shift: 1, ..SOUND_UPDATE }))),
    ("object: defined again at the end", File(define_again)),
    ("page tree: /Count too large", Text("/Count ", "/Count 7")),
    ("trailer: misspelt", Text("trailer\n", "trailor\n")),
    ("object stream: /First too large", Text("/First ", "/First 1")),
    ("xref stream: wrong /W", Text("/W[1 4 2]", "/W[1 4 1]")),
    ("file: edited by hand", File(insert_spaces)),
    ("file: end missing", File(cut_file)),
    // Lengths
    ("length: too small", Text("/Length LENGTH", "/Length 12")),
    ("length: missing", Text("/Length LENGTH", "")),
    ("length: refers to nothing", Text("/Length LENGTH", "/Length 99 0 R")),
    ("length: a name", Text("/Length LENGTH", "/Length /None")),
    ("length: negative", Text("/Length LENGTH", "/Length -5")),
    ("length: another digit", File(change_length)),
    // Ends of contents
    ("content: text left open", Ending("\nBT /F1 9 Tf")),
    ("content: mark left open", Ending("\n/A BMC")),
    ("content: hidden layer left open", Ending("\n/OC /Hidden BDC")),
    ("content: array left open", Ending("\n[(abc) 12 (de")),
    ("content: string left open", Ending("\n(never closed")),
    ("content: dictionary left open", Ending("\n<</A (")),
    ("content: dictionary opened in the middle", File(|file, sequence| overwrite(file, sequence, b"(Clause", b"<<Claus"))),
    ("content: inline image left open", Ending("\nBI /W 1 /H 1 /BPC 8 /CS /G ID x")),
    ("content: states closed too often", Ending("\nQ Q")),
    ("content: clipped to a corner", Ending("\n0 0 9 9 re W n")),
    ("content: moved off the page", Ending("\n0.01 0 0 0.01 9000 0 cm")),
    ("content: operator in an array", Ending("\nBT /F1 9 Tf 60 450 Td [(Some) Tj (more)] TJ ET")),
    ("content: invisible text mode", Ending("\n3 Tr")),
    // Streams
    ("Flate: byte changed", Flate(change_byte)),
    ("Flate: wrong checksum", Flate(change_checksum)),
    ("Flate: header missing", Flate(cut_start)),
    ("Flate: bytes behind the data", Flate(append_bytes)),
    ("filter: unknown", Text("/FlateDecode", "/FlatDecode")),
    ("filter: listed twice", Text("/Filter/FlateDecode", "/Filter[/FlateDecode/FlateDecode]")),
    ("filter: wrong predictor", Text("/Filter/FlateDecode", "/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 4>>")),
    ("stream: bytes zeroed", File(zero_stream)),
    ("stream: carriage return behind keyword", File(|file, sequence| overwrite(file, sequence, b">>\nstream\n", b">>\nstream\r"))),
    ("stream: endstream missing", File(|file, sequence| overwrite(file, sequence, b"\nendstream", b"          "))),
    // Offsets
    ("offset: one too low", File(|file, sequence| shift_entry(file, sequence, -1))),
    ("offset: beyond the file", File(|file, sequence| shift_entry(file, sequence, 1_000_000))),
    ("offset: of another object", File(copy_entry)),
    ("offset: zero", File(|file, sequence| entry_with(file, sequence, |entry| entry[..10].fill(b'0')))),
    ("offset: entry is free", File(|file, sequence| entry_with(file, sequence, |entry| entry[17] = b'f'))),
    ("offset: other generation", File(|file, sequence| entry_with(file, sequence, |entry| entry[15] = b'1'))),
    ("offset: entry of 19 bytes", Text(" 00000 n \n", " 00000 n\n")),
    ("offset: table begins at 1", Text("xref\n0 ", "xref\n1 ")),
    ("offset: table says more entries", Text("xref\n0 ", "xref\n0 1")),
    ("offset: line ends converted", File(convert_line_ends)),
    // Trailer
    ("startxref: zero", Text("START", "0")),
    ("startxref: beyond the file", Text("START", "START9")),
    ("startxref: missing", Text("startxref\nSTART", "")),
    ("trailer: no /Root", Text("/Root 1 0 R", "")),
    ("trailer: /Root is no catalog", Text("/Root 1 0 R", "/Root 3 0 R")),
    ("trailer: /Size too small", Text("/Size ", "/Size 3/Other ")),
    ("trailer: /Size too large", Text("/Size ", "/Size 9")),
    ("trailer: /XRefStm leads nowhere", Text("/Root 1 0 R>>\nstartxref", "/Root 1 0 R/XRefStm 5>>\nstartxref")),
    ("trailer: dictionary left open", Text("/Root 1 0 R>>\nstartxref", "/Root 1 0 R\nstartxref")),
    ("file: bytes before the header", File(|file, _| { file.splice(..0, *b"%junk\n"); Some(()) })),
    ("file: bytes behind the end", File(|file, _| { file.extend([b' '; 1500]); Some(()) })),
    ("file: no header", File(|file, sequence| overwrite(file, sequence, b"%PDF-", b"%    "))),
    ("file: random bytes", File(|file, sequence| { *file = mutate(file, sequence); Some(()) })),
    // Objects
    ("object: endobj missing", File(|file, sequence| overwrite(file, sequence, b"\nendobj", b"       "))),
    ("object: other number", File(change_number)),
    ("object: other generation", File(|file, sequence| overwrite(file, sequence, b" 0 obj", b" 1 obj"))),
    ("object: dictionary left open", Text("/BaseFont/Helvetica>>", "/BaseFont/Helvetica")),
    ("object: string left open", Text("/Name(Hidden)", "/Name(Hidden")),
    ("catalog: other type", Text("/Type/Catalog", "/Type/Foo")),
    ("catalog: /Pages is a page", Text("/Catalog/Pages 2 0 R", "/Catalog/Pages 6 0 R")),
    ("page: other type", Text("/Type/Page/Parent", "/Type/Foo/Parent")),
    ("page: no type", Text("/Type/Page/Parent", "/Parent")),
    ("page: no /Parent", Text("/Parent 2 0 R", "")),
    ("page: wrong /Parent", Text("/Parent 2 0 R", "/Parent 3 0 R")),
    ("page: no size", Text("/MediaBox[0 0 612 792]", "")),
    ("page: size of three numbers", Text("/MediaBox[0 0 612 792]", "/MediaBox[0 0 612]")),
    ("page: size refers to nothing", Text("/MediaBox[0 0 612 792]", "/MediaBox 99 0 R")),
    ("page: size upside down", Text("/MediaBox[0 0 612 792]", "/MediaBox[612 792 0 0]")),
    ("page: rotation is a name", Text("/Rotate 0", "/Rotate/None")),
    ("page: rotation of 45", Text("/Rotate 0", "/Rotate 45")),
    ("page: content refers to nothing", Text("/Contents ", "/Contents 99 0 R/Other ")),
    ("page: contents with gaps", Text("/Contents[", "/Contents[99 0 R null ")),
    ("page: no resources", Text("/Resources<<", "/Other<<")),
    ("page: typeface refers to nothing", Text("/F1 3 0 R", "/F1 99 0 R")),
    ("page tree: no type", Text("/Type/Pages/Kids", "/Kids")),
    ("page tree: no /Count", Text("/Count ", "/Other ")),
    ("page tree: negative /Count", Text("/Count ", "/Count -")),
    ("page tree: refers to nothing", Text("/Kids[", "/Kids[99 0 R ")),
    ("page tree: lists null", Text("/Kids[", "/Kids[null ")),
    ("page tree: contains itself", Text("/Kids[", "/Kids[2 0 R ")),
    ("page tree: a page twice", Text("/Kids[6 0 R", "/Kids[6 0 R 6 0 R")),
    // Object streams and cross-reference streams
    ("object stream: /N too small", Text("/Type/ObjStm/N ", "/Type/ObjStm/N 2/Other ")),
    ("object stream: /N too large", Text("/Type/ObjStm/N ", "/Type/ObjStm/N 9")),
    ("object stream: other type", Text("/Type/ObjStm", "/Type/Foo")),
    ("object stream: wrong index", Text("1 0 2 ", "1 7 2 ")),
    ("xref stream: begins at 1", Text("/Index[0 ", "/Index[1 ")),
    ("xref stream: other type", Text("/Type/XRef", "/Type/Foo")),
    ("xref stream: wrong kind of entry", File(|file, sequence| change_packed_entry(file, sequence, 0))),
    ("xref stream: wrong offset", File(|file, sequence| change_packed_entry(file, sequence, 4))),
    // Incremental updates
    ("update: /Prev is zero", File(|file, _| update(file, Update { prev: Some(0), ..SOUND_UPDATE }))),
    ("update: /Prev beyond the file", File(|file, _| update(file, Update { prev_shift: 1_000_000, ..SOUND_UPDATE }))),
    ("update: /Prev is itself", File(|file, _| update(file, Update { is_circular: true, ..SOUND_UPDATE }))),
    ("update: no /Prev", File(|file, _| update(file, Update { has_prev: false, ..SOUND_UPDATE }))),
    ("update: offset one too high", File(|file, _| update(file, Update { entry_shift: 1, ..SOUND_UPDATE }))),
    ("update: old startxref", File(|file, _| update(file, Update { is_found: false, ..SOUND_UPDATE }))),
];

fn places(file: &[u8], text: &[u8]) -> Vec<usize> {
    memmem::find_iter(file, text).collect()
}

fn any_place(file: &[u8], text: &[u8], sequence: &mut DamageSequence) -> Option<usize> {
    let places = places(file, text);
    places.get(sequence.below(places.len())).copied()
}

/// Writes a text of the same length over one occurrence of another.
fn overwrite(file: &mut [u8], sequence: &mut DamageSequence, from: &[u8], to: &[u8]) -> Option<()> {
    let at = any_place(file, from, sequence)?;
    file.get_mut(at..at + to.len())?.copy_from_slice(to);
    Some(())
}

fn cut_end(data: &mut Vec<u8>, sequence: &mut DamageSequence) -> Option<()> {
    data.truncate(data.len().checked_sub(5 + sequence.below(data.len() / 2))?);
    Some(())
}

fn cut_start(data: &mut Vec<u8>, _: &mut DamageSequence) -> Option<()> {
    data.drain(..2);
    Some(())
}

fn change_byte(data: &mut Vec<u8>, sequence: &mut DamageSequence) -> Option<()> {
    let at = sequence.below(data.len());
    *data.get_mut(at)? ^= 0x55;
    Some(())
}

fn change_checksum(data: &mut Vec<u8>, _: &mut DamageSequence) -> Option<()> {
    *data.last_mut()? ^= 0x55;
    Some(())
}

fn append_bytes(data: &mut Vec<u8>, _: &mut DamageSequence) -> Option<()> {
    data.extend(b"\r\n\0\0 q 0 0 m");
    Some(())
}

fn change_length(file: &mut Vec<u8>, sequence: &mut DamageSequence) -> Option<()> {
    let at = any_place(file, b"/Length ", sequence)? + 8;
    let digits = file[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let last = at + digits.count().checked_sub(1)?;
    let last = file.get_mut(last)?;
    *last = if *last == b'9' { b'0' } else { *last + 1 };
    Some(())
}

fn zero_stream(file: &mut Vec<u8>, sequence: &mut DamageSequence) -> Option<()> {
    let start = any_place(file, b">>\nstream\n", sequence)? + 10;
    let length = memmem::find(&file[start..], b"endstream")?;
    let at = start + sequence.below(length);
    let end = (at + 8).min(start + length);
    file[at..end].fill(0);
    Some(())
}

/// Passes one entry of a cross-reference table (ISO 32000-1, 7.5.4) to `change`.
fn entry_with(
    file: &mut [u8],
    sequence: &mut DamageSequence,
    change: impl FnOnce(&mut [u8]),
) -> Option<()> {
    let at = any_place(file, b" 00000 n", sequence)?.checked_sub(10)?;
    change(&mut file[at..at + 18]);
    Some(())
}

fn shift_entry(file: &mut [u8], sequence: &mut DamageSequence, shift: i64) -> Option<()> {
    entry_with(file, sequence, |entry| {
        let offset = std::str::from_utf8(&entry[..10]).ok();
        let offset: i64 = offset
            .and_then(|offset| offset.parse().ok())
            .unwrap_or_default();
        entry[..10].copy_from_slice(format!("{:010}", offset + shift).as_bytes());
    })
}

fn copy_entry(file: &mut Vec<u8>, sequence: &mut DamageSequence) -> Option<()> {
    let at = any_place(file, b" 00000 n", sequence)?.checked_sub(10)?;
    let offset = file[at..at + 10].to_vec();
    entry_with(file, sequence, |entry| entry[..10].copy_from_slice(&offset))
}

fn convert_line_ends(file: &mut Vec<u8>, _: &mut DamageSequence) -> Option<()> {
    let converted = file.iter().flat_map(|byte| match byte {
        b'\n' => b"\r\n".iter(),
        other => std::slice::from_ref(other).iter(),
    });
    *file = converted.copied().collect();
    Some(())
}

fn insert_spaces(file: &mut Vec<u8>, sequence: &mut DamageSequence) -> Option<()> {
    let at = any_place(file, b" Td (", sequence)?;
    file.splice(at..at, *b"     ");
    Some(())
}

fn cut_file(file: &mut Vec<u8>, sequence: &mut DamageSequence) -> Option<()> {
    let length = file.len().min(900);
    file.truncate(file.len() - sequence.below(length));
    Some(())
}

fn change_number(file: &mut Vec<u8>, sequence: &mut DamageSequence) -> Option<()> {
    let at = any_place(file, b" 0 obj", sequence)?.checked_sub(1)?;
    let digit = file.get_mut(at)?;
    *digit = if *digit == b'9' { b'0' } else { *digit + 1 };
    Some(())
}

/// Returns the number of a page's content, if it is written plainly.
fn content_number(file: &[u8]) -> Option<usize> {
    number_after(file, b"/Contents ")
}

fn number_after(file: &[u8], key: &[u8]) -> Option<usize> {
    let at = memmem::rfind(file, key)? + key.len();
    let digits = file[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let digits = digits.copied().collect();
    String::from_utf8(digits).ok()?.parse().ok()
}

/// Another content of a page.
fn amended(number: usize) -> String {
    let content = "BT /F1 11 Tf 60 700 Td (Amended) Tj ET 0.5 g 60 500 300 90 re f";
    format!(
        "{number} 0 obj\n<</Length {}>>\nstream\n{content}\nendstream\nendobj\n",
        content.len()
    )
}

fn define_again(file: &mut Vec<u8>, _: &mut DamageSequence) -> Option<()> {
    let number = content_number(file)?;
    file.extend(amended(number).bytes());
    Some(())
}

/// Changes a byte of an entry of an uncompressed cross-reference stream with the widths `[1 4 2]`.
fn change_packed_entry(
    file: &mut Vec<u8>,
    sequence: &mut DamageSequence,
    byte: usize,
) -> Option<()> {
    let dictionary = memmem::rfind(file, b"/Type/XRef/W[1 4 2]")?;
    let data = dictionary + memmem::find(&file[dictionary..], b"stream\n")? + 7;
    let length = memmem::find(&file[data..], b"\nendstream")?;
    let entry = 1 + sequence.below((length / 7).checked_sub(1)?);
    *file.get_mut(data + 7 * entry + byte)? ^= 3;
    Some(())
}

/// Properties of an incremental update that gives a page another content.
struct Update {
    entry_shift: usize,
    has_prev: bool,
    prev: Option<usize>,
    prev_shift: usize,
    is_circular: bool,
    /// The end of the file names the update's table, not the one before.
    is_found: bool,
}

const SOUND_UPDATE: Update = Update {
    entry_shift: 0,
    has_prev: true,
    prev: None,
    prev_shift: 0,
    is_circular: false,
    is_found: true,
};

fn update(file: &mut Vec<u8>, update: Update) -> Option<()> {
    memmem::rfind(file, b"trailer")?;
    let number = content_number(file)?;
    let root = number_after(file, b"/Root ")?;
    let earlier = number_after(file, b"startxref\n")?;
    let offset = file.len() + update.entry_shift;
    file.extend(amended(number).bytes());

    let start = file.len();
    let prev = if update.is_circular { start } else { earlier };
    let prev = update.prev.unwrap_or(prev + update.prev_shift);
    let prev = if update.has_prev {
        format!("/Prev {prev}")
    } else {
        String::new()
    };

    let found = if update.is_found { start } else { earlier };
    let end = format!(
        "xref\n{number} 1\n{offset:010} 00000 n \ntrailer\n<</Size 9999/Root {root} 0 R{prev}>>\nstartxref\n{found}\n%%EOF\n"
    );
    file.extend(end.bytes());

    Some(())
}
