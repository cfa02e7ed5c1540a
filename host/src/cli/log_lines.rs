//! Writes log lines on a thread of their own, so that no request waits for a slow reader.
//!
//! Waking a thread costs more than a line, so lines are gathered for some milliseconds after the last ones were written.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Time for which lines are gathered.
const GATHERED: Duration = Duration::from_millis(10);
/// Bytes that wait for a slow reader. Requests wait beyond that: no line is dropped.
const MOST: usize = 1024 * 1024;

/// Where lines are written; cheap to clone.
#[derive(Clone)]
pub struct LogLines(Arc<LineQueue>);

#[derive(Default)]
struct LineQueue {
    waiting: Mutex<WaitingLines>,
    filled: Condvar,
    drained: Condvar,
}

#[derive(Default)]
struct WaitingLines {
    text: Vec<u8>,
    is_closed: bool,
}

/// Writes the lines that wait when it is dropped.
pub struct LogGuard {
    queue: Arc<LineQueue>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the thread that writes lines.
pub fn start(reader: impl Write + Send + 'static) -> io::Result<(LogLines, LogGuard)> {
    let queue = Arc::<LineQueue>::default();
    let written = queue.clone();
    // A thread and no task: writing to a slow terminal or pipe would block a worker of the runtime.
    let thread = thread::Builder::new().name("log".into());
    let thread = thread.spawn(move || written.write_all_to(reader))?;
    let guard = LogGuard {
        queue: queue.clone(),
        thread: Some(thread),
    };

    Ok((LogLines(queue), guard))
}

impl LineQueue {
    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, line: &[u8]) {
        let waiting = self.drained.wait_while(self.lock(), |waiting| {
            waiting.text.len() >= MOST && !waiting.is_closed
        });
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);

        // Work that outlives the log has no reader any more.
        if waiting.is_closed {
            return;
        }

        // The writer sleeps only while nothing waits, so further lines need no wake-up.
        if waiting.text.is_empty() {
            self.filled.notify_one();
        }

        waiting.text.extend_from_slice(line);
    }

    fn write_all_to(&self, mut reader: impl Write) {
        let mut text = Vec::new();
        loop {
            let waiting = self.filled.wait_while(self.lock(), |waiting| {
                waiting.text.is_empty() && !waiting.is_closed
            });
            let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
            let is_closed = waiting.is_closed;
            // Swapped and not copied: the lock is held for an instant, and both buffers keep their memory.
            mem::swap(&mut text, &mut waiting.text);
            drop(waiting);

            if text.is_empty() {
                return;
            }

            self.drained.notify_all();

            // A log without a reader stops nothing.
            let _ = reader.write_all(&text);
            text.clear();

            if !is_closed {
                thread::sleep(GATHERED);
            }
        }
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        // The writer has to see the end, and requests that wait for room must not wait for ever.
        self.queue.filled.notify_one();
        self.queue.drained.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

impl Write for &LogLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A reader that takes a piece of text when it is allowed to.
    struct SlowReader {
        allowed: Receiver<()>,
        read: Sender<Vec<u8>>,
    }

    impl Write for SlowReader {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let _ = self.allowed.recv();
            self.read.send(text.to_vec()).map_err(io::Error::other)?;
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_line_is_lost_and_a_full_queue_waits_for_its_reader() {
        let ((allow, allowed), (read, pieces)) = (channel(), channel());
        let (lines, guard) = start(SlowReader { allowed, read }).expect("a thread");
        let line = [[b'a'; 1023].as_slice(), b"\n"].concat();
        let (written, counted) = channel();
        let writer = thread::spawn({
            let line = line.clone();
            move || {
                for _ in 0..3 * MOST / line.len() {
                    (&lines).write_all(&line).expect("written");
                    written.send(()).expect("counted");
                }
            }
        });

        // One piece is with the reader and one waits, so the third megabyte has to wait.
        while counted.recv_timeout(20 * GATHERED).is_ok() {}
        assert!(!writer.is_finished());

        drop(allow);
        writer.join().expect("all lines are written");
        drop(guard);
        let text: Vec<u8> = pieces.iter().flatten().collect();
        assert_eq!(text.len(), 3 * MOST);
        assert!(text.chunks(line.len()).all(|some| some == line));
    }
}
