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
use crate::store::{Store, StoreError};
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
                let result: Result<_, HostError> = $body(&ctx);
                let result = result.map_err(|error| Exception::throw_message(&ctx, &error.to_string()))?;
                js::IntoJs::into_js(result, &ctx)
            };
            functions.set($name, Function::new(ctx.clone(), function)?.with_name($name)?)?;
        }};
    }
    function!("get", |it, key: String| |ctx: &Ctx<'js>| {
        let value = it.store.value(&key);
        let value = value.map(|value| ctx.json_parse(value.as_bytes()));
        value.transpose().map_err(HostError::Value)
    });
    function!("set", |it, key: String, value: Opt<Value<'js>>| {
        |ctx: &Ctx<'js>| {
            let value = match value.0 {
                Some(value) => ctx.json_stringify(value),
                None => Ok(None),
            };
            let text = match value {
                Ok(Some(text)) => text.to_string().map_err(HostError::Value)?,
                Ok(None) => "null".to_owned(),
                Err(_) => return Err(thrown(ctx)),
            };
            it.store.put(&key, text).map_err(HostError::Store)
        }
    });
    function!("add", |it, key: String, by: f64| |_: &Ctx<'js>| {
        it.store.add(&key, by).map_err(HostError::Store)
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
        let fake = Fake::named(&name).ok_or(HostError::Fake)?;
        Ok(it.chance().with(|rng| fake.make(rng)))
    });
    function!("now", |_it| |_: &Ctx<'js>| {
        let since = SystemClock.wall().duration_since(UNIX_EPOCH);
        Ok(since.map_or(0.0, |since| since.as_millis() as f64))
    });
    Ok(functions)
}

/// Why a function of `host` throws.
#[derive(Debug, thiserror::Error)]
enum HostError {
    #[error(transparent)]
    Value(js::Error),
    #[error(transparent)]
    Store(StoreError),
    /// The message of what a value threw as it was made text.
    #[error("{0}")]
    Thrown(String),
    #[error("there is no such thing to make up; known are {}", known())]
    Fake,
}

fn known() -> String {
    let known: Vec<_> = Fake::names().collect();
    known.join(", ")
}

/// The pending exception.
fn thrown(ctx: &Ctx<'_>) -> HostError {
    let exception = ctx.catch().into_exception();
    let message = exception.and_then(|exception| exception.message());
    HostError::Thrown(message.unwrap_or_else(|| "the value cannot be kept".to_owned()))
}
