//! Text that comes in pieces, cut anywhere.

/// The state within a character that is not complete.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Utf8 {
    begun: [u8; 4],
    length: usize,
}

/// Not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotUtf8;

impl Utf8 {
    /// Checks the next piece.
    pub(super) fn push(&mut self, mut piece: &[u8]) -> Result<(), NotUtf8> {
        while self.length > 0 {
            let Some((first, rest)) = piece.split_first() else {
                return Ok(());
            };
            self.begun[self.length] = *first;
            self.length += 1;
            piece = rest;
            match str::from_utf8(&self.begun[..self.length]) {
                Ok(_) => self.length = 0,
                // No character has more than four bytes: then it is valid, or it is an error.
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(NotUtf8),
            }
        }
        match str::from_utf8(piece) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_none() => {
                let begun = &piece[error.valid_up_to()..];
                self.begun[..begun.len()].copy_from_slice(begun);
                self.length = begun.len();
                Ok(())
            }
            Err(_) => Err(NotUtf8),
        }
    }

    /// The text has ended.
    pub(super) fn finish(self) -> Result<(), NotUtf8> {
        if self.length == 0 {
            Ok(())
        } else {
            Err(NotUtf8)
        }
    }
}
