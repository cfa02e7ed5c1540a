//! Uploads on their way: written to a nameless temporary file and hashed while
//! they arrive, so that memory does not grow with them and a crash leaves
//! nothing.

use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};

use super::{FilesError, Pieces};

/// How much of the beginning is kept at hand, to tell the file's type.
const HEAD: usize = 1024;
/// How much of a file is read at a time for a reader of pieces.
const PIECE: usize = 32 * 1024;

/// A file that is being written.
pub struct Spool {
    file: File,
    hasher: Sha256,
    size: u64,
    head: Vec<u8>,
}

impl Spool {
    /// An empty file in `folder`.
    pub async fn new(folder: &Path) -> io::Result<Self> {
        tokio::fs::create_dir_all(folder).await?;
        let folder = folder.to_owned();
        let file = tokio::task::spawn_blocking(move || tempfile::tempfile_in(folder)).await??;
        Ok(Self {
            file: File::from_std(file),
            hasher: Sha256::new(),
            size: 0,
            head: Vec::new(),
        })
    }

    /// Bytes so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a piece.
    pub async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let missing = HEAD.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..missing]);
        self.hasher.update(piece);
        self.size += piece.len() as u64;
        self.file.write_all(piece).await
    }

    /// Ends the writing.
    pub async fn finish(mut self) -> io::Result<Spooled> {
        self.file.flush().await?;
        Ok(Spooled {
            file: self.file.into_std().await,
            sha256: hex::encode(self.hasher.finalize()),
            size: self.size,
            head: self.head,
        })
    }
}

/// A file that has arrived whole.
pub struct Spooled {
    file: std::fs::File,
    sha256: String,
    size: u64,
    head: Vec<u8>,
}

impl Spooled {
    /// What `write` writes to an empty file in `folder`, on a thread that may block.
    pub async fn written(
        folder: &Path,
        write: impl FnOnce(&mut std::fs::File) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        tokio::fs::create_dir_all(folder).await?;
        let folder = folder.to_owned();
        let written = tokio::task::spawn_blocking(move || {
            let mut file = tempfile::tempfile_in(folder)?;
            write(&mut file)?;
            file.rewind()?;
            let mut hasher = Sha256::new();
            let size = io::copy(&mut file, &mut hasher)?;
            file.rewind()?;
            let mut head = Vec::new();
            (&file).take(HEAD as u64).read_to_end(&mut head)?;
            Ok(Self {
                file,
                sha256: hex::encode(hasher.finalize()),
                size,
                head,
            })
        });
        written.await?
    }

    /// The file, at its beginning, for a reader that may block.
    pub fn into_file(mut self) -> io::Result<std::fs::File> {
        self.file.rewind()?;
        Ok(self.file)
    }

    /// SHA-256, lower-case hex.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The first kilobyte.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// In pieces, from the beginning. Every reader has a place of its own.
    pub fn pieces(self: &Arc<Self>) -> Pieces {
        let state = (self.clone(), 0);
        let pieces = futures::stream::try_unfold(state, |(file, at)| async move {
            let (file, piece) = read_piece(file, at).await.map_err(FilesError::Spool)?;
            let next = at + piece.len() as u64;
            Ok((!piece.is_empty()).then_some((piece, (file, next))))
        });
        pieces.boxed()
    }

    /// From the beginning. One reader at a time: they share the position.
    pub async fn open(&self) -> io::Result<File> {
        let mut file = File::from_std(self.file.try_clone()?);
        file.rewind().await?;
        Ok(file)
    }

    /// All of it.
    pub async fn read(&self) -> io::Result<Bytes> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.size).unwrap_or_default());
        self.open().await?.read_to_end(&mut bytes).await?;
        Ok(bytes.into())
    }
}

/// The piece that begins at a place; empty at the end.
async fn read_piece(file: Arc<Spooled>, at: u64) -> io::Result<(Arc<Spooled>, Bytes)> {
    let read = tokio::task::spawn_blocking(move || {
        let mut piece = vec![0; PIECE];
        let length = file.file.read_at(&mut piece, at)?;
        piece.truncate(length);
        Ok((file, Bytes::from(piece)))
    });
    read.await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_written_in_pieces_is_read_whole() {
        let folder = crate::test_folder();
        let mut spool = Spool::new(folder.path()).await.unwrap();
        let piece = vec![7; 700];
        for _ in 0..3 {
            spool.write(&piece).await.unwrap();
        }
        let spooled = spool.finish().await.unwrap();
        let whole = vec![7; 2100];
        assert_eq!(spooled.size(), 2100);
        assert_eq!(spooled.head(), &whole[..1024]);
        assert_eq!(spooled.sha256(), crate::domain::hash::sha256(&whole));
        assert_eq!(spooled.read().await.unwrap(), whole);
        assert_eq!(spooled.read().await.unwrap(), whole);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
