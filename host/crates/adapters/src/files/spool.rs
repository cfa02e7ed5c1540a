//! Temporary files for uploads and downloads. They are unnamed and hashed while written, so that
//! memory use stays constant and a crash leaves nothing behind.

use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _, BufWriter};

use super::{FilesError, Pieces, TransferShare};

/// Number of leading bytes kept in memory, to detect the file type.
const HEAD: usize = 1024;
/// Size of the pieces that a stream yields.
const PIECE: usize = 32 * 1024;

/// Bytes that are gathered before they are written, on another thread.
const GATHERED: usize = 128 * 1024;

/// Temporary file being written.
pub struct SpoolWriter {
    file: BufWriter<File>,
    hasher: Sha256,
    size: u64,
    head: Vec<u8>,
}

impl SpoolWriter {
    /// Creates an empty file in `folder`.
    pub async fn new(folder: &Path) -> io::Result<Self> {
        tokio::fs::create_dir_all(folder).await?;
        let folder = folder.to_owned();
        // Unnamed: the system frees it with the last handle, also when the process is killed.
        let file = tokio::task::spawn_blocking(move || tempfile::tempfile_in(folder)).await??;
        Ok(Self {
            file: BufWriter::with_capacity(GATHERED, File::from_std(file)),
            hasher: Sha256::new(),
            size: 0,
            head: Vec::new(),
        })
    }

    /// Returns the number of bytes written so far.
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

    /// Finishes writing.
    pub async fn finish(mut self) -> io::Result<SpooledFile> {
        self.file.flush().await?;
        Ok(SpooledFile {
            // Waits for writes in flight; readers use blocking calls on the plain file.
            file: self.file.into_inner().into_std().await,
            sha256: hex::encode(self.hasher.finalize()),
            size: self.size,
            head: self.head,
            _share: None,
        })
    }
}

/// Complete temporary file.
pub struct SpooledFile {
    file: std::fs::File,
    sha256: String,
    size: u64,
    head: Vec<u8>,
    /// Counts the file among the open uploads.
    _share: Option<TransferShare>,
}

impl SpooledFile {
    /// Counts the file among the open uploads until it is dropped.
    pub fn counted(self, share: TransferShare) -> Self {
        Self {
            _share: Some(share),
            ..self
        }
    }

    /// Creates a file in `folder` and fills it with `write`, on a blocking thread.
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
            // Hashed by reading it back, because a writer may jump back in the file.
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
                _share: None,
            })
        });

        written.await?
    }

    /// Returns the rewound file, for a blocking reader.
    pub fn into_file(mut self) -> io::Result<std::fs::File> {
        self.file.rewind()?;
        Ok(self.file)
    }

    /// Returns the SHA-256 in lower-case hex.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the first kilobyte.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Streams the file from the beginning. Readers are independent of each other.
    pub fn pieces(self: &Arc<Self>) -> Pieces {
        let state = (self.clone(), 0);
        let pieces = futures::stream::try_unfold(state, |(file, at)| async move {
            let (file, piece) = read_piece(file, at).await.map_err(FilesError::Spool)?;
            let next = at + piece.len() as u64;
            Ok((!piece.is_empty()).then_some((piece, (file, next))))
        });
        pieces.boxed()
    }

    /// Opens the file at the beginning. Readers share one position, so only one may read at a time.
    pub async fn open(&self) -> io::Result<File> {
        let mut file = File::from_std(self.file.try_clone()?);
        file.rewind().await?;
        Ok(file)
    }

    /// Reads the whole file.
    pub async fn read(&self) -> io::Result<Bytes> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.size).unwrap_or_default());
        self.open().await?.read_to_end(&mut bytes).await?;
        Ok(bytes.into())
    }
}

/// Reads the piece at an offset; it is empty at the end of the file.
async fn read_piece(file: Arc<SpooledFile>, at: u64) -> io::Result<(Arc<SpooledFile>, Bytes)> {
    // Positioned reads leave the shared position alone, so several downloads can use one file.
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
    async fn an_object_written_in_pieces_is_read_completely() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = SpoolWriter::new(folder.path()).await.unwrap();
        let piece = vec![7; 700];
        for _ in 0..3 {
            spool.write(&piece).await.unwrap();
        }

        let spooled = spool.finish().await.unwrap();
        let whole = vec![7; 2100];
        assert_eq!(spooled.size(), 2100);
        assert_eq!(spooled.head(), &whole[..1024]);
        assert_eq!(spooled.sha256(), holdfast_domain::hash::sha256(&whole));
        assert_eq!(spooled.read().await.unwrap(), whole);
        assert_eq!(spooled.read().await.unwrap(), whole);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
