//! The `date` field of responses (RFC 9110, section 6.6.1), written once a second.

use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_model::Clock;

/// `date: Sun, 06 Nov 1994 08:49:37 GMT` with its line end, kept until the second is over.
#[derive(Debug)]
pub struct DateLine {
    line: Vec<u8>,
    /// When it has to be written again.
    until: Option<Instant>,
}

impl DateLine {
    /// A line that will be written on first use.
    pub const fn new() -> Self {
        Self {
            line: Vec::new(),
            until: None,
        }
    }

    /// The line that holds at `now`.
    #[inline]
    pub fn at<C: Clock>(&mut self, now: Instant, clock: &C) -> &[u8] {
        if self.until.is_none_or(|until| now >= until) {
            self.write(now, clock.wall());
        }
        &self.line
    }

    #[cold]
    fn write(&mut self, now: Instant, wall: SystemTime) {
        let since_epoch = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        let rest_of_second = 1_000_000_000 - since_epoch.subsec_nanos();
        self.until = Some(now + Duration::from_nanos(rest_of_second.into()));
        self.line.clear();
        let date = httpdate::HttpDate::from(UNIX_EPOCH + since_epoch);
        write!(self.line, "date: {date}\r\n").expect("a Vec takes whatever is written");
    }
}

impl Default for DateLine {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::VirtualClock;

    use super::*;

    #[test]
    fn the_line_follows_the_clock_second_by_second() {
        let clock = VirtualClock::new();
        clock.advance(Duration::from_millis(784_111_777_700));
        let mut line = DateLine::new();
        let first = b"date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        assert_eq!(line.at(clock.now(), &clock), first);
        clock.advance(Duration::from_millis(299));
        assert_eq!(line.at(clock.now(), &clock), first);
        clock.advance(Duration::from_millis(1));
        let second = b"date: Sun, 06 Nov 1994 08:49:38 GMT\r\n";
        assert_eq!(line.at(clock.now(), &clock), second);
    }
}
