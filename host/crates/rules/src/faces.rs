//! Typefaces that the documents component asks for, by script. They are data of the program, so that equal input
//! gives equal bytes on every machine, and the system reads a file's pages only when a face is used.

use holdfast_default_components::{ShareError, SharedFile};
use wasmtime::component::Linker;

use super::engine::LimitedEngine;

/// Files by the code of their script (ISO 15924), in its order. `host/faces/README.md` names their sources.
/// Empty in a program with compliance rules only.
pub(crate) static FACES: &[(&str, SharedFile)] = include!(concat!(env!("OUT_DIR"), "/faces.rs"));

/// Lends the faces to a component.
pub(crate) fn lend(linker: &mut Linker<LimitedEngine<()>>) -> wasmtime::Result<()> {
    let mut faces = linker.instance("holdfast:documents/faces@1.0.0")?;
    faces.func_wrap("face", |_, (script,): (String,)| {
        // Without its face a document would look different from that of another node, so the call fails.
        let file = face(&script).transpose();
        Ok((file.map_err(|error| wasmtime::format_err!("{error}"))?,))
    })
}

fn face(script: &str) -> Option<Result<&'static [u8], ShareError>> {
    let found = FACES.binary_search_by_key(&script, |(code, _)| code).ok()?;
    FACES.get(found).map(|(_, file)| file.mapped())
}

#[cfg(all(test, feature = "all"))]
mod tests {
    use super::*;

    #[test]
    fn every_face_is_found_by_its_code() {
        for (code, file) in FACES {
            let found = face(code).unwrap().unwrap();
            assert_eq!(*found, *file.bytes().unwrap(), "{code}");
        }
        assert!(face("Latn").is_none());
    }
}
