//! URLs for scripts, by the rules of the URL Standard.

use plimsoll_script::js::{self, Ctx, Exception};
use url::form_urlencoded::{Serializer, parse};
use url::{Url, quirks};

use super::Adder;

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("parseUrl", |_, ctx, arguments| {
        let (address, base) = (arguments.text(0)?, arguments.optional_text(1)?);
        let parsed = match &base {
            Some(base) => parsed(ctx, base)?.join(&address),
            None => Url::parse(&address),
        };
        let url = parsed.map_err(|error| invalid(ctx, &address, error))?;
        Ok(parts(&url))
    })?;
    adder.add("setUrlPart", |_, ctx, arguments| {
        let mut url = parsed(ctx, &arguments.text(0)?)?;
        let value = arguments.text(2)?;
        // What cannot be set leaves the URL as it is.
        match arguments.text(1)?.as_str() {
            "protocol" => drop(quirks::set_protocol(&mut url, &value)),
            "username" => drop(quirks::set_username(&mut url, &value)),
            "password" => drop(quirks::set_password(&mut url, &value)),
            "host" => drop(quirks::set_host(&mut url, &value)),
            "hostname" => drop(quirks::set_hostname(&mut url, &value)),
            "port" => drop(quirks::set_port(&mut url, &value)),
            "pathname" => quirks::set_pathname(&mut url, &value),
            "search" => quirks::set_search(&mut url, &value),
            "hash" => quirks::set_hash(&mut url, &value),
            _ => {}
        }
        Ok(parts(&url))
    })?;
    adder.add("formDecode", |_, _, arguments| {
        let text = arguments.text(0)?;
        let pairs = parse(text.as_bytes()).into_owned();
        Ok(pairs
            .flat_map(|(name, value)| [name, value])
            .collect::<Vec<_>>())
    })?;
    form_encode(adder)
}

/// Adds the encoding of pairs, names and values by turns.
pub(super) fn form_encode(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("formEncode", |_, _, arguments| {
        let pairs: Vec<String> = arguments.value(0).get()?;
        let mut form = Serializer::new(String::new());
        for pair in pairs.chunks_exact(2) {
            form.append_pair(&pair[0], &pair[1]);
        }
        Ok(form.finish())
    })
}

fn parsed(ctx: &Ctx<'_>, address: &str) -> js::Result<Url> {
    Url::parse(address).map_err(|error| invalid(ctx, address, error))
}

fn invalid(ctx: &Ctx<'_>, address: &str, error: url::ParseError) -> js::Error {
    Exception::throw_type(ctx, &format!("Invalid URL {address:?}: {error}"))
}

/// In the order of `PARTS` in `js/url.js`.
fn parts(url: &Url) -> Vec<String> {
    let parts = [
        quirks::href(url),
        &quirks::origin(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ];
    parts.map(str::to_owned).to_vec()
}
