//! Age and freshness lifetime of stored responses (RFC 9111, section 4.2).

use std::time::{Duration, SystemTime};

use http::header::{AGE, DATE, EXPIRES, HeaderName, LAST_MODIFIED};
use http::{HeaderMap, StatusCode};

use super::directives::Directives;
use super::lifetimes::Lifetimes;

/// When a response was requested and when its head came, by the clock of the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) requested: SystemTime,
    pub(super) received: SystemTime,
}

/// The longest lifetime that is guessed.
const MOST_GUESSED: Duration = Duration::from_hours(24);

/// The age of a response when it was received (section 4.2.3: `corrected_initial_age`).
pub(super) fn initial_age(fields: &HeaderMap, times: Times) -> Duration {
    let since = |from: SystemTime, to: SystemTime| to.duration_since(from).unwrap_or_default();
    let apparent = date(fields, &DATE).map_or(Duration::ZERO, |date| since(date, times.received));
    let delay = since(times.requested, times.received);
    let corrected = age_value(fields).saturating_add(delay);
    apparent.max(corrected)
}

/// The first valid `Age`; of a list the first number (section 5.1).
fn age_value(fields: &HeaderMap) -> Duration {
    let value = fields.get(AGE).and_then(|value| value.to_str().ok());
    let first = value.and_then(|value| value.split(',').next());
    let seconds = first.and_then(|first| {
        let first = first.trim();
        let is_number = !first.is_empty() && first.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| first.parse().unwrap_or(u64::from(u32::MAX)))
    });
    Duration::from_secs(seconds.unwrap_or_default().min(u64::from(u32::MAX)))
}

/// How long a response is fresh (section 4.2.1): as it says itself, or else as the configuration says for its status.
///
/// - `received`: when its head came, which counts as its date if it has none.
pub(super) fn given_lifetime(
    status: StatusCode,
    fields: &HeaderMap,
    directives: &Directives,
    received: SystemTime,
    defaults: &Lifetimes,
) -> Option<Duration> {
    explicit_lifetime(fields, directives, received).or_else(|| defaults.for_status(status))
}

/// A guess at how long a response is fresh for which nothing is given (section 4.2.2): a tenth of the time since it was changed.
pub(super) fn guessed_lifetime(
    status: StatusCode,
    fields: &HeaderMap,
    directives: &Directives,
    received: SystemTime,
) -> Option<Duration> {
    if !is_guessable(status) && !directives.flags.public {
        return None;
    }
    let date = date(fields, &DATE).unwrap_or(received);
    let modified = self::date(fields, &LAST_MODIFIED)?;
    let unchanged = date.duration_since(modified).unwrap_or_default();
    Some((unchanged / 10).min(MOST_GUESSED))
}

/// The lifetime that the response itself gives.
fn explicit_lifetime(
    fields: &HeaderMap,
    directives: &Directives,
    received: SystemTime,
) -> Option<Duration> {
    if let Some(until) = directives.fresh_until {
        return Some(until.duration_since(received).unwrap_or_default());
    }
    if let Some(given) = directives.s_maxage.or(directives.max_age) {
        return Some(given);
    }
    if directives.flags.is_invalid {
        return Some(Duration::ZERO);
    }
    if directives.is_targeted || !fields.contains_key(EXPIRES) {
        return None;
    }
    // More than one, or an invalid one such as 0, means that it is expired (section 5.3).
    let is_single = fields.get_all(EXPIRES).iter().count() == 1;
    let expires = date(fields, &EXPIRES).filter(|_| is_single);
    let date = date(fields, &DATE).unwrap_or(received);
    let left = expires.map(|expires| expires.duration_since(date).unwrap_or_default());
    Some(left.unwrap_or_default())
}

/// Statuses whose lifetime may be guessed (RFC 9110, section 15.1).
pub(super) fn is_guessable(status: StatusCode) -> bool {
    [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(&status.as_u16())
}

/// A date as HTTP writes it; `None` if it is not valid.
pub(super) fn date(fields: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    let value = fields.get(name)?.to_str().ok()?;
    httpdate::parse_http_date(value.trim()).ok()
}

#[cfg(test)]
mod tests {
    use http::header::{CACHE_CONTROL, HeaderValue};

    use super::*;

    /// A Sunday.
    const NOW: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn at(seconds: u64) -> SystemTime {
        httpdate::parse_http_date(NOW).unwrap() + Duration::from_secs(seconds)
    }

    fn fields(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for (name, value) in pairs {
            fields.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        fields
    }

    fn lifetime_of(status: u16, pairs: &[(HeaderName, &str)]) -> Option<u64> {
        let fields = fields(pairs);
        let directives = Directives::of_response(&fields);
        let status = StatusCode::from_u16(status).unwrap();
        let defaults = Lifetimes::default();
        let lifetime = given_lifetime(status, &fields, &directives, at(0), &defaults)
            .or_else(|| guessed_lifetime(status, &fields, &directives, at(0)));
        lifetime.map(|lifetime| lifetime.as_secs())
    }

    #[test]
    fn lifetimes_come_from_the_most_specific_source() {
        let later = "Sun, 06 Nov 1994 08:50:37 GMT";
        let before = "Sun, 06 Nov 1994 08:48:37 GMT";
        for (status, pairs, expected) in [
            (200, vec![], None),
            (200, vec![(CACHE_CONTROL, "max-age=7, s-maxage=9")], Some(9)),
            (
                200,
                vec![(CACHE_CONTROL, "max-age=7"), (EXPIRES, later)],
                Some(7),
            ),
            (200, vec![(EXPIRES, later)], Some(60)),
            (200, vec![(EXPIRES, later), (DATE, before)], Some(120)),
            (200, vec![(EXPIRES, before)], Some(0)),
            (200, vec![(EXPIRES, "0")], Some(0)),
            (200, vec![(EXPIRES, later), (EXPIRES, later)], Some(0)),
            (
                200,
                vec![(CACHE_CONTROL, "max-age=x"), (EXPIRES, later)],
                Some(0),
            ),
            (200, vec![(LAST_MODIFIED, before)], Some(6)),
            (500, vec![(LAST_MODIFIED, before)], None),
            (
                500,
                vec![(LAST_MODIFIED, before), (CACHE_CONTROL, "public")],
                Some(6),
            ),
            (500, vec![(CACHE_CONTROL, "max-age=7")], Some(7)),
        ] {
            assert_eq!(lifetime_of(status, &pairs), expected, "{status} {pairs:?}");
        }
    }

    #[test]
    fn an_instant_of_nginx_is_counted_from_the_arrival() {
        let accel = HeaderName::from_static("x-accel-expires");
        for (value, expected) in [("@784111837", 60), ("@784111777", 0), ("@1", 0)] {
            let lifetime = lifetime_of(200, &[(CACHE_CONTROL, "no-store"), (accel.clone(), value)]);
            assert_eq!(lifetime, Some(expected), "{value}");
        }
    }

    #[test]
    fn ages_add_up() {
        let times = Times {
            requested: at(0),
            received: at(2),
        };
        let age = |pairs: &[(HeaderName, &str)]| initial_age(&fields(pairs), times).as_secs();
        assert_eq!(age(&[]), 2);
        assert_eq!(age(&[(AGE, "30")]), 32);
        assert_eq!(age(&[(AGE, "30, 40")]), 32);
        assert_eq!(age(&[(AGE, "x")]), 2);
        assert_eq!(age(&[(AGE, "-1")]), 2);
        assert_eq!(age(&[(DATE, "Sun, 06 Nov 1994 08:48:39 GMT")]), 60);
        // A clock that is ahead does not make it younger.
        assert_eq!(age(&[(DATE, "Sun, 06 Nov 1994 09:49:37 GMT")]), 2);
    }
}
