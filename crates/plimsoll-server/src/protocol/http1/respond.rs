//! From outcomes to the bytes of responses.

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use plimsoll_wire::h1::{BodyLength, RequestDecoder, RequestError, ResponseWriter};

use super::{Asked, End, Http1, LARGE, Next};
use crate::action::{Outcome, Refusal};
use crate::message::request::{Content, Version};
use crate::message::response::{
    Kind, Response, ResponseBody, Whole, has_content, tunnel_status, write_fields_in,
};

impl Http1 {
    /// Does what is not a response.
    pub(super) fn outcome(
        &mut self,
        outcome: Outcome,
        asked: Asked,
        content: &Content,
        out: &mut Vec<u8>,
        date: &[u8],
    ) -> Option<Next> {
        match outcome {
            Outcome::Respond(response) => {
                self.respond(response, asked, content, out, date);
                None
            }
            Outcome::Upgrade(response, take_over) => {
                // Content would come first on the stream, and be taken for what it is not.
                let is_wanted = asked.wants_upgrade || asked.is_connect;
                if !is_wanted || asked.length != BodyLength::None {
                    let refusal =
                        Response::text(StatusCode::NOT_IMPLEMENTED, "no upgrade was asked for\n");
                    self.respond(refusal, asked, content, out, date);
                    return None;
                }
                let status = if asked.is_connect {
                    tunnel_status(response.status())
                } else {
                    StatusCode::SWITCHING_PROTOCOLS
                };
                self.count(status, asked.version, content);
                let mut head = ResponseWriter::new(out, status.as_u16());
                if !asked.is_connect {
                    head.lines(b"connection: upgrade\r\n");
                }
                if let Kind::Built(built) = response.0 {
                    let mut fields = built.fields;
                    // What follows is not content (RFC 9110, section 9.3.6).
                    fields.remove(CONTENT_LENGTH);
                    write_fields_in(&mut head, &fields, built.order.as_deref());
                }
                head.lines(date);
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
        asked: Asked,
        content: &Content,
        out: &mut Vec<u8>,
        date: &[u8],
    ) {
        let persists = self.persists(asked);
        let (status, whole) = match response.0 {
            Kind::Prepared(prepared) => {
                out.extend_from_slice(&prepared.lines);
                (prepared.status, prepared.content.clone())
            }
            Kind::Built(built) => {
                let status = checked(built.status);
                let announced = built.content.announced(status, asked.is_head);
                let whole = match built.content {
                    ResponseBody::Bytes(bytes) => Whole::Bytes(bytes),
                    ResponseBody::File(part) => Whole::File(part),
                    ResponseBody::Empty | ResponseBody::Announced(_) | ResponseBody::Stream(_) => {
                        Whole::Bytes(Bytes::new())
                    }
                };
                let mut fields = built.fields;
                fields.remove(CONTENT_LENGTH);
                let mut head = ResponseWriter::new(out, status.as_u16());
                if let Some(length) = announced {
                    head.content_length(length);
                }
                write_fields_in(&mut head, &fields, built.order.as_deref());
                (status, whole)
            }
        };
        out.extend_from_slice(date);
        self.write_alternative(out);
        Self::write_persistence(persists, asked, out);
        out.extend_from_slice(b"\r\n");
        self.count(status, asked.version, content);
        if !persists {
            self.close(asked);
        }
        if asked.is_head || !has_content(status) {
            return;
        }
        match whole {
            Whole::Bytes(bytes) if bytes.len() < LARGE => out.extend_from_slice(&bytes),
            whole => self.output.tail(whole),
        }
    }

    /// Tells where HTTP/3 is spoken.
    #[inline]
    pub(super) fn write_alternative(&self, out: &mut Vec<u8>) {
        if let Some(alternative) = &self.alternative {
            out.extend_from_slice(&alternative.line);
        }
    }

    pub(super) fn write_persistence(persists: bool, asked: Asked, out: &mut Vec<u8>) {
        if !persists {
            out.extend_from_slice(b"connection: close\r\n");
        } else if asked.version == Version::Http10 {
            out.extend_from_slice(b"connection: keep-alive\r\n");
        }
    }

    /// Whether another request may follow.
    pub(super) fn persists(&self, asked: Asked) -> bool {
        let is_awaited = asked.expects_continue && self.decoder.is_in_body();
        let is_too_long = self.decoder.is_in_body()
            && matches!(asked.length, BodyLength::Known(length) if length > self.limits.discard_bytes);
        // Chunks that are still to come may be malformed, which could not be answered any more.
        let is_unread = self.decoder.is_in_body()
            && asked.length == BodyLength::Chunked
            && !asked.has_whole_body;
        asked.is_persistent
            && !self.is_at_end
            && !self.is_overfull
            && !is_unread
            && !is_awaited
            && !is_too_long
            && self.place.worker.draining().is_none()
    }

    pub(super) fn close(&mut self, asked: Asked) {
        self.is_closing = true;
        self.lingers = asked.is_persistent || self.decoder.is_in_body();
        // What remains is read only to be thrown away.
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

    /// Answers a request that is none, and ends.
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
