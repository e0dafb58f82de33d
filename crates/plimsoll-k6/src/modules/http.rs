//! k6/http.

use bytes::Bytes;
use plimsoll_model::Clock as _;
use plimsoll_script::js::{
    self, Array, ArrayBuffer, Class, Ctx, Exception, FromJs as _, Object, Persistent, Value,
};
use plimsoll_script::{PropertyLayout, lazy_object};
use plimsoll_wire::SystemClock;

use ::url::Url;

use super::{Adder, Natives, forbid_init};
use crate::go_error::throw_error;
use crate::protocol::http::{
    BodyForm, CookieOptions, HttpRequest, HttpResponse, NoResponse, PROPERTIES, RefusedRequest,
    bytes_of, parse, parse_plain,
};
use crate::user::{Call, Reply};

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("layout", |_, ctx, arguments| {
        let prototype = Object::from_js(ctx, arguments.value(0))?;
        PropertyLayout::new(ctx, &PROPERTIES, prototype)
    })?;
    adder.add("request", |it, ctx, arguments| {
        forbid_init(&it.user, ctx, "making requests")?;
        let layout = Class::from_value(&arguments.value(0))?;
        let request = match parse(ctx, &it.user, arguments.values.get(1..).unwrap_or_default()) {
            Ok(request) => request,
            Err(refused) => return refused_response(it, ctx, &layout, refused),
        };
        send(it, ctx, &layout, request)
    })?;
    adder.add("requestPlain", |it, ctx, arguments| {
        forbid_init(&it.user, ctx, "making requests")?;
        let layout = Class::from_value(&arguments.value(0))?;
        match parse_plain(ctx, &it.user, arguments.value(1), arguments.value(2)) {
            Ok(request) => send(it, ctx, &layout, request),
            Err(refused) => refused_response(it, ctx, &layout, refused),
        }
    })?;
    adder.add("requestAsync", |it, ctx, arguments| {
        forbid_init(&it.user, ctx, "making requests")?;
        let layout = Class::from_value(&arguments.value(0))?;
        let request = match parse(ctx, &it.user, arguments.values.get(1..).unwrap_or_default()) {
            Ok(request) => request,
            Err(refused) => return refused_response(it, ctx, &layout, refused),
        };
        let call = Call::Request(Box::new(request));
        let natives = it.clone();
        // The layout is the script's for as long as it runs.
        let layout = Persistent::save(ctx, layout);
        let promise = it
            .waiter
            .start_promise(ctx, call, move |ctx, reply| match reply {
                Reply::Response(response) => {
                    finished(&natives, ctx, &layout.restore(ctx)?, response)
                }
                _ => Err(unexpected(ctx)),
            });
        promise.map(js::Promise::into_value)
    })?;
    adder.add("batch", |it, ctx, arguments| {
        forbid_init(&it.user, ctx, "making requests")?;
        let layout = Class::from_value(&arguments.value(0))?;
        let list = Array::from_js(ctx, arguments.value(1))?;
        let mut requests = Vec::new();
        for one in list.iter::<Array<'_>>() {
            let values: Vec<Value<'_>> = one?.iter().collect::<js::Result<_>>()?;
            match parse(ctx, &it.user, &values) {
                Ok(request) => requests.push(request),
                Err(refused) => return refused_batch(it, ctx, &layout, refused, requests.len()),
            }
        }
        let Reply::Responses(responses) = it.waiter.wait(ctx, Call::Batch(requests))? else {
            return Err(unexpected(ctx));
        };
        let made = Array::new(ctx.clone())?;
        for (index, response) in responses.into_iter().enumerate() {
            made.set(index, finished(it, ctx, &layout, Box::new(response))?)?;
        }
        Ok(made)
    })?;
    bodies(adder)?;
    cookies(adder)
}

fn send<'js>(
    it: &Natives,
    ctx: &Ctx<'js>,
    layout: &Class<'js, PropertyLayout<'js>>,
    request: HttpRequest,
) -> js::Result<Value<'js>> {
    match it.waiter.wait(ctx, Call::Request(Box::new(request)))? {
        Reply::Response(response) => finished(it, ctx, layout, response),
        _ => Err(unexpected(ctx)),
    }
}

/// The response of a request whose arguments are wrong, or an exception if the options say so.
fn refused_response<'js>(
    it: &Natives,
    ctx: &Ctx<'js>,
    layout: &Class<'js, PropertyLayout<'js>>,
    refused: RefusedRequest,
) -> js::Result<Value<'js>> {
    match refused {
        RefusedRequest::Invalid(error_code, error) if !it.user.shared.options.throws => {
            it.user.warn(&format!("Request Failed: {error}"));
            lazy_object(layout, Box::new(NoResponse { error_code, error }))
        }
        refused => Err(refused.throw(ctx)),
    }
}

/// The responses of a batch of which one request is invalid: no request is sent, and the invalid one has the last response.
///
/// - `before`: requests before it.
fn refused_batch<'js>(
    it: &Natives,
    ctx: &Ctx<'js>,
    layout: &Class<'js, PropertyLayout<'js>>,
    refused: RefusedRequest,
    before: usize,
) -> js::Result<Array<'js>> {
    let made = Array::new(ctx.clone())?;
    for index in 0..before {
        let unsent = NoResponse {
            error_code: 0,
            error: String::new(),
        };
        made.set(index, lazy_object(layout, Box::new(unsent))?)?;
    }
    made.set(before, refused_response(it, ctx, layout, refused)?)?;
    Ok(made)
}

/// A response as the script sees it, or an exception if the script wants one for failures.
fn finished<'js>(
    it: &Natives,
    ctx: &Ctx<'js>,
    layout: &Class<'js, PropertyLayout<'js>>,
    response: Box<HttpResponse>,
) -> js::Result<Value<'js>> {
    if response.request.throws && !response.error.is_empty() {
        let message = format!(
            "{} {:?}: {}",
            response.request.method,
            response.address.masked(),
            response.error
        );
        return Err(throw_error(ctx, &message));
    }
    if response.request.body_form == BodyForm::Binary {
        it.loader.need_buffers(ctx);
    }
    lazy_object(layout, response)
}

fn unexpected(ctx: &Ctx<'_>) -> js::Error {
    Exception::throw_internal(ctx, "the reply is not one of a request")
}

fn bodies(adder: &Adder<'_, '_>) -> js::Result<()> {
    super::url::form_encode(adder)?;
    adder.add("multipart", |_, ctx, arguments| {
        let fields = Array::from_js(ctx, arguments.value(0))?;
        let boundary = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        let mut body = Vec::new();
        for field in fields.iter::<Array<'_>>() {
            let field = field?;
            let name: String = field.get(0)?;
            let content = bytes_of(&field.get(1)?).unwrap_or_default();
            let quoted = |text: &str| {
                let text = text.replace('"', "%22");
                text.replace('\r', "%0D").replace('\n', "%0A")
            };
            let file = if field.len() > 2 {
                let (file, kind): (String, String) = (field.get(2)?, field.get(3)?);
                let kind = kind.replace(['\r', '\n'], "");
                format!("; filename=\"{}\"\r\nContent-Type: {kind}", quoted(&file))
            } else {
                String::new()
            };
            let head = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"{file}\r\n\r\n",
                quoted(&name)
            );
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(&content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        let made = Array::new(ctx.clone())?;
        made.set(0, ArrayBuffer::new(ctx.clone(), body)?)?;
        made.set(1, format!("multipart/form-data; boundary={boundary}"))?;
        Ok(made)
    })
}

fn cookies(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("newJar", |it, _, _| Ok(it.user.jars.borrow_mut().add()))?;
    adder.add("dropJar", |it, _, arguments| {
        let id = u32::try_from(arguments.index(0)?).unwrap_or_default();
        it.user.jars.borrow_mut().remove(id);
        Ok(())
    })?;
    adder.add("setCookie", |it, ctx, arguments| {
        let (id, url) = jar(ctx, &arguments)?;
        let given = Object::from_js(ctx, arguments.value(4))?;
        let options = CookieOptions {
            domain: given.get("domain")?,
            path: given.get("path")?,
            expires: given.get("expires")?,
            max_age: given.get("max_age")?,
            is_secure: given.get::<_, Option<bool>>("secure")?.unwrap_or(false),
            is_http_only: given.get::<_, Option<bool>>("http_only")?.unwrap_or(false),
        };
        let (name, value) = (arguments.text(2)?, arguments.text(3)?);
        let mut jars = it.user.jars.borrow_mut();
        jars.set(id, &url, (&name, &value), &options, SystemClock.wall());
        Ok(())
    })?;
    adder.add("cookiesFor", |it, ctx, arguments| {
        let (id, url) = jar(ctx, &arguments)?;
        let cookies = it.user.jars.borrow().cookies(id, &url, SystemClock.wall());
        let flat = cookies.into_iter().flat_map(|(name, value)| [name, value]);
        Ok(flat.collect::<Vec<_>>())
    })?;
    adder.add("clearCookies", |it, ctx, arguments| {
        let (id, url) = jar(ctx, &arguments)?;
        it.user
            .jars
            .borrow_mut()
            .clear(id, &url, SystemClock.wall());
        Ok(())
    })?;
    adder.add("deleteCookie", |it, ctx, arguments| {
        let (id, url) = jar(ctx, &arguments)?;
        let mut jars = it.user.jars.borrow_mut();
        jars.delete(id, &url, &arguments.text(2)?, SystemClock.wall());
        Ok(())
    })
}

fn jar<'js>(ctx: &Ctx<'js>, arguments: &super::Arguments<'js>) -> js::Result<(u32, Url)> {
    let id = u32::try_from(arguments.index(0)?).unwrap_or_default();
    let address = arguments.text(1)?;
    let url = Url::parse(&address)
        .map_err(|error| throw_error(ctx, &format!("{address} is not a URL: {error}")))?;
    Ok((id, url))
}

/// The bytes of an argument.
pub(super) fn bytes<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> js::Result<Bytes> {
    bytes_of(value).ok_or_else(|| {
        throw_error(
            ctx,
            "expected a string, an array of bytes or an ArrayBuffer",
        )
    })
}
