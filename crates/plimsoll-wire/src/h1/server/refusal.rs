//! Why a server refuses a request: one name for each way in which two readers could disagree.

/// Errors in requests.
///
/// After any of these the rest of the connection means nothing: answer with [`status`](Self::status)
/// and close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request line is not `method target version` (RFC 9112, section 3).
    #[error("malformed request line")]
    RequestLine,
    /// A well-formed version other than HTTP/1.0 and HTTP/1.1.
    #[error("unsupported version of HTTP")]
    Version,
    /// The target is in none of the four forms, or has characters that no URI has (RFC 9112, 3.2).
    #[error("malformed request target")]
    Target,
    /// The target is longer than its limit.
    #[error("request target too long")]
    TargetTooLong,
    /// A method of HTTP in other letters, such as `post`: servers behind may run it as the method that it is not here.
    #[error("method that is not in upper case")]
    Method,
    /// A line ends in LF without CR, or a CR stands alone (RFC 9112, section 2.2).
    #[error("line that does not end in CR LF")]
    LineEnd,
    /// A line begins with a blank: obsolete line folding, or a field before the first (RFC 9112, 5.2).
    #[error("line that begins with a blank")]
    Folding,
    /// A blank in a field name, or between it and the colon (RFC 9112, section 5.1).
    #[error("blank in or after a field name")]
    BlankInName,
    /// A field name that is empty or not a token.
    #[error("malformed field name")]
    FieldName,
    /// CR, LF, NUL or another control character in a field value (RFC 9110, section 5.5).
    #[error("control character in a field value")]
    FieldValue,
    /// The head is longer than its limit.
    #[error("head too long")]
    HeadTooLarge,
    /// There are more fields than the limit.
    #[error("too many header fields")]
    TooManyFields,
    /// HTTP/1.1 without a `Host` (RFC 9112, section 3.2).
    #[error("no host")]
    HostMissing,
    /// More than one `Host`.
    #[error("repeated host")]
    HostRepeated,
    /// A `Host` that is not a host with an optional port.
    #[error("malformed host")]
    HostInvalid,
    /// The target names another authority than `Host` does.
    #[error("target and host disagree")]
    HostMismatch,
    /// A `content-length` that is not one decimal number.
    #[error("malformed content-length")]
    ContentLength,
    /// More than one `content-length`, even if they agree.
    #[error("repeated content-length")]
    ContentLengthRepeated,
    /// A `content-length` beside a `transfer-encoding` (RFC 9112, section 6.1).
    #[error("content-length beside transfer-encoding")]
    LengthAndCoding,
    /// A `transfer-encoding` with another coding before `chunked`, which is not implemented.
    #[error("transfer-encoding other than chunked")]
    TransferEncoding,
    /// A `transfer-encoding` that does not end with `chunked`, or has it twice: the length cannot be known (RFC 9112,
    /// section 6.3).
    #[error("transfer-encoding that does not end with chunked, once")]
    TransferEncodingEnd,
    /// A `transfer-encoding` in HTTP/1.0, which has none.
    #[error("transfer-encoding in HTTP/1.0")]
    TransferEncodingInOld,
    /// The content is longer than its limit.
    #[error("content too long")]
    BodyTooLarge,
    /// A chunk size that is not a number of at most 16 hexadecimal digits (RFC 9112, section 7.1).
    #[error("malformed chunk size")]
    ChunkSize,
    /// A chunk extension that is not `;name`, `;name=token` or `;name="text"`.
    #[error("malformed chunk extension")]
    ChunkExtension,
    /// A chunk or a line of the framing that does not end in CR LF.
    #[error("chunk that does not end in CR LF")]
    ChunkEnd,
    /// A trailer field that is malformed, or that would change how the request was understood.
    #[error("malformed or forbidden trailer field")]
    Trailer,
    /// Chunk extensions and trailer fields exceed their limit.
    #[error("chunk extensions or trailer fields too long")]
    ChunkOverhead,
}

impl RequestError {
    /// Each of them, in the order of their numbers (`error as usize`).
    pub const ALL: [Self; 28] = [
        Self::RequestLine,
        Self::Version,
        Self::Target,
        Self::TargetTooLong,
        Self::Method,
        Self::LineEnd,
        Self::Folding,
        Self::BlankInName,
        Self::FieldName,
        Self::FieldValue,
        Self::HeadTooLarge,
        Self::TooManyFields,
        Self::HostMissing,
        Self::HostRepeated,
        Self::HostInvalid,
        Self::HostMismatch,
        Self::ContentLength,
        Self::ContentLengthRepeated,
        Self::LengthAndCoding,
        Self::TransferEncoding,
        Self::TransferEncodingEnd,
        Self::TransferEncodingInOld,
        Self::BodyTooLarge,
        Self::ChunkSize,
        Self::ChunkExtension,
        Self::ChunkEnd,
        Self::Trailer,
        Self::ChunkOverhead,
    ];

    /// The status to answer with.
    pub const fn status(self) -> u16 {
        match self {
            Self::BodyTooLarge => 413,
            Self::TargetTooLong => 414,
            Self::HeadTooLarge | Self::TooManyFields | Self::ChunkOverhead => 431,
            Self::TransferEncoding => 501,
            Self::Version => 505,
            _ => 400,
        }
    }

    /// A short name, for counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestLine => "request_line",
            Self::Version => "version",
            Self::Target => "target",
            Self::TargetTooLong => "target_too_long",
            Self::Method => "method",
            Self::LineEnd => "line_end",
            Self::Folding => "folding",
            Self::BlankInName => "blank_in_name",
            Self::FieldName => "field_name",
            Self::FieldValue => "field_value",
            Self::HeadTooLarge => "head_too_large",
            Self::TooManyFields => "too_many_fields",
            Self::HostMissing => "host_missing",
            Self::HostRepeated => "host_repeated",
            Self::HostInvalid => "host_invalid",
            Self::HostMismatch => "host_mismatch",
            Self::ContentLength => "content_length",
            Self::ContentLengthRepeated => "content_length_repeated",
            Self::LengthAndCoding => "length_and_coding",
            Self::TransferEncoding => "transfer_encoding",
            Self::TransferEncodingEnd => "transfer_encoding_end",
            Self::TransferEncodingInOld => "transfer_encoding_in_old",
            Self::BodyTooLarge => "body_too_large",
            Self::ChunkSize => "chunk_size",
            Self::ChunkExtension => "chunk_extension",
            Self::ChunkEnd => "chunk_end",
            Self::Trailer => "trailer",
            Self::ChunkOverhead => "chunk_overhead",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_list_is_complete_and_in_order() {
        for (number, error) in RequestError::ALL.into_iter().enumerate() {
            assert_eq!(error as usize, number);
            assert!((400..=505).contains(&error.status()));
        }
        assert_eq!(
            RequestError::ALL.last(),
            Some(&RequestError::ChunkOverhead),
            "the last variant ends the list"
        );
        let names: BTreeSet<_> = RequestError::ALL.map(RequestError::name).into();
        assert_eq!(names.len(), RequestError::ALL.len());
    }
}
