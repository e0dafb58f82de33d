//! The end of what a program wrote.

use std::io::Read;
use std::sync::Arc;
use std::thread;

use super::{State, WatchState};

/// Enough for the messages with which a program explains its end, in bytes.
pub(super) const FEW: usize = 8 * 1024;

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    /// Maximum number of bytes shown.
    most: usize,
    /// Whether some were dropped from the front.
    cut: bool,
    /// Whether more may come.
    pub(super) open: bool,
}

impl Tail {
    /// The end of a stream of which nothing has come yet; `most` bytes of it will be kept.
    pub(super) fn open(most: usize) -> Self {
        Self {
            most,
            open: true,
            ..Self::default()
        }
    }

    /// The kept output as text, from the start of a line if its beginning is missing.
    pub(super) fn text(&self) -> String {
        let surplus = self.bytes.len().saturating_sub(self.most);
        let mut kept = self.bytes.get(surplus..).unwrap_or_default();
        if self.cut || surplus > 0 {
            let mut lines = kept.splitn(2, |byte| *byte == b'\n');
            // A single line that is too long is better shown in part than left out.
            if let (Some(_), Some(rest @ [_, ..])) = (lines.next(), lines.next()) {
                kept = rest;
            }
        }
        String::from_utf8_lossy(kept).into_owned()
    }

    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        // Cut rarely: dropping from the front moves what remains.
        if self.bytes.len() > self.most * 2 {
            self.bytes.drain(..self.bytes.len() - self.most);
            self.cut = true;
        }
    }
}

/// Reads `stream` to its end on a thread of its own.
pub(super) fn read(
    mut stream: impl Read + Send + 'static,
    shared: Arc<WatchState>,
    tail: fn(&mut State) -> &mut Tail,
) {
    thread::spawn(move || {
        let mut chunk = [0; 4 * 1024];
        loop {
            match stream.read(&mut chunk) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                Ok(read) => {
                    let chunk = chunk.get(..read).unwrap_or_default();
                    shared.update(|state| tail(state).push(chunk));
                }
            }
        }
        shared.update(|state| tail(state).open = false);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(most: usize, chunks: &[&str]) -> String {
        let mut tail = Tail::open(most);
        for chunk in chunks {
            tail.push(chunk.as_bytes());
        }
        tail.text()
    }

    #[test]
    fn the_tail_is_bounded_and_starts_at_a_line() {
        let mut tail = Tail::open(FEW);
        for number in 0..10_000 {
            tail.push(format!("line {number}\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.len() <= FEW && text.len() > FEW / 2);
        assert!(text.starts_with("line "));
        assert!(text.ends_with("line 9999\n"));
        assert!(tail.bytes.len() <= FEW * 2);
    }

    #[test]
    fn short_output_is_kept_whole() {
        assert_eq!(tail(100, &["one\n", "two\n"]), "one\ntwo\n");
        assert_eq!(tail(8, &["one\n", "two\n"]), "one\ntwo\n");
        assert_eq!(tail(7, &["one\n", "two\n"]), "two\n");
    }

    #[test]
    fn one_line_that_is_too_long_keeps_its_end() {
        let dots = ".".repeat(100_000);
        assert_eq!(tail(7, &[&dots, "the end"]), "the end");
        assert_eq!(tail(8, &[&dots, "the end\n"]), "the end\n");
    }
}
