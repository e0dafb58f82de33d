//! W3C Trace Context: a trace that a client began is continued, or one is begun.
//!
//! Source: W3C Recommendation "Trace Context" (Level 1), sections 3.2 and 4.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use http::header::{HeaderName, HeaderValue};

use crate::action::{Action, Answer};
use crate::message::fields::FieldEdits;
use crate::message::request::{Request, TraceNote};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The fields of a trace.
pub(super) const FIELDS: [HeaderName; 2] = [TRACEPARENT, TRACESTATE];

/// Settings of W3C trace context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// The trace of a client is continued rather than replaced by one of our own.
    pub accept: bool,
    /// Of a hundred traces that are begun here, how many are to be recorded.
    pub sampled: u8,
}

/// The parsed `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parent {
    trace: u128,
    span: u64,
    flags: u8,
}

/// Bit of the flags: the caller may have recorded it.
const SAMPLED: u8 = 1;

impl Parent {
    /// The value of the field, or nothing if it is not valid. Later versions may have more behind.
    fn parse(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        let mut parts = text.splitn(4, '-');
        let mut hex = |length: usize| {
            let part = parts.next()?;
            let is_hex = part.len() == length
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
            is_hex
                .then(|| u128::from_str_radix(part, 16).ok())
                .flatten()
        };
        let (version, trace, span) = (hex(2)?, hex(32)?, hex(16)?);
        let rest = parts.next()?;
        let flags = match rest.split_once('-') {
            None => rest,
            Some((flags, _)) if version > 0 => flags,
            Some(_) => return None,
        };
        let is_hex = flags
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if version == 0xff || trace == 0 || span == 0 || flags.len() != 2 || !is_hex {
            return None;
        }
        Some(Self {
            trace,
            span: u64::try_from(span).ok()?,
            flags: u8::from_str_radix(flags, 16).ok()?,
        })
    }
}

impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace, self.span, self.flags
        )
    }
}

/// Makes every request a part of a trace.
pub(super) struct Traced {
    trace: Trace,
    random: RefCell<fastrand::Rng>,
    inner: Rc<dyn Action>,
}

impl Traced {
    pub(super) fn new(trace: Trace, inner: Rc<dyn Action>) -> Self {
        Self {
            trace,
            random: RefCell::new(fastrand::Rng::new()),
            inner,
        }
    }

    /// The parent of whatever is done for the request further in, and the span of the client that it continues.
    fn parent(&self, request: &Request<'_>) -> (Parent, Option<u64>) {
        let random = &mut *self.random.borrow_mut();
        let span = random.u64(1..);
        let given = request
            .header(TRACEPARENT.as_str())
            .and_then(Parent::parse)
            .filter(|_| self.trace.accept);
        if let Some(given) = given {
            // Of the flags, a participant passes on only what it knows.
            let flags = given.flags & SAMPLED;
            return (
                Parent {
                    span,
                    flags,
                    ..given
                },
                Some(given.span),
            );
        }
        let is_sampled = random.u8(..100) < self.trace.sampled;
        let parent = Parent {
            trace: random.u128(1..),
            span,
            flags: u8::from(is_sampled),
        };
        (parent, None)
    }
}

impl Action for Traced {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let (parent, client) = self.parent(request);
        request.traced(TraceNote {
            trace: parent.trace,
            span: parent.span,
            parent: client,
            is_sampled: parent.flags & SAMPLED != 0,
        });
        let mut edits = FieldEdits::new();
        if client.is_none() {
            edits = edits.remove(TRACESTATE);
        }
        if let Ok(value) = HeaderValue::from_str(&parent.to_string()) {
            edits = edits.set(TRACEPARENT, value);
        }
        request.edited(&edits, |request| self.inner.handle(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_read_as_the_recommendation_says() {
        let valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parent = Parent::parse(valid.as_bytes()).unwrap();
        assert_eq!(parent.to_string(), valid);
        let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-else";
        assert_eq!(Parent::parse(later.as_bytes()), Some(parent));
        for wrong in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-+1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(Parent::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
