//! What a child writes, kept within bounds.

use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Reads a pipe to its end on a thread of its own and keeps the last bytes.
#[derive(Debug)]
pub(super) struct Tail {
    kept: Arc<Mutex<Kept>>,
    ended: Receiver<()>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    cut: bool,
}

impl Tail {
    /// Starts reading `pipe`; never more than `limit` bytes are returned.
    pub(super) fn new(mut pipe: impl Read + Send + 'static, limit: usize) -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (end, ended) = sync_channel(1);
        let shared = Arc::clone(&kept);
        thread::spawn(move || {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                kept.bytes.extend_from_slice(&buffer[..length]);
                // Cut rarely: dropping from the front moves what remains.
                if kept.bytes.len() > limit * 2 {
                    kept.keep_last(limit);
                }
            }
            // The other side may have given up waiting.
            end.send(()).ok();
        });
        Self { kept, ended }
    }

    /// What was written, the last `limit` bytes of it, and whether some is missing before.
    ///
    /// Waits for the end of the pipe for a moment only: a process that left the group may hold it
    /// open for ever.
    pub(super) fn text(&self, limit: usize) -> (String, bool) {
        const PATIENCE: Duration = Duration::from_millis(500);
        match self.ended.recv_timeout(PATIENCE) {
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.keep_last(limit);
        (String::from_utf8_lossy(&kept.bytes).into_owned(), kept.cut)
    }
}

impl Kept {
    fn keep_last(&mut self, limit: usize) {
        let surplus = self.bytes.len().saturating_sub(limit);
        if surplus > 0 {
            self.bytes.drain(..surplus);
            self.cut = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn short_output_is_kept_whole() {
        let tail = Tail::new(Cursor::new(b"one\ntwo\n".to_vec()), 100);
        assert_eq!(tail.text(100), ("one\ntwo\n".to_owned(), false));
    }

    #[test]
    fn long_output_keeps_its_end() {
        let mut written = vec![b'.'; 100_000];
        written.extend_from_slice(b"the end");
        let tail = Tail::new(Cursor::new(written), 7);
        assert_eq!(tail.text(7), ("the end".to_owned(), true));
    }
}
