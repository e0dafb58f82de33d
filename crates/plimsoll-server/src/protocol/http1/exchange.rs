//! Requests that take longer: answers to be waited for, content in pieces either way.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http_body::Body;
use plimsoll_model::Clock;
use plimsoll_wire::h1::{
    BodyStep, RequestError, ResponseWriter, chunk_head, fields_of, last_chunk,
};
use plimsoll_wire::http::FieldList;
use tokio::io::{AsyncRead, ReadBuf};

use super::respond::checked;
use super::wait::WaitsFor;
use super::{
    Broken, End, Exchange, Http1, MOST_GATHERED, Next, Pending, RequestTraits, write_interims,
};
use crate::action::{LocalFuture, Outcome};
use crate::message::body::{BodyError, BodySender, withhold_heads_fields};
use crate::message::request::{Content, ContentSource};
use crate::message::response::{
    Built, Kind, Response, ResponseBody, StreamError, has_content, status_line, write_built_fields,
    write_fields,
};
use crate::message::verbatim::Verbatim;
use crate::version::Version;

/// Framing of a response's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// There is no content.
    None,
    /// So many bytes are still to come.
    Length(u64),
    Chunked,
    /// It ends with the connection: HTTP/1.0 has no chunks.
    Close,
}

/// The outcome of some input of a body.
enum InputOutcome {
    /// It was framing, or empty.
    Nothing,
    /// There was content.
    Some,
    /// The body has ended, with these trailer fields.
    End(Option<HeaderMap>),
}

impl Http1 {
    /// Answers one request; returns how the connection ends, if it does so at once.
    pub(super) async fn exchange(&mut self, exchange: Exchange) -> Result<Option<End>, Broken> {
        let Exchange {
            mut request,
            content,
            answer,
        } = exchange;
        let outcome = match answer {
            Pending::Response(response) => Ok(Outcome::Respond(response)),
            Pending::Later(future) => self.wait(future, &mut request, &content).await?,
        };
        // Requests that came with this one have their turn after it.
        self.output.was_full();
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                self.write(|connection, out, date| connection.refuse(error, out, date));
                return Ok(None);
            }
        };
        if let Outcome::Respond(Response(Kind::Built(mut built))) = outcome {
            let is_chunked = request.version != Version::Http10;
            built.announce_trailers(|length| is_chunked && length.is_none());
            let has_date = built.has_date();
            if let Built {
                status,
                reason,
                verbatim,
                fields,
                order,
                content: ResponseBody::Stream(body),
                ..
            } = *built
            {
                let status = checked(status);
                let fields = (verbatim, fields, order, has_date);
                self.send_stream(request, &content, (status, reason), fields, body)
                    .await?;
                return Ok(None);
            }
            let outcome = Outcome::Respond(Response(Kind::Built(built)));
            return Ok(self.finish(outcome, request, &content));
        }
        Ok(self.finish(outcome, request, &content))
    }

    fn finish(
        &mut self,
        outcome: Outcome,
        request: RequestTraits,
        content: &Content,
    ) -> Option<End> {
        let next = self.write(|connection, out, date| {
            connection.outcome(outcome, request, content, out, date)
        });
        match next {
            Some(Next::End(end)) => Some(end),
            _ => None,
        }
    }

    /// Appends to what the connection has to send.
    fn write<T>(&mut self, append: impl FnOnce(&mut Self, &mut Vec<u8>, &[u8]) -> T) -> T {
        let worker = std::rc::Rc::clone(&self.place.worker);
        self.since = worker.clock.now();
        let memory = &mut *worker.memory.borrow_mut();
        let date = memory.date.at(self.since, &worker.clock);
        let mut out = std::mem::take(self.output.bytes());
        let result = append(self, &mut out, date);
        self.output.put_back(out);
        result
    }

    /// Waits for an answer, handing over the request's content meanwhile.
    async fn wait(
        &mut self,
        mut future: LocalFuture<Outcome>,
        request: &mut RequestTraits,
        content: &Content,
    ) -> Result<Result<Outcome, RequestError>, Broken> {
        poll_fn(|cx| {
            loop {
                let outcome = future.as_mut().poll(cx);
                if let Some(interims) = content.interims() {
                    interims.watch(cx.waker());
                    let asks = write_interims(interims, request.version, self.output.bytes());
                    request.expects_continue &= !asks;
                }
                if let Poll::Ready(outcome) = outcome {
                    if let Some(interims) = content.interims() {
                        interims.end();
                    }
                    return Poll::Ready(Ok(Ok(outcome)));
                }
                if !self.output.is_empty()
                    && let Poll::Ready(result) = self.poll_output(cx)
                {
                    result?;
                }
                match ready!(self.poll_content(cx, request, content))? {
                    Ok(()) => {}
                    Err(error) => return Poll::Ready(Ok(Err(error))),
                }
            }
        })
        .await
    }

    /// Hands over what came of the request's content; ready when there is something new to see.
    ///
    /// Once the content is not read any more, or all of it has come, it watches for the client's departure instead.
    fn poll_content(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut RequestTraits,
        content: &Content,
    ) -> Poll<Result<Result<(), RequestError>, Broken>> {
        let mut source = content.source.borrow_mut();
        let sender = match &*source {
            ContentSource::Taken(sender) if !sender.is_abandoned() => sender,
            _ => {
                // The rest is discarded once the response is sent.
                *source = ContentSource::None;
                return self.poll_departed(cx).map(Err);
            }
        };
        if request.expects_continue {
            ready!(sender.poll_wanted(cx));
            request.expects_continue = false;
            ResponseWriter::interim(self.output.bytes(), 100).finish();
            ready!(self.poll_output(cx))?;
        }
        let worker = std::rc::Rc::clone(&self.place.worker);
        if sender.poll_room(cx).is_pending() {
            // It is not the client that is waited for.
            self.content_pace.pause(|| worker.clock.now());
            return Poll::Pending;
        }
        let memory = &mut *worker.memory.borrow_mut();
        // First what was read already, if only the end of a body of no more bytes.
        let carry = std::mem::take(&mut self.carry);
        let mut given = self.give(&carry, sender);
        loop {
            match given {
                Err(error) => {
                    sender.end(Err(BodyError::Refused));
                    return Poll::Ready(Ok(Err(error)));
                }
                Ok(InputOutcome::End(trailers)) => {
                    sender.finish(trailers, &self.place.worker.counters);
                    *source = ContentSource::None;
                    return Poll::Ready(Ok(Ok(())));
                }
                Ok(InputOutcome::Some) => return Poll::Ready(Ok(Ok(()))),
                Ok(InputOutcome::Nothing) => {}
            }
            if self.is_at_end {
                sender.end(Err(BodyError::Closed));
                *source = ContentSource::None;
                return Poll::Ready(Ok(Ok(())));
            }
            let mut buffer = ReadBuf::new(&mut memory.input);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) => {
                    self.since = worker.clock.now();
                    self.content_pace.go_on(|| self.since);
                    self.is_at_end = buffer.filled().is_empty();
                    self.content_pace.took(buffer.filled().len());
                    given = self.give(buffer.filled(), sender);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => {
                    if sender.poll_wanted(cx).is_pending() || !self.output.is_empty() {
                        self.content_pace.pause(|| worker.clock.now());
                        return Poll::Pending;
                    }
                    if let Some(now) = self.content_pace.go_on(|| worker.clock.now()) {
                        self.since = now;
                    }
                    return self.poll_wait(cx, WaitsFor::Content).map(Err);
                }
            }
        }
    }

    /// Hands over all content in `input`, from where it lies; what follows the request is carried.
    ///
    /// That there is room is not looked at for each piece: there is some, and no input is longer than a read.
    fn give(&mut self, input: &[u8], sender: &BodySender) -> Result<InputOutcome, RequestError> {
        let mut at = 0;
        let mut given = InputOutcome::Nothing;
        loop {
            match self.decoder.decode_body(&input[at..])? {
                BodyStep::NeedMore => return Ok(given),
                BodyStep::Content(range) => {
                    sender.push_slice(&input[at + range.start..at + range.end]);
                    at += range.end;
                    given = InputOutcome::Some;
                }
                BodyStep::End(consumed) => {
                    self.carry.extend_from_slice(&input[at + consumed..]);
                    let trailers = self.decoder.finish_body()?;
                    return Ok(InputOutcome::End(trailer_map(&trailers)));
                }
            }
        }
    }

    /// Sends a response whose content comes in pieces.
    async fn send_stream(
        &mut self,
        mut request: RequestTraits,
        content: &Content,
        (status, reason): (http::StatusCode, Option<Box<str>>),
        (verbatim, mut fields, order, has_date): (
            Verbatim,
            HeaderMap,
            Option<Box<FieldList>>,
            bool,
        ),
        mut body: Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>,
    ) -> Result<(), Broken> {
        let is_read = matches!(&*content.source.borrow(), ContentSource::Taken(_));
        if request.expects_continue && is_read {
            // The response's content may depend on the request's, so 100 (Continue) has to be sent before it.
            request.expects_continue = false;
            ResponseWriter::interim(self.output.bytes(), 100).finish();
        }
        fields.remove(CONTENT_LENGTH);
        let length = body.size_hint().exact();
        let mut framing = match length {
            _ if !has_content(status) => Framing::None,
            Some(length) => Framing::Length(length),
            None if request.version == Version::Http10 => Framing::Close,
            None => Framing::Chunked,
        };
        let persists = framing != Framing::Close && self.persists(request);
        self.write(|connection, out, date| {
            let mut head = status_line(out, status, reason.as_deref());
            write_built_fields(&mut head, &verbatim, &fields, order.as_deref());
            match framing {
                Framing::Length(length) => head.content_length(length),
                Framing::Chunked => head.chunked(),
                Framing::None | Framing::Close => {}
            }
            if !has_date {
                head.lines(date);
            }
            connection.write_alternative(out);
            Self::write_persistence(persists, request, out);
            out.extend_from_slice(b"\r\n");
        });
        self.count(status, request.version, content);
        if request.is_head {
            framing = Framing::None;
        }
        if framing != Framing::None {
            let trailers =
                poll_fn(|cx| self.poll_stream(cx, &mut request, content, &mut framing, &mut body))
                    .await?;
            match framing {
                Framing::Chunked => last_chunk(self.output.bytes(), &trailers),
                Framing::Length(1..) => return Err(self.break_off()),
                Framing::Length(0) | Framing::None | Framing::Close => {}
            }
        }
        if !persists {
            self.close(request);
        }
        Ok(())
    }

    /// Ready with the lines of the trailer fields when all content is there to be sent.
    fn poll_stream(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut RequestTraits,
        content: &Content,
        framing: &mut Framing,
        body: &mut Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>,
    ) -> Poll<Result<Vec<u8>, Broken>> {
        loop {
            if self.output.len() >= MOST_GATHERED {
                ready!(self.poll_output(cx))?;
            }
            match body.as_mut().poll_frame(cx) {
                Poll::Ready(None) => return Poll::Ready(Ok(Vec::new())),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        if !self.append(&data, framing) {
                            return Poll::Ready(Err(self.break_off()));
                        }
                    }
                    Err(frame) => {
                        let mut trailers = frame.into_trailers().unwrap_or_default();
                        withhold_heads_fields(&mut trailers, &self.place.worker.counters);
                        let mut lines = Vec::new();
                        let mut head = ResponseWriter::continued(&mut lines);
                        write_fields(&mut head, &trailers);
                        return Poll::Ready(Ok(lines));
                    }
                },
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(self.break_off())),
                Poll::Pending => {
                    if !self.output.is_empty()
                        && let Poll::Ready(result) = self.poll_output(cx)
                    {
                        result?;
                    }
                    if let Err(error) = ready!(self.poll_content(cx, request, content))? {
                        self.place.worker.counters.refused(error);
                        return Poll::Ready(Err(self.break_off()));
                    }
                }
            }
        }
    }

    /// Whether `data` was allowed to come.
    fn append(&mut self, data: &[u8], framing: &mut Framing) -> bool {
        if data.is_empty() {
            return true;
        }
        let out = self.output.bytes();
        match framing {
            Framing::None => {}
            Framing::Close => out.extend_from_slice(data),
            Framing::Chunked => {
                chunk_head(out, data.len());
                out.extend_from_slice(data);
                out.extend_from_slice(b"\r\n");
            }
            Framing::Length(left) => {
                let Some(rest) = left.checked_sub(data.len() as u64) else {
                    return false;
                };
                *left = rest;
                out.extend_from_slice(data);
            }
        }
        true
    }

    /// Content that broke off must not look whole: the client sees a reset.
    fn break_off(&mut self) -> Broken {
        if let Some(socket) = self.stream.socket() {
            socket.set_zero_linger().ok();
        }
        Broken::Io
    }
}

fn trailer_map(lines: &[u8]) -> Option<HeaderMap> {
    let fields: HeaderMap = fields_of(lines)
        .filter_map(|(name, value)| {
            let name = HeaderName::from_bytes(name).ok()?;
            Some((name, HeaderValue::from_bytes(value).ok()?))
        })
        .collect();
    (!fields.is_empty()).then_some(fields)
}
