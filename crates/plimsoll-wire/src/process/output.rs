//! The end of what a program wrote.

use std::io::Read;
use std::sync::Arc;
use std::thread;

use super::{Shared, State};

/// Enough for the messages with which a program explains its end.
const KEPT: usize = 8 * 1024;

/// The last [`KEPT`] bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    /// Whether more may come.
    pub(super) open: bool,
}

impl Tail {
    /// What is kept, from the start of a line, as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        if self.bytes.len() > KEPT {
            let start = self.bytes.len() - KEPT;
            let line = self.bytes.iter().skip(start).position(|b| *b == b'\n');
            self.bytes
                .drain(..line.map_or(start, |line| start + line + 1));
        }
    }
}

/// Reads `stream` to its end on a thread of its own.
pub(super) fn read(
    mut stream: impl Read + Send + 'static,
    shared: Arc<Shared>,
    tail: fn(&mut State) -> &mut Tail,
) {
    thread::spawn(move || {
        let mut chunk = [0; 1024];
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

    #[test]
    fn the_tail_is_bounded_and_starts_at_a_line() {
        let mut tail = Tail::default();
        for number in 0..10_000 {
            tail.push(format!("line {number}\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.len() <= KEPT && text.len() > KEPT / 2);
        assert!(text.starts_with("line "));
        assert!(text.ends_with("line 9999\n"));
    }
}
