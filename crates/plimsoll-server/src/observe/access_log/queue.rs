//! Lines on their way from the workers to the thread that writes them.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::counters::Counters;
use crate::observe::access_log::OpenLog;

/// Time for which lines are gathered, so that a busy server does not wake the writer for each of them.
const GATHER: Duration = Duration::from_millis(100);

pub(super) struct Queue {
    waiting: Mutex<WaitingLines>,
    changed: Condvar,
    most_bytes: usize,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct WaitingLines {
    /// Whole lines.
    lines: Vec<u8>,
    must_reopen: bool,
    is_over: bool,
}

impl Queue {
    pub(super) fn new(most_bytes: usize, counters: Arc<Counters>) -> Self {
        Self {
            waiting: Mutex::default(),
            changed: Condvar::new(),
            most_bytes,
            counters,
        }
    }

    /// Adds a line; false if there is no room, which is counted.
    pub(super) fn push(&self, line: &[u8]) -> bool {
        let mut waiting = self.lock();
        let before = waiting.lines.len();
        let after = before + line.len();
        if after > self.most_bytes || waiting.is_over {
            drop(waiting);
            self.counters.log_dropped(1);
            return false;
        }
        waiting.lines.extend_from_slice(line);
        drop(waiting);
        let half = self.most_bytes / 2;
        if before == 0 || (before < half && after >= half) {
            self.changed.notify_one();
        }
        true
    }

    pub(super) fn reopen(&self) {
        self.lock().must_reopen = true;
        self.changed.notify_one();
    }

    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_one();
    }

    /// Writes lines until there will be no more.
    pub(super) fn write(&self, mut sink: Box<dyn Write + Send>, mut open: OpenLog) {
        let mut batch = Vec::new();
        loop {
            let (must_reopen, is_over) = self.wait(&mut batch);
            if !batch.is_empty() {
                let written = sink.write_all(&batch).and_then(|()| sink.flush());
                if written.is_err() {
                    let lines = batch.split(|byte| *byte == b'\n').count() - 1;
                    self.counters.log_dropped(lines as u64);
                }
                batch.clear();
            }
            if must_reopen {
                // Without a new one, the old one is better than none.
                if let Ok(opened) = open() {
                    sink = opened;
                }
            }
            if is_over {
                return;
            }
        }
    }

    /// Takes what waits into `batch` once there is something to do; whether to open anew, and to end.
    fn wait(&self, batch: &mut Vec<u8>) -> (bool, bool) {
        let is_urgent = |waiting: &WaitingLines| {
            waiting.must_reopen || waiting.is_over || waiting.lines.len() >= self.most_bytes / 2
        };
        let waiting = self
            .changed
            .wait_while(self.lock(), |waiting| {
                waiting.lines.is_empty() && !is_urgent(waiting)
            })
            .unwrap_or_else(PoisonError::into_inner);
        let (mut waiting, _) = self
            .changed
            .wait_timeout_while(waiting, GATHER, |waiting| !is_urgent(waiting))
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut waiting.lines, batch);
        (std::mem::take(&mut waiting.must_reopen), waiting.is_over)
    }

    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("most_bytes", &self.most_bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc;

    use plimsoll_testkit::eventually;

    use super::*;
    use crate::observe::access_log::{AccessLog, LogFormat};

    /// Hands over what is written, with the number of the opening.
    struct Sink(usize, mpsc::Sender<(usize, String)>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            self.1.send((self.0, text)).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn opening() -> (OpenLog, mpsc::Receiver<(usize, String)>) {
        let (sender, written) = mpsc::channel();
        let mut number = 0;
        let open: OpenLog = Box::new(move || {
            number += 1;
            Ok(Box::new(Sink(number, sender.clone())))
        });
        (open, written)
    }

    #[test]
    fn lines_are_written_in_order_reopened_between_and_all_at_the_end() {
        let counters = Arc::<Counters>::default();
        let log = AccessLog::new(LogFormat::json(), 100, Arc::clone(&counters));
        let (open, written) = opening();
        let writer = log.write_to(open).unwrap();
        let queue = Arc::clone(&log.handle.0);
        queue.push(b"one\n");
        writer.reopen();
        assert_eq!(written.recv().unwrap(), (1, "one\n".to_owned()));
        eventually(|| !queue.lock().must_reopen);
        queue.push(b"two\n");
        queue.push(b"three\n");
        drop(log);
        writer.finish();
        let rest: String = written
            .iter()
            .map(|(number, text)| {
                assert_eq!(number, 2);
                text
            })
            .collect();
        assert_eq!(rest, "two\nthree\n");
        assert_eq!(counters.snapshot().log_dropped, 0);
    }

    #[test]
    fn lines_without_room_and_lines_that_cannot_be_written_are_counted() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let counters = Arc::<Counters>::default();
        let log = AccessLog::new(LogFormat::json(), 8, Arc::clone(&counters));
        for line in [&b"one\n"[..], b"two\n", b"three\n"] {
            log.handle.0.push(line);
        }
        assert_eq!(counters.snapshot().log_dropped, 1);
        let writer = log.write_to(Box::new(|| Ok(Box::new(Full)))).unwrap();
        writer.finish();
        assert_eq!(counters.snapshot().log_dropped, 3);
        log.handle.0.push(b"four\n");
        assert_eq!(counters.snapshot().log_dropped, 4);
    }
}
