//! Identity of one run of one node, for leases of endpoints.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use holdfast_domain::id::RequestId;

/// Run of a node. `run` is `<node>/<run>`: the first half is stored in the data folder, the second
/// is new for each run, so that a node with a copied data folder never mistakes another node's
/// leases for its own.
pub struct NodeRun {
    pub run: String,
    /// The node's persistent name, with the lock on its file. The lock ends with the process, so
    /// leases of earlier runs are free once it is acquired.
    kept: Option<(String, File)>,
}

impl NodeRun {
    /// Reads the name from the data folder. If it is in use or cannot be stored, uses a name for
    /// this run only.
    pub fn of(folder: &Path) -> Self {
        let run = RequestId::new();
        match kept(&folder.join("node")) {
            Ok((name, lock)) => Self {
                run: format!("{name}/{run}"),
                kept: Some((name, lock)),
            },
            Err(error) => {
                tracing::warn!(%error, "node has no persistent name");
                Self {
                    run: format!("{run}/{run}"),
                    kept: None,
                }
            }
        }
    }

    /// Returns the name of the node.
    pub fn name(&self) -> &str {
        self.run.split('/').next().unwrap_or_default()
    }

    /// Returns a pattern of all earlier runs of this node; none if another process may be running
    /// under its name.
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

    // Fails if another process uses the same data folder.
    file.try_lock()?;
    let mut name = String::new();
    file.read_to_string(&mut name)?;

    // A new file is empty; a crash may have cut the name off.
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
    fn a_node_keeps_its_name_and_each_run_has_a_new_id() {
        let folder = tempfile::tempdir().unwrap();
        let first = NodeRun::of(folder.path());
        let beside = NodeRun::of(folder.path());
        assert_eq!(beside.earlier_runs(), None, "the first is still there");

        let earlier = first.earlier_runs().unwrap();
        let (name, _) = first.run.split_once('/').unwrap();
        assert_eq!(earlier, format!("{name}/%"));
        assert!(!beside.run.starts_with(name));

        let before = first.run.clone();
        drop(first);
        let again = NodeRun::of(folder.path());
        assert_eq!(again.earlier_runs(), Some(earlier));
        assert_ne!(again.run, before);
    }

    #[test]
    fn a_truncated_node_name_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("node"), "req_01jdk7").unwrap();
        let node = NodeRun::of(folder.path());
        let kept = std::fs::read_to_string(folder.path().join("node")).unwrap();
        assert_eq!(node.earlier_runs(), Some(format!("{kept}/%")));
        assert!(RequestId::parse(&kept).is_some());
    }
}
