//! Typefaces of scripts, which the host keeps as files. Each is asked for when the first character needs it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use unicode_script::{Script, UnicodeScript as _};

use crate::text::LoadedTypeface;

/// Faces of symbols, in the order in which they are tried.
const SYMBOLS: [&str; 4] = ["Zsym", "Zsy2", "Zmth", "Zsye"];

type Faces = BTreeMap<&'static str, Option<&'static LoadedTypeface>>;

/// Faces that were asked for, by the code of their script.
static LOADED: Mutex<Faces> = Mutex::new(BTreeMap::new());

/// Returns the face of a script; none if the host has none.
pub(crate) fn of_script(code: &'static str) -> Option<&'static LoadedTypeface> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    *loaded.entry(code).or_insert_with(|| {
        let file = file(code)?;
        // Kept until the end of the program, which is that of the call in the sandbox.
        let face = LoadedTypeface::load(Box::leak(file.into_boxed_slice())).ok()?;
        Some(Box::leak(Box::new(face)))
    })
}

#[cfg(target_arch = "wasm32")]
fn file(code: &str) -> Option<Vec<u8>> {
    crate::contract::bindings::holdfast::documents::faces::face(code)
}

/// Natively, as in tests, the files are read from the source.
#[cfg(not(target_arch = "wasm32"))]
fn file(code: &str) -> Option<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../host/faces");
    let read = |ending| std::fs::read(format!("{folder}/{code}.{ending}")).ok();
    read("ttf").or_else(|| read("otf"))
}

/// Returns whether a character takes the script of the one before it, as combining marks do.
pub(crate) fn is_inherited(character: char) -> bool {
    character.script() == Script::Inherited
}

/// Returns the codes of the faces that may have a character, the likeliest first.
pub(crate) fn candidates(character: char, is_wide: bool) -> Vec<&'static str> {
    let script = character.script();
    if !matches!(script, Script::Common | Script::Inherited) {
        return vec![face_code(script)];
    }

    let mut codes = Vec::new();
    if is_wide {
        codes.push("Hani");
    }

    let users = character.script_extension();
    if !users.is_common() && !users.is_inherited() {
        codes.extend(users.iter().map(face_code));
    }

    codes.extend(SYMBOLS);
    codes
}

/// Returns the code of the face that has a script.
fn face_code(script: Script) -> &'static str {
    match script {
        Script::Hiragana | Script::Katakana | Script::Bopomofo => "Hani",
        script => script.short_name(),
    }
}
