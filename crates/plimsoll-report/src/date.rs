//! Dates that others wrote.

use std::fmt::Write as _;
use std::time::SystemTime;

/// RFC 3339 in UTC, to the second; `None` before 1970 and beyond the year 9999, which certificates
/// may name.
pub(crate) fn date(time: SystemTime) -> Option<String> {
    time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let mut text = String::new();
    write!(text, "{}", humantime::format_rfc3339_seconds(time)).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_date_is_text_or_none() {
        let epoch = SystemTime::UNIX_EPOCH;
        let second = Duration::from_secs(1);
        assert_eq!(date(epoch), Some("1970-01-01T00:00:00Z".to_owned()));
        assert_eq!(date(epoch - second), None);
        let last = epoch + Duration::from_secs(253_402_300_799);
        assert_eq!(date(last), Some("9999-12-31T23:59:59Z".to_owned()));
        assert_eq!(date(last + second), None);
    }
}
