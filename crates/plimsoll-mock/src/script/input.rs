//! A request as scripts see it.

use std::collections::BTreeMap;

use plimsoll_script::js::function::Args;
use plimsoll_script::js::{self, Ctx, Object};

use super::Script;
use crate::request::{Pairs, RequestView};

/// The request and the context as the prelude gets them. Crosses to the thread of scripts.
#[derive(Debug)]
pub(super) struct Input {
    method: String,
    path: String,
    url: String,
    host: String,
    peer: String,
    is_secure: bool,
    headers: BTreeMap<String, String>,
    query: Pairs,
    form: Pairs,
    cookies: Pairs,
    params: Vec<(String, String)>,
    body: String,
    state: Option<String>,
}

impl Input {
    /// - `state`: that of the scenario of the rule.
    pub(super) fn new(script: &Script, request: &RequestView<'_>, state: Option<String>) -> Self {
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in request.headers() {
            let value = String::from_utf8_lossy(value);
            headers
                .entry(name.to_ascii_lowercase())
                // RFC 9110, section 5.3
                .and_modify(|all| {
                    all.push_str(if name.eq_ignore_ascii_case("cookie") {
                        "; "
                    } else {
                        ", "
                    });
                    all.push_str(&value);
                })
                .or_insert_with(|| value.into_owned());
        }
        let segment = |number: usize| request.path.split('/').nth(number + 1);
        let params = script.names.iter();
        let params =
            params.filter_map(|(name, number)| Some((name.clone(), segment(*number)?.to_owned())));
        Self {
            method: request.method.to_owned(),
            path: request.path.clone().into_owned(),
            url: request.own_url().into_owned(),
            host: request.authority.to_owned(),
            peer: request.peer.ip().to_string(),
            is_secure: request.is_tls,
            headers,
            query: request.parameters().clone(),
            form: request.form().clone(),
            cookies: request.cookies().clone(),
            params: params.collect(),
            body: String::from_utf8_lossy(request.body).into_owned(),
            state,
        }
    }

    /// Adds it to the arguments of the prelude, in the order of its constructor.
    pub(super) fn push_to<'js>(self, ctx: &Ctx<'js>, arguments: &mut Args<'js>) -> js::Result<()> {
        arguments.push_arg(self.state)?;
        arguments.push_arg(self.method)?;
        arguments.push_arg(self.path)?;
        arguments.push_arg(self.url)?;
        arguments.push_arg(self.host)?;
        arguments.push_arg(self.peer)?;
        arguments.push_arg(self.is_secure)?;
        arguments.push_arg(object(ctx, self.headers)?)?;
        arguments.push_arg(object(ctx, self.params)?)?;
        arguments.push_arg(self.body)?;
        for pairs in [self.query, self.cookies, self.form] {
            let pairs = pairs.into_iter();
            let flat: Vec<_> = pairs.flat_map(|(name, value)| [name, value]).collect();
            arguments.push_arg(flat)?;
        }
        Ok(())
    }

    /// Number of these arguments.
    pub(super) const ARGUMENTS: usize = 13;
}

fn object<'js>(
    ctx: &Ctx<'js>,
    pairs: impl IntoIterator<Item = (String, String)>,
) -> js::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for (name, value) in pairs {
        object.set(name, value)?;
    }
    Ok(object)
}
