//! The response to a gRPC call.

use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use plimsoll_server::{Answer, ResponseBody};

use super::{ReplyCall, Respond};
use crate::config::ready;
use crate::streaming::grpc::GrpcReply;

impl Respond for Arc<GrpcReply> {
    fn respond(&self, call: ReplyCall<'_, '_>) -> Answer {
        let content = self.content(call.request);
        let mut fields = call.reply.fields(call.request);
        fields.retain(|(name, _)| name != CONTENT_TYPE);
        let sharing = call.context.sharing();
        let response = ready::response(sharing, &call.allowed, StatusCode::OK, &fields)
            .with_field(CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
            .with_body(ResponseBody::Stream(Box::pin(content)));
        call.after(response)
    }

    fn summary(&self, _status: StatusCode) -> String {
        let count = self.messages.len();
        format!("{}, {count} messages of gRPC", self.status)
    }
}
