//! gRPC calls: exchanges whose outcome is in their trailers.

use std::rc::Rc;

use http::HeaderMap;
use plimsoll_client::check::Facts;
use plimsoll_client::grpc::GrpcReading;
use plimsoll_client::{Http3, Request};
use plimsoll_model::Exchange;
use plimsoll_wire::h2::hpack::Fields;

use super::exchange::{PlainReader, Requests};
use super::{Concluded, Head, HttpWorkload, Response, ResponseReader};
use crate::driver::WorkerState;
use crate::plan::{GrpcPlan, ResponsePlan};
use crate::worker::pace::Start;

/// Makes the planned calls.
#[derive(Debug)]
pub(crate) struct GrpcCalls {
    requests: Requests,
    reader: GrpcReader,
    /// Whether the method answers with exactly one message.
    is_unary: bool,
}

impl GrpcCalls {
    /// - `index`: the user's number in the run; users begin at different requests.
    pub(crate) fn new(shared: &Rc<WorkerState>, plan: GrpcPlan, index: usize) -> Self {
        Self {
            requests: Requests::new(shared, index),
            reader: GrpcReader {
                plain: PlainReader::new(shared, &ResponsePlan::default()),
                reading: GrpcReading::default(),
            },
            is_unary: !plan.is_server_streaming,
        }
    }
}

impl HttpWorkload for GrpcCalls {
    type Reader = GrpcReader;

    fn take_up(&mut self, start: &mut Start) -> usize {
        self.requests.take_up(&mut self.reader.plain, start)
    }

    fn request(&mut self) -> (&Request, &mut GrpcReader) {
        let request = self.requests.current(&mut self.reader.plain);
        (request, &mut self.reader)
    }

    fn method(&self) -> &str {
        self.requests.method(&self.reader.plain)
    }

    fn reader(&self) -> &GrpcReader {
        &self.reader
    }

    fn reader_mut(&mut self) -> &mut GrpcReader {
        &mut self.reader
    }

    fn conclude(
        &mut self,
        start: &Start,
        response: Response,
        exchange: &mut Exchange,
        certificate_days: Option<i64>,
    ) -> Concluded {
        let GrpcReader { plain, reading } = &mut self.reader;
        let concluded = self.requests.settle(plain, start, response, exchange);
        if concluded.again.is_some() {
            return concluded;
        }
        let shared = &self.requests.shared;
        let mut answer = None;
        if exchange.outcome.is_ok() {
            match reading.finish(self.is_unary) {
                Ok(answered) => answer = Some(answered),
                Err(fault) => exchange.outcome = Err(fault.failure()),
            }
        }
        let Some(answer) = answer else {
            shared.recorder.finish(start, exchange);
            return concluded;
        };
        let judged = plain.judged(exchange, certificate_days);
        let unmet = judged.into_iter().flat_map(|(observer, facts)| {
            let facts = Facts {
                grpc_status: Some(answer.status),
                ..facts
            };
            shared.plan.expectations.unmet(observer, facts)
        });
        shared.recorder.finish_call(start, exchange, &answer, unmet);
        concluded
    }
}

/// Reads responses to calls.
#[derive(Debug)]
pub(crate) struct GrpcReader {
    plain: PlainReader,
    reading: GrpcReading,
}

impl ResponseReader for GrpcReader {
    const READS_TRAILERS: bool = true;

    fn wants_head(&self) -> bool {
        true
    }

    fn wants_fields(&self) -> bool {
        true
    }

    fn head(&mut self, head: Head<'_>) {
        self.plain.head(head);
        match head {
            Head::Http2(head) => self.reading.head(head),
            Head::Http3(status, fields) => self.reading.head_of_http3(status, fields),
            // HTTP/1 carries no calls; plans are checked for that.
            Head::Http1(_) => {}
        }
    }

    fn content(&mut self, piece: &[u8], http3: Option<&Http3>) -> bool {
        self.reading.content(piece);
        self.plain.content(piece, http3)
    }

    fn trailers(&mut self, fields: &Fields) {
        self.reading.trailers(fields);
    }

    fn trailers_of_http3(&mut self, fields: &HeaderMap) {
        self.reading.trailers_of_http3(fields);
    }
}
