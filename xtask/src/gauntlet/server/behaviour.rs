//! What a server does with connections and requests. Behaviours compose: accept, delay, reply, close.

use std::time::Duration;

/// A request, as far as behaviours depend on it.
#[derive(Debug, Clone)]
pub(in crate::gauntlet) struct Turn {
    /// Its number among all, from 0, in the order in which they were read.
    pub(in crate::gauntlet) number: u64,
    /// Time since the first request.
    pub(in crate::gauntlet) since_first: Duration,
    /// Path and query.
    pub(in crate::gauntlet) target: String,
}

impl Turn {
    /// Whether it is the last one of each `n`.
    pub(in crate::gauntlet) fn is_every(&self, n: u64) -> bool {
        self.number % n == n - 1
    }

    /// A number in `0.0..1.0` that depends on [`Turn::number`] alone.
    ///
    /// Source: `SplitMix64` (Steele, Lea and Flood, 2014).
    pub(in crate::gauntlet) fn random(&self) -> f64 {
        let mut z = (self.number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A server of HTTP/1.1.
#[derive(Debug, Clone, Copy)]
pub(in crate::gauntlet) struct Behaviour {
    pub(in crate::gauntlet) accept: Accept,
    /// Whether one request is served at a time.
    pub(in crate::gauntlet) is_serial: bool,
    /// How long a request takes.
    pub(in crate::gauntlet) delay: fn(&Turn) -> Duration,
    pub(in crate::gauntlet) reply: fn(&Turn) -> Reply,
    /// Requests after which a connection is closed without a word.
    pub(in crate::gauntlet) close_after: Option<u64>,
}

/// When connections are accepted.
#[derive(Debug, Clone, Copy)]
pub(in crate::gauntlet) enum Accept {
    AtOnce,
    /// None before this time since the first one waits to be accepted.
    Late(Duration),
}

/// Answers each request at once.
pub(in crate::gauntlet) const PLAIN: Behaviour = Behaviour {
    accept: Accept::AtOnce,
    is_serial: false,
    delay: |_| Duration::ZERO,
    reply: |_| Reply::ok(),
    close_after: None,
};

/// How a reply reaches the client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::gauntlet) enum Pace {
    AtOnce,
    /// A byte at a time from this one on, with a pause after each.
    Dribble {
        from: usize,
        pause: Duration,
    },
    /// The bytes up to this one, a pause, the rest.
    Parts {
        at: usize,
        pause: Duration,
    },
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gauntlet) enum End {
    /// All bytes are written, and the connection stays open.
    Whole,
    /// All bytes are written, and the connection is closed.
    WholeThenClose,
    /// After this number of bytes the connection is reset.
    Reset(usize),
    /// After this number of bytes the connection is closed.
    Close(usize),
    /// Nothing is written, and the connection stays open.
    Never,
}

/// A response with what happens to it on the way.
#[derive(Debug, Clone)]
pub(in crate::gauntlet) struct Reply {
    pub(in crate::gauntlet) status: u16,
    /// What the client receives if nothing happens to it.
    pub(in crate::gauntlet) bytes: Vec<u8>,
    pub(in crate::gauntlet) pace: Pace,
    pub(in crate::gauntlet) end: End,
}

/// Length of the head of [`Reply::ok`].
pub(in crate::gauntlet) const HEAD: usize = "HTTP/1.1 200 X\r\ncontent-length: 5\r\n\r\n".len();

impl Reply {
    /// A status with fields, each with its line end, and content.
    pub(in crate::gauntlet) fn new(status: u16, fields: &str, content: &[u8]) -> Self {
        let mut bytes = format!("HTTP/1.1 {status} X\r\n{fields}\r\n").into_bytes();
        bytes.extend_from_slice(content);
        Self {
            status,
            bytes,
            pace: Pace::AtOnce,
            end: End::Whole,
        }
    }

    /// 200 with five bytes.
    pub(in crate::gauntlet) fn ok() -> Self {
        Self::status(200)
    }

    /// A status with five bytes.
    pub(in crate::gauntlet) fn status(status: u16) -> Self {
        Self::new(status, "content-length: 5\r\n", b"hello")
    }

    /// 200 with content of a length.
    pub(in crate::gauntlet) fn sized(length: usize) -> Self {
        let field = format!("content-length: {length}\r\n");
        Self::new(200, &field, &vec![b'x'; length])
    }

    /// The same behind interim responses.
    pub(in crate::gauntlet) fn behind(mut self, interim: &str) -> Self {
        self.bytes.splice(..0, interim.bytes());
        self
    }

    pub(in crate::gauntlet) fn paced(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    pub(in crate::gauntlet) fn ending(self, end: End) -> Self {
        Self { end, ..self }
    }

    /// No response.
    pub(in crate::gauntlet) fn never() -> Self {
        Self::ok().ending(End::Never)
    }
}

/// A server of HTTP/2 with prior knowledge.
#[derive(Debug, Clone, Copy)]
pub(in crate::gauntlet) struct Http2Behaviour {
    /// `SETTINGS_MAX_CONCURRENT_STREAMS`.
    pub(in crate::gauntlet) max_streams: Option<u32>,
    /// Requests after which a connection says GOAWAY.
    pub(in crate::gauntlet) goaway_after: Option<u64>,
    pub(in crate::gauntlet) delay: fn(&Turn) -> Duration,
    pub(in crate::gauntlet) reply: fn(&Turn) -> Http2Reply,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gauntlet) enum Http2Reply {
    Whole,
    /// `REFUSED_STREAM`.
    Refused,
    /// `INTERNAL_ERROR` within the content.
    ResetInBody,
    Never,
}

/// Answers each request at once.
pub(in crate::gauntlet) const PLAIN_HTTP2: Http2Behaviour = Http2Behaviour {
    max_streams: None,
    goaway_after: None,
    delay: |_| Duration::ZERO,
    reply: |_| Http2Reply::Whole,
};
