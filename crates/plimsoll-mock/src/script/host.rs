//! Host functions for scripts of a mock: the store, chance and time.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use plimsoll_model::Clock as _;
use plimsoll_script::js::function::Opt;
use plimsoll_script::js::{self, Ctx, Exception, Function, Object, Value};
use plimsoll_script::{Host, Level};
use plimsoll_server::{Notice, Severity};
use plimsoll_wire::SystemClock;

use crate::script::notice_limiter::NoticeLimiter;
use crate::store::Store;
use crate::template::fake::Fake;
use crate::template::{Chance, uuid};

/// State that the scripts of one thread share.
#[derive(Debug)]
pub(super) struct MockHost {
    store: Store,
    notices: Arc<NoticeLimiter>,
    /// Of the rule whose script runs, and what that script is called.
    current: RefCell<(Chance, String)>,
}

impl Host for MockHost {
    type Call = Infallible;
    type Reply = Infallible;
}

impl MockHost {
    pub(super) fn new(store: Store, notices: Arc<NoticeLimiter>) -> Self {
        Self {
            store,
            notices,
            current: RefCell::default(),
        }
    }

    /// From now on that one runs.
    pub(super) fn begin(&self, chance: &Chance, name: &str) {
        *self.current.borrow_mut() = (chance.clone(), name.to_owned());
    }

    fn chance(&self) -> Chance {
        self.current.borrow().0.clone()
    }

    /// Reports what a script prints.
    pub(super) fn print(&self, level: Level, text: &str) {
        let severity = match level {
            Level::Debug | Level::Info => Severity::Note,
            Level::Warning => Severity::Warning,
            Level::Error => Severity::Error,
        };
        let about = self.current.borrow().1.clone();
        self.report(severity, &about, text);
    }

    /// Passes a notice on to the log of the mock.
    pub(super) fn report(&self, severity: Severity, about: &str, message: &str) {
        let notice = Notice::new(severity, message);
        self.notices.report(&if about.is_empty() {
            notice
        } else {
            notice.about(about)
        });
    }
}

/// The functions of `host` in the prelude.
pub(super) fn functions<'js>(host: &Rc<MockHost>, ctx: &Ctx<'js>) -> js::Result<Object<'js>> {
    let functions = Object::new(ctx.clone())?;
    macro_rules! function {
        ($name:literal, |$this:ident $(, $argument:ident: $type:ty)*| $body:expr) => {{
            let $this = Rc::clone(host);
            let function = move |ctx: Ctx<'js> $(, $argument: $type)*| -> js::Result<Value<'js>> {
                let result: Result<_, String> = $body(&ctx);
                let result = result.map_err(|message| Exception::throw_message(&ctx, &message))?;
                js::IntoJs::into_js(result, &ctx)
            };
            functions.set($name, Function::new(ctx.clone(), function)?.with_name($name)?)?;
        }};
    }
    function!("get", |it, key: String| |ctx: &Ctx<'js>| {
        let value = it.store.value(&key);
        let value = value.map(|value| ctx.json_parse(value.as_bytes()));
        value.transpose().map_err(|error| error.to_string())
    });
    function!("set", |it, key: String, value: Opt<Value<'js>>| {
        |ctx: &Ctx<'js>| {
            let value = match value.0 {
                Some(value) => ctx.json_stringify(value),
                None => Ok(None),
            };
            let text = match value {
                Ok(Some(text)) => text.to_string().map_err(|error| error.to_string())?,
                Ok(None) => "null".to_owned(),
                Err(_) => return Err(thrown(ctx)),
            };
            it.store.put(&key, text).map_err(|error| error.to_string())
        }
    });
    function!("add", |it, key: String, by: f64| |_: &Ctx<'js>| {
        it.store.add(&key, by).map_err(|error| error.to_string())
    });
    function!("delete", |it, key: String| |_: &Ctx<'js>| Ok(it
        .store
        .remove(&key)));
    function!("keys", |it, beginning: String| |_: &Ctx<'js>| Ok(it
        .store
        .keys(&beginning)));
    function!("random", |it| |_: &Ctx<'js>| Ok(it
        .chance()
        .with(fastrand::Rng::f64)));
    function!("uuid", |it| |_: &Ctx<'js>| Ok(it.chance().with(uuid)));
    function!("fake", |it, name: String| |_: &Ctx<'js>| {
        let fake = Fake::named(&name).ok_or_else(|| {
            let known: Vec<_> = Fake::names().collect();
            format!(
                "there is no such thing to make up; known are {}",
                known.join(", ")
            )
        })?;
        Ok(it.chance().with(|rng| fake.make(rng)))
    });
    function!("now", |_it| |_: &Ctx<'js>| {
        let since = SystemClock.wall().duration_since(UNIX_EPOCH);
        Ok(since.map_or(0.0, |since| since.as_millis() as f64))
    });
    Ok(functions)
}

/// The message of the pending exception.
fn thrown(ctx: &Ctx<'_>) -> String {
    let exception = ctx.catch().into_exception();
    let message = exception.and_then(|exception| exception.message());
    message.unwrap_or_else(|| "the value cannot be kept".to_owned())
}
