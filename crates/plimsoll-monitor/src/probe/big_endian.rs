//! Reading messages whose numbers have their highest byte first, as those of AMQP and Kafka.

/// What is left of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next bytes; `None` if the message ends before.
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn number8(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    pub(super) fn number16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().map(u16::from_be_bytes).ok()
    }

    pub(super) fn number32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().map(u32::from_be_bytes).ok()
    }
}
