//! Flow control: how much either side may still send (RFC 9113, section 5.2).

/// The largest window there is.
pub(crate) const MOST: u32 = (1 << 31) - 1;
/// The window of a new connection, and of a new stream unless SETTINGS say otherwise.
pub(crate) const INITIAL: u32 = 65_535;

/// The window for data of the peer.
///
/// Content that is handed on as it comes counts as consumed at once. Content that the caller keeps counts when the
/// caller has [consumed](Self::consume) it. The peer gets credit when half of the window has been consumed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveWindow {
    available: u32,
    consumed: u32,
    size: u32,
}

impl ReceiveWindow {
    pub(crate) fn new(size: u32) -> Self {
        Self {
            available: size,
            consumed: 0,
            size,
        }
    }

    /// Counts `length` bytes that came; false if the peer was not allowed to send them.
    #[must_use]
    pub(crate) fn count_received(&mut self, length: u32) -> bool {
        let is_allowed = self.reserve(length);
        if is_allowed {
            self.consumed += length;
        }
        is_allowed
    }

    /// Counts `length` bytes that came and are not consumed yet; false if the peer was not allowed to send them.
    #[must_use]
    pub(crate) fn reserve(&mut self, length: u32) -> bool {
        let Some(available) = self.available.checked_sub(length) else {
            return false;
        };
        self.available = available;
        true
    }

    /// Counts `length` bytes as consumed that were reserved; more than are outstanding count as those.
    pub(crate) fn consume(&mut self, length: u32) {
        let outstanding = self.size - self.available - self.consumed;
        self.consumed += length.min(outstanding);
    }

    /// The increment for `WINDOW_UPDATE`, once half of the window is consumed.
    pub(crate) fn credit(&mut self) -> Option<u32> {
        if self.consumed == 0 || self.consumed < self.size / 2 {
            return None;
        }
        self.available += self.consumed;
        Some(std::mem::take(&mut self.consumed))
    }
}

/// The window for our data; negative after the peer made its windows smaller (section 6.9.2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendWindow(i64);

impl SendWindow {
    pub(crate) fn new(size: u32) -> Self {
        Self(i64::from(size))
    }

    /// Bytes that may be sent now.
    pub(crate) fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Counts `length` bytes, no more than are available.
    pub(crate) fn spend(&mut self, length: usize) {
        debug_assert!(length <= self.available());
        self.0 -= i64::try_from(length).expect("no more than the window");
    }

    /// Changes the window; false if it would be too large.
    #[must_use]
    pub(crate) fn change(&mut self, by: i64) -> bool {
        self.0 += by;
        self.0 <= i64::from(MOST)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_send_window_may_become_negative() {
        let mut window = SendWindow::new(INITIAL);
        window.spend(60_000);
        assert!(window.change(-i64::from(INITIAL)));
        assert_eq!(window.available(), 0);
        assert!(window.change(60_001));
        assert_eq!(window.available(), 1);
        assert!(!window.change(i64::from(MOST)));
    }

    #[test]
    fn credit_comes_at_half() {
        let mut window = ReceiveWindow::new(100);
        assert!(window.count_received(49));
        assert_eq!(window.credit(), None);
        assert!(window.count_received(51));
        assert!(!window.count_received(1));
        assert_eq!(window.credit(), Some(100));
        assert!(window.count_received(100));
    }

    #[test]
    fn reserved_content_gives_credit_when_it_is_consumed() {
        let mut window = ReceiveWindow::new(100);
        assert!(window.reserve(100));
        assert!(!window.reserve(1));
        assert_eq!(window.credit(), None);
        window.consume(49);
        assert_eq!(window.credit(), None);
        window.consume(1);
        assert_eq!(window.credit(), Some(50));
        window.consume(1000);
        assert_eq!(window.credit(), Some(50));
        assert!(window.reserve(100));
    }

    proptest! {
        /// A peer that respects its credit is never refused, and never gets stuck.
        #[test]
        fn a_peer_that_respects_its_credit_goes_on(
            size in 0..=MOST,
            lengths in prop::collection::vec(any::<u32>(), 1..200),
        ) {
            let mut window = ReceiveWindow::new(size);
            let mut allowed = size;
            for length in lengths {
                let length = length % (allowed.max(1));
                prop_assert!(window.count_received(length));
                allowed = allowed - length + window.credit().unwrap_or(0);
                prop_assert!(allowed >= size / 2 && allowed <= size);
            }
        }
    }
}
