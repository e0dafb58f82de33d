//! k6/net/grpc.

use std::rc::Rc;
use std::time::Duration;

use plimsoll_formats::grpc::Descriptors;
use plimsoll_model::Secret;
use plimsoll_script::js::{self, Array, Ctx, Exception, FromJs as _, IntoJs as _, Object, Value};

use super::{Adder, Arguments, Natives, forbid_init, require_init};
use crate::go_error::throw_error;
use crate::options::duration;
use crate::options::encrypted_key::decrypted;
use crate::protocol::grpc::{
    DescribeError, GrpcClient, GrpcEvent, GrpcRequest, GrpcResponse, GrpcStream, GrpcTarget,
};
use crate::protocol::http::texts;
use crate::protocol::pools::CallTls;
use crate::user::{Call, Reply};

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    clients(adder)?;
    calls(adder)?;
    streams(adder)
}

fn clients(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("newClient", |it, _, _| Ok(it.user.grpc.add_client()))?;
    adder.add("load", |it, ctx, arguments| {
        require_init(&it.user, ctx, "load()")?;
        let imports = Vec::<String>::from_js(ctx, arguments.value(1))?;
        let files = Vec::<String>::from_js(ctx, arguments.value(2))?;
        let client = client(it, ctx, &arguments)?;
        let loaded = client.described.load(&it.user, &imports, &files);
        methods(ctx, loaded)
    })?;
    adder.add("loadSet", |it, ctx, arguments| {
        require_init(&it.user, ctx, "loadProtoset()")?;
        let client = client(it, ctx, &arguments)?;
        let loaded = client.described.load_set(&it.user, &arguments.text(1)?);
        methods(ctx, loaded)
    })?;
    // Arguments: client, address, plaintext, timeout, metadata for reflection, authority, bytes received, bytes sent, and
    // of TLS: roots, certificate, key, password.
    adder.add("connect", |it, ctx, arguments| {
        forbid_init(&it.user, ctx, "connecting to a gRPC server")?;
        let reflects = arguments.value(4);
        let target = GrpcTarget {
            address: arguments.text(1)?,
            is_plaintext: arguments.value(2).as_bool().unwrap_or(false),
            tls: match (arguments.optional_text(8)?, arguments.optional_text(9)?) {
                (None, _) => None,
                (Some(roots), certificate) => Some(CallTls {
                    roots,
                    identity: match (certificate, arguments.optional_text(10)?) {
                        (Some(certificate), Some(key)) => {
                            let password = arguments.optional_text(11)?;
                            let key = decrypted(key, password.as_deref()).map_err(|error| {
                                let message = format!("connect params: tls.key {error}");
                                throw_error(ctx, &message)
                            })?;
                            Some((certificate, Secret::new(key)))
                        }
                        _ => None,
                    },
                }),
            },
            timeout: time(ctx, &arguments.value(3))?,
            reflects: if reflects.is_undefined() {
                None
            } else {
                Some(pairs(ctx, reflects)?)
            },
            authority: arguments.optional_text(5)?,
            most_received: size(ctx, "maxReceiveSize", &arguments.value(6))?,
            most_sent: size(ctx, "maxSendSize", &arguments.value(7))?,
        };
        let client = client(it, ctx, &arguments)?;
        match it
            .waiter
            .wait(ctx, Call::GrpcConnect(client, Box::new(target)))?
        {
            Reply::GrpcConnected(connected) => {
                connected.map_err(|error| throw_error(ctx, &error.to_string()))
            }
            _ => Err(unexpected(ctx)),
        }
    })?;
    adder.add("close", |it, ctx, arguments| {
        client(it, ctx, &arguments)?.close();
        Ok(())
    })
}

/// The methods that were loaded, as scripts see them.
fn methods<'js>(
    ctx: &Ctx<'js>,
    loaded: Result<Descriptors, DescribeError>,
) -> js::Result<Array<'js>> {
    let loaded = loaded.map_err(|error| throw_error(ctx, &error.to_string()))?;
    let list = Array::new(ctx.clone())?;
    for (index, method) in loaded.methods().enumerate() {
        let made = Object::new(ctx.clone())?;
        made.set("package", method.package)?;
        made.set("service", method.service)?;
        made.set("full_method", method.path)?;
        made.set("name", method.name)?;
        made.set("is_client_stream", method.is_client_streaming)?;
        made.set("is_server_stream", method.is_server_streaming)?;
        list.set(index, made)?;
    }
    Ok(list)
}

fn calls(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("invoke", |it, ctx, arguments| {
        let call = invocation(it, ctx, &arguments)?;
        response(ctx, it.waiter.wait(ctx, call)?)
    })?;
    adder.add("invokeLater", |it, ctx, arguments| {
        let call = invocation(it, ctx, &arguments)?;
        it.waiter.start_promise(ctx, call, response)
    })
}

fn streams(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("openStream", |it, ctx, arguments| {
        forbid_init(&it.user, ctx, "opening a stream")?;
        let client = client(it, ctx, &arguments)?;
        let request = request(it, ctx, &arguments)?;
        let stream = GrpcStream::new(client, request);
        let stream = stream.map_err(|error| throw_error(ctx, &error.to_string()))?;
        Ok(it.user.grpc.add_stream(stream))
    })?;
    adder.add("nextLater", |it, ctx, arguments| {
        let call = Call::GrpcNext(number(&arguments)?);
        it.waiter.start_promise(ctx, call, event)
    })?;
    adder.add("write", |it, ctx, arguments| {
        let Some(stream) = it.user.grpc.stream(number(&arguments)?) else {
            return Err(throw_error(ctx, "the stream has ended"));
        };
        let written = stream.write(&it.user, &arguments.text(1)?);
        written.map_err(|error| throw_error(ctx, &error.to_string()))
    })?;
    adder.add("end", |it, _, arguments| {
        if let Some(stream) = it.user.grpc.stream(number(&arguments)?) {
            stream.end();
        }
        Ok(())
    })
}

fn number(arguments: &Arguments<'_>) -> js::Result<u32> {
    Ok(u32::try_from(arguments.index(0)?).unwrap_or_default())
}

fn client<'js>(
    it: &Natives,
    ctx: &Ctx<'js>,
    arguments: &Arguments<'js>,
) -> js::Result<Rc<GrpcClient>> {
    let client = it.user.grpc.client(number(arguments)?);
    client.ok_or_else(|| Exception::throw_internal(ctx, "there is no such client"))
}

fn invocation<'js>(it: &Natives, ctx: &Ctx<'js>, arguments: &Arguments<'js>) -> js::Result<Call> {
    forbid_init(&it.user, ctx, "invoking RPC methods")?;
    let client = client(it, ctx, arguments)?;
    let request = request(it, ctx, arguments)?;
    Ok(Call::GrpcInvoke(client, Box::new(request)))
}

/// Arguments: client, method, message as JSON, metadata, tags, timeout, whether the message of the response is dropped.
fn request<'js>(
    it: &Natives,
    ctx: &Ctx<'js>,
    arguments: &Arguments<'js>,
) -> js::Result<GrpcRequest> {
    let method = arguments.text(1)?;
    let method = method
        .parse()
        .map_err(|error| throw_error(ctx, &format!("the method {error}")))?;
    let mut tags = it.user.tags();
    for (name, value) in texts(&arguments.value(4)).unwrap_or_default() {
        tags.retain(|(other, _)| *other != name);
        tags.push((name, value));
    }
    Ok(GrpcRequest {
        method,
        message: arguments.text(2)?,
        metadata: pairs(ctx, arguments.value(3))?,
        tags,
        timeout: time(ctx, &arguments.value(5))?,
        discards_message: arguments.value(6).as_bool().unwrap_or(false),
    })
}

fn pairs<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> js::Result<Vec<(String, String)>> {
    let list = Array::from_js(ctx, value)?;
    let pairs = list.iter::<Array<'_>>().map(|pair| {
        let pair = pair?;
        Ok((pair.get(0)?, pair.get(1)?))
    });
    pairs.collect()
}

/// A duration: a text, or milliseconds.
fn time<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> js::Result<Duration> {
    let value = match (value.as_number(), value.as_string()) {
        (Some(number), _) => serde_json::json!(number),
        (None, Some(text)) => serde_json::json!(text.to_string()?),
        _ => serde_json::Value::Null,
    };
    let parsed = duration::from_json(&value);
    parsed.map_err(|message| throw_error(ctx, &format!("timeout: {message}")))
}

/// A number of bytes.
fn size<'js>(ctx: &Ctx<'js>, name: &str, value: &Value<'js>) -> js::Result<Option<usize>> {
    if value.is_undefined() || value.is_null() {
        return Ok(None);
    }
    let bytes = value
        .as_number()
        .filter(|it| *it >= 0.0 && it.fract() == 0.0);
    let bytes = bytes
        .ok_or_else(|| throw_error(ctx, &format!("{name} must be a positive number of bytes")))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is a whole number that is not negative; beyond the range it is the largest"
    )]
    let bytes = bytes as usize;
    Ok(Some(bytes))
}

fn unexpected(ctx: &Ctx<'_>) -> js::Error {
    Exception::throw_internal(ctx, "the reply is not one of gRPC")
}

fn response<'js>(ctx: &Ctx<'js>, reply: Reply) -> js::Result<Value<'js>> {
    let Reply::GrpcResponse(response) = reply else {
        return Err(unexpected(ctx));
    };
    let response = *response.map_err(|error| throw_error(ctx, &error.to_string()))?;
    let GrpcResponse {
        status,
        message,
        headers,
        trailers,
        error,
    } = response;
    let made = Object::new(ctx.clone())?;
    made.set("status", status.code())?;
    if let Some(message) = message {
        made.set("message", message)?;
    }
    for (name, fields) in [("headers", headers), ("trailers", trailers)] {
        let list = Array::new(ctx.clone())?;
        for (index, (name, value)) in fields.into_iter().enumerate() {
            list.set(index, vec![name, value])?;
        }
        made.set(name, list)?;
    }
    made.set("error", error)?;
    Ok(made.into_value())
}

/// The event, with its values.
fn event<'js>(ctx: &Ctx<'js>, reply: Reply) -> js::Result<Value<'js>> {
    let Reply::GrpcEvent(event) = reply else {
        return Err(unexpected(ctx));
    };
    let made = Array::new(ctx.clone())?;
    let name = match event {
        GrpcEvent::Data(json) => {
            made.set(1, json)?;
            "data"
        }
        GrpcEvent::Error(status, message) => {
            made.set(1, status.code().into_js(ctx)?)?;
            made.set(2, message)?;
            "error"
        }
        GrpcEvent::End => "end",
    };
    made.set(0, name)?;
    Ok(made.into_value())
}
