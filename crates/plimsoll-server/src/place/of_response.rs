//! Values of places once there is a response, and at its end.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::of_request::{joined, number, optional};
use super::{CapturedValues, Place, Unit, Values};
use crate::message::request::Notes;

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

impl Values for Notes {
    fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool {
        let upstream = self.upstream.as_ref();
        match place {
            Place::RequestId => optional(self.request_id.as_deref().map(str::as_bytes), out),
            Place::Trace => {
                let trace = self.trace.map(|note| format!("{:032x}", note.trace));
                optional(trace.as_deref().map(str::as_bytes), out)
            }
            Place::Content => optional(self.content.as_deref(), out),
            Place::User => optional(self.user.as_deref().map(str::as_bytes), out),
            Place::Claim(name) => {
                let claims = self.claims.as_ref();
                claims.is_some_and(|claims| claims.write(name, out))
            }
            Place::Route => {
                let route = self.route.as_ref().map(|route| route.name().as_bytes());
                optional(route, out)
            }
            Place::Upstream => optional(upstream.map(|it| it.upstream.as_bytes()), out),
            Place::UpstreamServer => optional(upstream.map(|it| it.server.as_bytes()), out),
            Place::UpstreamAddress => {
                let address = upstream.map(|it| it.server.rsplit("://").next().unwrap_or_default());
                optional(address.map(str::as_bytes), out)
            }
            Place::Attempts => upstream.is_some_and(|it| number(it.attempts, out)),
            Place::UpstreamTime(unit) => unit.optional(upstream.and_then(|it| it.head), out),
            Place::ConnectTime(unit) => unit.optional(upstream.and_then(|it| it.connect), out),
            _ => false,
        }
    }
}

impl Unit {
    /// Appends a time.
    pub(super) fn write(self, time: Duration, out: &mut Vec<u8>) {
        match self {
            Self::Seconds => {
                let milliseconds = time.subsec_millis();
                number(time.as_secs(), out);
                out.push(b'.');
                for divisor in [100, 10, 1] {
                    number(milliseconds / divisor % 10, out);
                }
            }
            Self::Milliseconds => _ = number(whole(time.as_millis()), out),
            Self::Microseconds => _ = number(whole(time.as_micros()), out),
        }
    }

    fn optional(self, time: Option<Duration>, out: &mut Vec<u8>) -> bool {
        if let Some(time) = time {
            self.write(time, out);
        }
        time.is_some()
    }
}

fn whole(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// What there is once the head of the response is known.
pub(crate) struct ResponseValues<'a> {
    /// Values of the request.
    pub(crate) captured: CapturedValues<'a>,
    pub(crate) notes: &'a Notes,
    pub(crate) status: StatusCode,
    pub(crate) fields: &'a HeaderMap,
}

impl Values for ResponseValues<'_> {
    fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool {
        match place {
            Place::Status => number(self.status.as_u16(), out),
            Place::ResponseHeader(name) => {
                let values = self.fields.get_all(name);
                joined(values.iter().map(HeaderValue::as_bytes), out)
            }
            Place::ResponseCookie(name) => {
                let values = self.fields.get_all(SET_COOKIE).iter();
                let values = values.filter_map(|value| value.to_str().ok());
                let mut pairs = values.filter_map(|it| it.split(';').next()?.split_once('='));
                let found = pairs.find(|(known, _)| known.trim() == &**name);
                optional(found.map(|(_, value)| value.trim().as_bytes()), out)
            }
            Place::CacheStatus => optional(cache_status(self.fields).map(str::as_bytes), out),
            Place::Map(map) if !self.captured.has(place) => {
                map.write(self, out);
                true
            }
            Place::Time(form) => {
                form.write(SystemClock.wall(), out);
                true
            }
            place => self.captured.write(place, out) || self.notes.write(place, out),
        }
    }
}

/// What the nearest cache did, in the words of nginx, by `Cache-Status` (RFC 9211).
pub(crate) fn cache_status(fields: &HeaderMap) -> Option<&'static str> {
    // Caches add their part behind those of the caches before them.
    let value = fields
        .get_all(CACHE_STATUS)
        .iter()
        .next_back()?
        .to_str()
        .ok()?;
    let last = value.rsplit(',').next()?;
    let has = |wanted: &str| last.split(';').any(|it| it.trim() == wanted);
    Some(if has("hit") {
        if has("fwd-status=304") {
            "REVALIDATED"
        } else if has("detail=stale") || has("detail=error") {
            "STALE"
        } else {
            "HIT"
        }
    } else if has("fwd=stale") {
        "EXPIRED"
    } else if has("fwd=bypass") || has("fwd=request") || has("fwd=method") {
        "BYPASS"
    } else {
        "MISS"
    })
}

/// What there is at the end of a response, for the log.
pub(crate) struct EndValues<'a> {
    /// Values of the request; none of one that was refused before it was read.
    pub(crate) captured: CapturedValues<'a>,
    /// Values of the head of the response.
    pub(crate) head: CapturedValues<'a>,
    pub(crate) notes: &'a Notes,
    pub(crate) time: SystemTime,
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) duration: Duration,
    pub(crate) is_whole: bool,
    /// Why there was no request.
    pub(crate) refused: Option<&'static str>,
}

impl Values for EndValues<'_> {
    fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool {
        match place {
            Place::Status => number(self.status, out),
            Place::Bytes => number(self.bytes, out),
            Place::Duration(unit) => {
                unit.write(self.duration, out);
                true
            }
            Place::Complete => {
                let text: &[u8] = if self.is_whole { b"true" } else { b"false" };
                optional(Some(text), out)
            }
            Place::Refused => optional(self.refused.map(str::as_bytes), out),
            Place::Time(form) => {
                form.write(self.time, out);
                true
            }
            Place::Map(map) if !self.captured.has(place) && !self.head.has(place) => {
                map.write(self, out);
                true
            }
            place => {
                self.captured.write(place, out)
                    || self.head.write(place, out)
                    || self.notes.write(place, out)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_decimals() {
        let written = |unit: Unit, micros| {
            let mut out = Vec::new();
            unit.write(Duration::from_micros(micros), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(Unit::Seconds, 1_002_999), "1.002");
        assert_eq!(written(Unit::Seconds, 45), "0.000");
        assert_eq!(written(Unit::Milliseconds, 1_002_999), "1002");
        assert_eq!(written(Unit::Microseconds, 45), "45");
    }

    #[test]
    fn the_nearest_cache_counts() {
        let status = |text| {
            let mut fields = HeaderMap::new();
            fields.insert(CACHE_STATUS, HeaderValue::from_static(text));
            cache_status(&fields)
        };
        for (text, expected) in [
            ("plimsoll; hit", "HIT"),
            ("plimsoll; hit; detail=stale", "STALE"),
            ("plimsoll; hit; fwd=stale; fwd-status=304", "REVALIDATED"),
            ("plimsoll; fwd=uri-miss; stored", "MISS"),
            ("other; hit, plimsoll; fwd=vary-miss", "MISS"),
            ("plimsoll; fwd=stale; stored", "EXPIRED"),
            ("plimsoll; fwd=bypass", "BYPASS"),
        ] {
            assert_eq!(status(text), Some(expected), "{text}");
        }
        assert_eq!(cache_status(&HeaderMap::new()), None);
    }
}
