//! Limits for clients; all are on by default, and reaching one is counted.

use std::time::Duration;

use plimsoll_wire::h1::RequestLimits;

/// Limits of an engine, the same for all of its listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes and fields of one request.
    pub request: RequestLimits,
    /// Connections open at a time.
    pub connections: usize,
    /// Connections open at a time from one address.
    pub connections_per_address: usize,
    /// From the first byte of a head, or from the accepted connection, to its end.
    pub header_timeout: Duration,
    /// Between two reads of a request's content.
    pub body_timeout: Duration,
    /// Bytes per second that a request's content must come at in the long run, once `body_timeout` has passed;
    /// 0 for any.
    pub body_rate: u64,
    /// Bytes per second that a client must take of a response in the long run, once `write_timeout` has passed;
    /// 0 for any.
    pub read_rate: u64,
    /// Between two requests on a connection.
    pub idle_timeout: Duration,
    /// Between two writes that the client takes.
    pub write_timeout: Duration,
    /// From the accepted connection to the end of the TLS handshake.
    pub handshake_timeout: Duration,
    /// Unread content is discarded up to so many bytes; beyond, the connection ends.
    pub discard_bytes: u64,
    /// Limits of HTTP/2.
    pub http2: Http2Limits,
    /// Limits of HTTP/3.
    pub http3: Http3Limits,
}

/// Limits of one HTTP/2 connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Limits {
    /// Streams open at a time (`SETTINGS_MAX_CONCURRENT_STREAMS`).
    pub streams: u32,
    /// Size of a header list by the count of RFC 9113, section 6.5.2: 32 bytes more for each field, and
    /// each piece of a cookie is one.
    pub header_list_bytes: u32,
    /// Streams that the client reset before they were answered (rapid reset, CVE-2023-44487).
    pub pending_resets: usize,
    /// Streams that the server had to reset for the client's mistakes (`MadeYouReset`, CVE-2025-8671).
    pub provoked_resets: usize,
    /// Bytes of responses laid up for one stream.
    pub send_buffer_bytes: usize,
    /// The window of one stream, in bytes.
    pub stream_window: u32,
    /// The window of the connection, in bytes.
    pub connection_window: u32,
    /// Frames that cost the server more than the client.
    pub floods: FloodLimits,
}

/// Limits of one HTTP/3 connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http3Limits {
    /// Requests open at a time.
    pub streams: u32,
    /// Size of a header list by the count of RFC 9114, section 4.2.2: 32 bytes more for each field.
    pub header_list_bytes: u32,
    /// Streams that the client resets, or makes the server reset, within about ten seconds.
    pub resets: u32,
    /// DATA frames without data and frames of unknown types within about ten seconds, and two more for each request.
    pub empty_frames: u32,
    /// Handshakes of a worker that are under way with clients whose address is not proven; while there are more,
    /// clients have to prove theirs (RFC 9000, section 8.1.2).
    pub unvalidated: u32,
    /// The window of one stream, in bytes.
    pub stream_window: u32,
}

/// Frames that one connection of HTTP/2 may bring within about ten seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloodLimits {
    /// PING, and one more for each 64 bytes that it is sent.
    pub pings: u32,
    /// SETTINGS.
    pub settings: u32,
    /// DATA frames that bring no data and end nothing.
    pub empty_data: u32,
    /// `WINDOW_UPDATE`, and one more for each 8 bytes that it is sent.
    pub window_updates: u32,
    /// PRIORITY, and two more for each request.
    pub priorities: u32,
    /// Streams that it resets.
    pub resets: u32,
    /// CONTINUATION frames of one header block, whenever they come.
    pub continuations: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: RequestLimits::default(),
            // At 6 KiB for an idle one (`cargo xtask idle`) 384 MiB; RLIMIT_NOFILE caps it where that is lower.
            connections: 65_536,
            // A load generator or a proxy passes, a single host that floods takes a sixteenth of all.
            connections_per_address: 4_096,
            // A head of 8 KiB at 1 KiB/s; slow-header attacks hold a place no longer.
            header_timeout: Duration::from_secs(10),
            // Longer than a mobile network stalls.
            body_timeout: Duration::from_secs(30),
            // Below any real link, and one byte a second (slow body) is refused.
            body_rate: 128,
            read_rate: 128,
            // As nginx: longer than the 60 s that proxies keep connections, so that they close first.
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            // Reading on costs less than another handshake up to about here.
            discard_bytes: 1 << 20,
            http2: Http2Limits::default(),
            http3: Http3Limits::default(),
        }
    }
}

impl Default for Http2Limits {
    fn default() -> Self {
        Self {
            // The 100 that RFC 9113, section 6.5.2, recommends as the least, rounded up.
            streams: 128,
            // Cookies and tokens of large applications take 16 KiB.
            header_list_bytes: 32 * 1024,
            // A browser that leaves a page cancels a dozen; the attack needs thousands.
            pending_resets: 20,
            // Mistakes of a client that is not hostile are a handful.
            provoked_resets: 100,
            send_buffer_bytes: 64 * 1024,
            // The default of the protocol: what one stream can make the server hold.
            stream_window: 64 * 1024,
            // Sixteen streams at full speed.
            connection_window: 1 << 20,
            floods: FloodLimits::default(),
        }
    }
}

impl Default for Http3Limits {
    fn default() -> Self {
        Self {
            streams: 128,
            header_list_bytes: 32 * 1024,
            // Thirty a second: faster than people leave pages, slower than an attack pays.
            resets: 300,
            empty_frames: 100,
            // A Retry costs real clients a round trip, so only where handshakes pile up.
            unvalidated: 64,
            // 100 Mbit/s over a round trip of 20 ms.
            stream_window: 256 * 1024,
        }
    }
}

impl Default for FloodLimits {
    fn default() -> Self {
        Self {
            // Ten a second; keep-alive needs one in ten seconds.
            pings: 100,
            // Clients send one or two in a connection.
            settings: 50,
            empty_data: 100,
            // Besides those that downloads earn.
            window_updates: 500,
            priorities: 100,
            resets: 300,
            // 16 frames of 16 KiB hold eight times the largest header list.
            continuations: 16,
        }
    }
}
