//! Typefaces that the documents component asks for, by script. They are data of the program, so that equal input
//! gives equal bytes on every machine, and the system reads a file's pages only when a face is used.

use wasmtime::component::Linker;

use super::engine::LimitedEngine;

/// Files by the code of their script (ISO 15924), in its order. `host/faces/README.md` names their sources.
#[cfg(feature = "all")]
const FACES: &[(&str, &[u8])] = &[
    ("Adlm", include_bytes!("../../../faces/Adlm.ttf")),
    ("Arab", include_bytes!("../../../faces/Arab.ttf")),
    ("Armn", include_bytes!("../../../faces/Armn.ttf")),
    ("Bali", include_bytes!("../../../faces/Bali.ttf")),
    ("Beng", include_bytes!("../../../faces/Beng.ttf")),
    ("Cans", include_bytes!("../../../faces/Cans.ttf")),
    ("Cher", include_bytes!("../../../faces/Cher.ttf")),
    ("Deva", include_bytes!("../../../faces/Deva.ttf")),
    ("Ethi", include_bytes!("../../../faces/Ethi.ttf")),
    ("Geor", include_bytes!("../../../faces/Geor.ttf")),
    ("Gujr", include_bytes!("../../../faces/Gujr.ttf")),
    ("Guru", include_bytes!("../../../faces/Guru.ttf")),
    ("Hang", include_bytes!("../../../faces/Hang.otf")),
    ("Hani", include_bytes!("../../../faces/Hani.otf")),
    ("Hebr", include_bytes!("../../../faces/Hebr.ttf")),
    ("Java", include_bytes!("../../../faces/Java.ttf")),
    ("Khmr", include_bytes!("../../../faces/Khmr.ttf")),
    ("Knda", include_bytes!("../../../faces/Knda.ttf")),
    ("Laoo", include_bytes!("../../../faces/Laoo.ttf")),
    ("Lisu", include_bytes!("../../../faces/Lisu.ttf")),
    ("Mlym", include_bytes!("../../../faces/Mlym.ttf")),
    ("Mong", include_bytes!("../../../faces/Mong.ttf")),
    ("Mtei", include_bytes!("../../../faces/Mtei.ttf")),
    ("Mymr", include_bytes!("../../../faces/Mymr.ttf")),
    ("Nkoo", include_bytes!("../../../faces/Nkoo.ttf")),
    ("Olck", include_bytes!("../../../faces/Olck.ttf")),
    ("Orya", include_bytes!("../../../faces/Orya.ttf")),
    ("Sinh", include_bytes!("../../../faces/Sinh.ttf")),
    ("Sund", include_bytes!("../../../faces/Sund.ttf")),
    ("Syrc", include_bytes!("../../../faces/Syrc.ttf")),
    ("Tale", include_bytes!("../../../faces/Tale.ttf")),
    ("Taml", include_bytes!("../../../faces/Taml.ttf")),
    ("Telu", include_bytes!("../../../faces/Telu.ttf")),
    ("Tfng", include_bytes!("../../../faces/Tfng.ttf")),
    ("Thaa", include_bytes!("../../../faces/Thaa.ttf")),
    ("Thai", include_bytes!("../../../faces/Thai.ttf")),
    ("Tibt", include_bytes!("../../../faces/Tibt.ttf")),
    ("Vaii", include_bytes!("../../../faces/Vaii.ttf")),
    ("Yiii", include_bytes!("../../../faces/Yiii.ttf")),
    ("Zmth", include_bytes!("../../../faces/Zmth.ttf")),
    ("Zsy2", include_bytes!("../../../faces/Zsy2.ttf")),
    ("Zsye", include_bytes!("../../../faces/Zsye.ttf")),
    ("Zsym", include_bytes!("../../../faces/Zsym.ttf")),
];

/// A program with compliance rules only draws nothing.
#[cfg(not(feature = "all"))]
const FACES: &[(&str, &[u8])] = &[];

/// Lends the faces to a component.
pub(crate) fn lend(linker: &mut Linker<LimitedEngine<()>>) -> wasmtime::Result<()> {
    let mut faces = linker.instance("holdfast:documents/faces@1.0.0")?;
    faces.func_wrap("face", |_, (script,): (String,)| Ok((face(&script),)))
}

fn face(script: &str) -> Option<&'static [u8]> {
    let found = FACES.binary_search_by_key(&script, |(code, _)| code).ok()?;
    FACES.get(found).map(|(_, file)| *file)
}

#[cfg(all(test, feature = "all"))]
mod tests {
    use super::*;

    #[test]
    fn every_face_is_found_by_its_code() {
        for (code, file) in FACES {
            assert_eq!(face(code), Some(*file), "{code}");
        }
        assert_eq!(face("Latn"), None);
    }
}
