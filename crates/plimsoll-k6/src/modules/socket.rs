//! k6/ws and k6/websockets: what both are made of.

use std::time::Duration;

use plimsoll_script::js::{self, Array, ArrayBuffer, Ctx, Exception, IntoJs as _, Object, Value};
use plimsoll_wire::ws::{MessageKind, Opcode};

use super::{Adder, Arguments, Natives, forbid_init};
use crate::go_error::throw_error;
use crate::protocol::http::{RefusedRequest, bytes_of, parse};
use crate::protocol::socket::{Opened, SendError, SocketEvent, SocketModule, SocketRequest};
use crate::user::{Call, Reply};

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("openSocket", |it, ctx, arguments| {
        match open_call(it, ctx, &arguments, SocketModule::Ws) {
            Ok(call) => opened(ctx, it.waiter.wait(ctx, call)?),
            // An invalid URL becomes a response with an error, as a failed connection does.
            Err(RefusedRequest::Invalid(1020, error)) => {
                let error = error.trim_start_matches("invalid URL: ").to_owned();
                opened(ctx, Reply::SocketOpened(Opened::failed(error)))
            }
            Err(refused) => Err(refused.throw(ctx)),
        }
    })?;
    adder.add("openSocketLater", |it, ctx, arguments| {
        let call = open_call(it, ctx, &arguments, SocketModule::WebSockets);
        let call = call.map_err(|refused| refused.throw(ctx))?;
        it.waiter.start_promise(ctx, call, opened)
    })?;
    adder.add("nextEvent", |it, ctx, arguments| {
        let call = next_call(it, &arguments)?;
        event(ctx, it.waiter.wait(ctx, call)?)
    })?;
    adder.add("nextEventLater", |it, ctx, arguments| {
        let call = next_call(it, &arguments)?;
        it.waiter.start_promise(ctx, call, event)
    })?;
    adder.add("sendFrame", |it, ctx, arguments| {
        let id = u32::try_from(arguments.index(0)?).unwrap_or_default();
        let socket = it.user.sockets.get(id);
        let socket = socket.ok_or(SendError::Closed);
        let socket = socket.map_err(|error| throw_error(ctx, &error.to_string()))?;
        let opcode = match arguments.text(1)?.as_str() {
            "text" => Opcode::Text,
            "binary" => Opcode::Binary,
            "ping" => Opcode::Ping,
            _ => Opcode::Close,
        };
        let content = bytes_of(&arguments.value(2)).unwrap_or_default();
        socket
            .send(opcode, &content)
            .map_err(|error| throw_error(ctx, &error.to_string()))?;
        // k6/websockets counts all of its frames.
        let counts_all = arguments.value(3).as_bool().unwrap_or(false);
        if counts_all || matches!(opcode, Opcode::Text | Opcode::Binary) {
            let metrics = &it.user.shared.built_in;
            it.user.add_with(metrics.ws_msgs_sent, 1.0, socket.tags());
        }
        Ok(())
    })?;
    adder.add("warn", |it, _, arguments| {
        it.user.warn(&arguments.text(0)?);
        Ok(())
    })?;
    adder.add("throws", |it, _, _| Ok(it.user.shared.options.throws))?;
    adder.add("unsentBytes", |it, _, arguments| {
        let id = u32::try_from(arguments.index(0)?).unwrap_or_default();
        let socket = it.user.sockets.get(id);
        Ok(socket.map_or(0.0, |socket| socket.unsent() as f64))
    })
}

/// Arguments: those of a request, then the protocols, then `compression` of the parameters.
fn open_call<'js>(
    it: &Natives,
    ctx: &Ctx<'js>,
    arguments: &Arguments<'js>,
    module: SocketModule,
) -> Result<Call, RefusedRequest> {
    forbid_init(&it.user, ctx, "opening a WebSocket")?;
    let offers_deflate = match arguments.optional_text(9)?.as_deref().map(str::trim) {
        None | Some("") => false,
        Some("deflate") => true,
        Some(other) => {
            let message =
                format!("params.compression of a WebSocket must be \"deflate\", not \"{other}\"");
            return Err(throw_error(ctx, &message).into());
        }
    };
    Ok(Call::OpenSocket(Box::new(SocketRequest {
        request: parse(ctx, &it.user, &arguments.values)?,
        protocols: arguments.optional_text(8)?.unwrap_or_default(),
        offers_deflate,
        module,
    })))
}

/// Arguments: the socket, and milliseconds to wait at most.
fn next_call(it: &Natives, arguments: &Arguments<'_>) -> js::Result<Call> {
    let id = u32::try_from(arguments.index(0)?).unwrap_or_default();
    let wait = Duration::try_from_secs_f64(arguments.number(1) / 1000.0).ok();
    Ok(Call::NextEvent(id, wait.map(|wait| it.waiter.now() + wait)))
}

fn opened<'js>(ctx: &Ctx<'js>, reply: Reply) -> js::Result<Value<'js>> {
    let Reply::SocketOpened(opened) = reply else {
        return Err(Exception::throw_internal(
            ctx,
            "the reply is not one of a socket",
        ));
    };
    let Opened {
        id,
        status,
        fields,
        content,
        error,
    } = opened;
    let made = Object::new(ctx.clone())?;
    made.set("id", id.unwrap_or_default())?;
    made.set("status", status)?;
    made.set("error", error)?;
    made.set("body", String::from_utf8_lossy(&content).into_owned())?;
    let headers = Object::new(ctx.clone())?;
    for (name, value) in fields {
        headers.set(name, value)?;
    }
    made.set("headers", headers)?;
    Ok(made.into_value())
}

/// The event, with its values.
fn event<'js>(ctx: &Ctx<'js>, reply: Reply) -> js::Result<Value<'js>> {
    let Reply::SocketEvent(event) = reply else {
        return Err(Exception::throw_internal(ctx, "the reply is not an event"));
    };
    let made = Array::new(ctx.clone())?;
    let name = match event {
        SocketEvent::Message(MessageKind::Text, content) => {
            made.set(1, String::from_utf8_lossy(&content).into_owned())?;
            "message"
        }
        SocketEvent::Message(MessageKind::Binary, content) => {
            made.set(1, ArrayBuffer::new(ctx.clone(), content)?)?;
            "binaryMessage"
        }
        SocketEvent::Ping => "ping",
        SocketEvent::Pong => "pong",
        SocketEvent::Closed(code, reason) => {
            made.set(1, code.into_js(ctx)?)?;
            made.set(2, reason)?;
            "close"
        }
        SocketEvent::Failed(error) => {
            made.set(1, error)?;
            "error"
        }
        SocketEvent::Nothing => "nothing",
    };
    made.set(0, name)?;
    Ok(made.into_value())
}
