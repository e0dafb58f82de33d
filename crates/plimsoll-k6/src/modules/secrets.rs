//! k6/secrets.

use plimsoll_script::js;

use super::Adder;
use crate::go_error::throw_error;

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("secret", |it, ctx, arguments| {
        let source = arguments.optional_text(0)?;
        let key = arguments.text(1)?;
        let found = it.user.shared.secrets.get(source.as_deref(), &key);
        let found = found.map(str::to_owned);
        found.map_err(|error| throw_error(ctx, &error.to_string()))
    })
}
