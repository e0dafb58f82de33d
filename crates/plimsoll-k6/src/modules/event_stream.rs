//! k6/x/sse: streams of server-sent events.

use plimsoll_script::js::{self, Array, Ctx, Exception, Object, Value};

use super::{Adder, forbid_init};
use crate::protocol::event_stream::{OpenedStream, StreamEvent};
use crate::protocol::http::parse;
use crate::user::{Call, Reply};

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    // Arguments: those of a request.
    adder.add("openStream", |it, ctx, arguments| {
        forbid_init(&it.user, ctx, "opening a stream of events")?;
        let request = parse(ctx, &it.user, &arguments.values);
        let request = request.map_err(|refused| refused.throw(ctx))?;
        let call = Call::OpenStream(Box::new(request));
        match it.waiter.wait(ctx, call)? {
            Reply::StreamOpened(opened) => shown(ctx, opened),
            _ => Err(unexpected(ctx)),
        }
    })?;
    adder.add("nextStreamEvent", |it, ctx, arguments| {
        let id = u32::try_from(arguments.index(0)?).unwrap_or_default();
        match it.waiter.wait(ctx, Call::NextStreamEvent(id))? {
            Reply::StreamEvent(event) => values(ctx, event),
            _ => Err(unexpected(ctx)),
        }
    })?;
    adder.add("closeStream", |it, _, arguments| {
        let id = u32::try_from(arguments.index(0)?).unwrap_or_default();
        it.user.event_streams.close(id);
        Ok(())
    })?;
    adder.add("throws", |it, _, _| Ok(it.user.shared.options.throws))
}

fn unexpected(ctx: &Ctx<'_>) -> js::Error {
    Exception::throw_internal(ctx, "the reply is not one of a stream of events")
}

fn shown<'js>(ctx: &Ctx<'js>, opened: OpenedStream) -> js::Result<Value<'js>> {
    let made = Object::new(ctx.clone())?;
    made.set("id", opened.id.unwrap_or_default())?;
    made.set("status", opened.status)?;
    made.set("error", opened.error)?;
    let headers = Object::new(ctx.clone())?;
    for (name, value) in opened.fields {
        headers.set(name, value)?;
    }
    made.set("headers", headers)?;
    Ok(made.into_value())
}

/// The kind of event, with its values.
fn values<'js>(ctx: &Ctx<'js>, event: StreamEvent) -> js::Result<Value<'js>> {
    let made = Array::new(ctx.clone())?;
    match event {
        StreamEvent::Event { id, name, data } => {
            made.set(0, "event")?;
            made.set(1, id)?;
            made.set(2, name)?;
            made.set(3, data)?;
        }
        StreamEvent::Failed(error) => {
            made.set(0, "error")?;
            made.set(1, error)?;
        }
        StreamEvent::Ended => made.set(0, "end")?,
    }
    Ok(made.into_value())
}
