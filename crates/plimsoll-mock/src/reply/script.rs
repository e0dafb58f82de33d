//! The result of a JavaScript function, in place of status, fields and content of the rule.

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use http::header::HeaderName;
use plimsoll_server::{Answer, Outcome};

use super::content::outcome;
use super::{ReplyCall, Respond, with_media_type};
use crate::fault::WholeResponse;
use crate::script::Script;

impl Respond for Arc<Script> {
    fn respond(&self, call: ReplyCall<'_, '_>) -> Answer {
        let scenario = call.scenario.cloned();
        let scenario = scenario.map(|scenario| {
            let client = scenario.client(call.request);
            (scenario, client)
        });
        let state = call.scenario.map(|scenario| scenario.state(call.request));
        let own = call.reply.fields(call.request);
        let (status, pace) = (call.reply.status, call.reply.pace);
        let scripts = &call.context.scripts;
        let asking = scripts.ask(self, call.request, &call.reply.chance, state);
        let (context, allowed) = (Rc::clone(call.context), call.allowed.clone());
        call.then(async move {
            let answer = match asking {
                Ok(asking) => context.scripts.answer(asking).await,
                Err(refusal) => Err(refusal),
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err((status, text)) => {
                    return Outcome::Respond(context.text(status, text, &allowed));
                }
            };
            if let (Some((scenario, client)), Some(state)) = (&scenario, &answer.state)
                && let Err(error) = scenario.states.put(&scenario.name, client, state)
            {
                let status = StatusCode::INSUFFICIENT_STORAGE;
                return Outcome::Respond(context.text(status, format!("{error}\n"), &allowed));
            }
            let is_theirs = |name: &HeaderName| answer.fields.iter().any(|(it, _)| it == name);
            let mut fields: Vec<_> = own.into_iter().filter(|it| !is_theirs(&it.0)).collect();
            fields.extend(answer.fields.iter().cloned());
            let media_type = (!answer.content.is_empty()).then_some(&answer.kind);
            let whole = WholeResponse {
                status: answer.status.or(status).unwrap_or(StatusCode::OK),
                fields: with_media_type(fields, media_type),
                content: answer.content.clone(),
            };
            outcome(context.sharing(), &allowed, whole, None, pace)
        })
    }

    fn summary(&self, _status: StatusCode) -> String {
        format!("what {} answers", self.shown())
    }
}
