//! Who holds endpoints: one run of one node.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use crate::domain::id::RequestId;

/// A run of a node. `run` is `<node>/<run>`: the first half stays in the data folder,
/// the second is new each time, so that even a node whose data folder was copied
/// from another's never takes the other's work for its own.
pub struct Node {
    pub run: String,
    /// The node's own half, and the lock on its file. The lock ends with its process:
    /// what earlier runs still hold, nobody holds.
    kept: Option<(String, File)>,
}

impl Node {
    /// By the name in the data folder; where that is in use or cannot be kept, by a
    /// name for this run only.
    pub fn of(folder: &Path) -> Self {
        let run = RequestId::new();
        match kept(&folder.join("node")) {
            Ok((name, lock)) => Self {
                run: format!("{name}/{run}"),
                kept: Some((name, lock)),
            },
            Err(error) => {
                tracing::warn!(%error, "this node has no name that lasts");
                Self {
                    run: format!("{run}/{run}"),
                    kept: None,
                }
            }
        }
    }

    /// A pattern for all runs of this node, if no other can be under way.
    pub fn earlier_runs(&self) -> Option<String> {
        let (name, _) = self.kept.as_ref()?;
        Some(format!("{name}/%"))
    }
}

fn kept(path: &Path) -> std::io::Result<(String, File)> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.try_lock()?;
    let mut name = String::new();
    file.read_to_string(&mut name)?;
    if RequestId::parse(&name).is_none() {
        name = RequestId::new().to_string();
        file.set_len(0)?;
        std::io::Seek::rewind(&mut file)?;
        file.write_all(name.as_bytes())?;
    }
    Ok((name, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_name_and_every_run_has_its_own() {
        let folder = crate::test_folder();
        let first = Node::of(folder.path());
        let beside = Node::of(folder.path());
        assert_eq!(beside.earlier_runs(), None, "the first is still there");
        let earlier = first.earlier_runs().unwrap();
        let (name, _) = first.run.split_once('/').unwrap();
        assert_eq!(earlier, format!("{name}/%"));
        assert!(!beside.run.starts_with(name));
        let before = first.run.clone();
        drop(first);
        let again = Node::of(folder.path());
        assert_eq!(again.earlier_runs(), Some(earlier));
        assert_ne!(again.run, before);
    }

    #[test]
    fn a_name_that_was_cut_off_is_made_anew() {
        let folder = crate::test_folder();
        std::fs::write(folder.path().join("node"), "req_01jdk7").unwrap();
        let node = Node::of(folder.path());
        let kept = std::fs::read_to_string(folder.path().join("node")).unwrap();
        assert_eq!(node.earlier_runs(), Some(format!("{kept}/%")));
        assert!(RequestId::parse(&kept).is_some());
    }
}
