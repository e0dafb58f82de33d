//! From outcomes to the bytes of responses.

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use plimsoll_wire::h1::{BodyLength, RequestDecoder, RequestError, ResponseWriter};

use super::{End, Http1, LARGE, Next, RequestTraits};
use crate::action::{Outcome, Refusal};
use crate::message::request::Content;
use crate::message::response::{
    Kind, Response, ResponseBody, WholeContent, has_content, status_line, tunnel_status,
    write_built_fields,
};
use crate::version::Version;

impl Http1 {
    /// Does what is not a response.
    pub(super) fn outcome(
        &mut self,
        outcome: Outcome,
        request: RequestTraits,
        content: &Content,
        out: &mut Vec<u8>,
        date: &[u8],
    ) -> Option<Next> {
        match outcome {
            Outcome::Respond(response) => {
                self.respond(response, request, content, out, date);
                None
            }
            Outcome::Upgrade(response, take_over) => {
                // Content that is still to come would come first on the stream, and be taken for what it is not.
                let is_wanted = request.wants_upgrade || request.is_connect;
                if !is_wanted || self.decoder.is_in_body() {
                    let refusal =
                        Response::text(StatusCode::NOT_IMPLEMENTED, "the request has no upgrade\n");
                    self.respond(refusal, request, content, out, date);
                    return None;
                }
                let status = if request.is_connect {
                    tunnel_status(response.status())
                } else {
                    StatusCode::SWITCHING_PROTOCOLS
                };
                self.count(status, request.version, content);
                let mut head = ResponseWriter::new(out, status.as_u16());
                if !request.is_connect {
                    head.lines(b"connection: upgrade\r\n");
                }
                let mut has_date = false;
                if let Kind::Built(built) = response.0 {
                    has_date = built.has_date();
                    let mut fields = built.fields;
                    // Bytes behind the head are not content (RFC 9110, section 9.3.6).
                    fields.remove(CONTENT_LENGTH);
                    write_built_fields(&mut head, &built.verbatim, &fields, built.order.as_deref());
                }
                if !has_date {
                    head.lines(date);
                }
                head.finish();
                Some(Next::End(End::TakeOver(take_over)))
            }
            Outcome::Raw(take_over) => Some(Next::End(End::TakeOver(take_over))),
        }
    }

    /// Appends a response whose content lies there.
    pub(super) fn respond(
        &mut self,
        response: Response,
        request: RequestTraits,
        content: &Content,
        out: &mut Vec<u8>,
        date: &[u8],
    ) {
        let persists = self.persists(request);
        let mut has_date = false;
        let (status, whole) = match response.0 {
            Kind::Prepared(prepared) => {
                out.extend_from_slice(&prepared.lines);
                (prepared.status, prepared.content.clone())
            }
            Kind::Built(mut built) => {
                built.announce_trailers(|_| false);
                has_date = built.has_date();
                let status = checked(built.status);
                let announced = built.content.announced(status, request.is_head);
                let whole = match built.content {
                    ResponseBody::Bytes(bytes) => WholeContent::Bytes(bytes),
                    ResponseBody::File(part) => WholeContent::File(part),
                    ResponseBody::Empty | ResponseBody::Announced(_) | ResponseBody::Stream(_) => {
                        WholeContent::Bytes(Bytes::new())
                    }
                };
                let mut fields = built.fields;
                fields.remove(CONTENT_LENGTH);
                let mut head = status_line(out, status, built.reason.as_deref());
                if let Some(length) = announced {
                    head.content_length(length);
                }
                write_built_fields(&mut head, &built.verbatim, &fields, built.order.as_deref());
                (status, whole)
            }
        };
        if !has_date {
            out.extend_from_slice(date);
        }
        self.write_alternative(out);
        Self::write_persistence(persists, request, out);
        out.extend_from_slice(b"\r\n");
        self.count(status, request.version, content);
        if !persists {
            self.close(request);
        }
        if request.is_head || !has_content(status) {
            return;
        }
        match whole {
            WholeContent::Bytes(bytes) if bytes.len() < LARGE => out.extend_from_slice(&bytes),
            whole => self.output.tail(whole),
        }
    }

    /// Advertises HTTP/3 (RFC 7838).
    #[inline]
    pub(super) fn write_alternative(&self, out: &mut Vec<u8>) {
        if let Some(alternative) = &self.alternative {
            out.extend_from_slice(&alternative.line);
        }
    }

    pub(super) fn write_persistence(persists: bool, request: RequestTraits, out: &mut Vec<u8>) {
        if !persists {
            out.extend_from_slice(b"connection: close\r\n");
        } else if request.version == Version::Http10 {
            out.extend_from_slice(b"connection: keep-alive\r\n");
        }
    }

    /// Whether another request may follow.
    pub(super) fn persists(&self, request: RequestTraits) -> bool {
        let is_awaited = request.expects_continue && self.decoder.is_in_body();
        let is_too_long = self.decoder.is_in_body()
            && matches!(request.length, BodyLength::Known(length) if length > self.limits.discard_bytes);
        // Chunks that are still to come may be malformed, which could not be answered any more.
        let is_unread = self.decoder.is_in_body()
            && request.length == BodyLength::Chunked
            && !request.has_whole_body;
        request.is_persistent
            && !self.is_at_end
            && !self.is_overfull
            && !is_unread
            && !is_awaited
            && !is_too_long
            && self.place.worker.draining().is_none()
    }

    pub(super) fn close(&mut self, request: RequestTraits) {
        self.is_closing = true;
        self.lingers = request.is_persistent || self.decoder.is_in_body();
        // The rest is read only to be discarded.
        self.decoder = RequestDecoder::new(self.limits.request);
    }

    /// Ends without an answer, which would not be understood.
    pub(super) fn end_refused(&mut self, error: RequestError) {
        self.place.worker.counters.refused(error);
        self.service.action().refused(&Refusal {
            peer: self.info.peer,
            version: Version::Http11,
            error,
        });
        self.is_closing = true;
        self.lingers = true;
        self.decoder = RequestDecoder::new(self.limits.request);
    }

    /// Answers a malformed request, and ends.
    pub(super) fn refuse(&mut self, error: RequestError, out: &mut Vec<u8>, date: &[u8]) {
        self.end_refused(error);
        if self.output.has_tail() {
            // It would come before content that is still to be sent, and be taken for it.
            return;
        }
        let counters = &self.place.worker.counters;
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
        counters.answered(Version::Http11, status);
        let text = format!("{error}\n");
        let mut head = ResponseWriter::new(out, error.status());
        head.lines(b"content-type: text/plain\r\n");
        head.content_length(text.len() as u64);
        head.lines(date);
        head.close();
        head.finish();
        out.extend_from_slice(text.as_bytes());
    }

    #[inline]
    pub(super) fn count(&self, status: StatusCode, version: Version, content: &Content) {
        self.place.worker.counters.answered(version, status);
        if let Some(route) = content.take_route() {
            route.answered(status);
        }
    }
}

/// An interim status is not an answer.
pub(super) fn checked(status: StatusCode) -> StatusCode {
    if status.is_informational() {
        StatusCode::INTERNAL_SERVER_ERROR
    } else {
        status
    }
}
