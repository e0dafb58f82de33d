//! The native side of the modules that scripts import: functions of one object, and globals.

mod codec;

mod core;

mod event_stream;

mod execution;

mod files;

mod grpc;

mod html;

mod http;

mod require;

mod secrets;

mod socket;

mod subtle;

mod url;

mod x509;

use std::path::Path;
use std::rc::Rc;

use plimsoll_script::js::function::Rest;
use plimsoll_script::js::{
    self, ArrayBuffer, Coerced, Ctx, Exception, FromJs as _, Function, IntoJs, Object, Value,
};
use plimsoll_script::{Level, ProgramLoader, Stop, Waiter};

use crate::go_error::throw_error;
use crate::source::own_program;
use crate::user::{Stage, UserState};

/// The context of native functions.
#[derive(Clone)]
pub(crate) struct Natives {
    pub(crate) user: Rc<UserState>,
    pub(crate) waiter: Waiter<UserState>,
    pub(crate) loader: ProgramLoader<UserState>,
}

/// Native functions as they are added to their object.
pub(crate) struct Adder<'a, 'js> {
    ctx: &'a Ctx<'js>,
    object: Object<'js>,
    natives: &'a Natives,
}

impl<'js> Adder<'_, 'js> {
    /// Adds a function that gets its arguments as they are.
    fn add<R: IntoJs<'js> + 'js>(
        &self,
        name: &str,
        call: impl Fn(&Natives, &Ctx<'js>, Arguments<'js>) -> js::Result<R> + 'js,
    ) -> js::Result<()> {
        let natives = self.natives.clone();
        let function = move |ctx: Ctx<'js>, arguments: Rest<Value<'js>>| {
            let arguments = Arguments {
                ctx: ctx.clone(),
                values: arguments.0,
            };
            call(&natives, &ctx, arguments)
        };
        let function = Function::new(self.ctx.clone(), function)?.with_name(name)?;
        self.object.set(name, function)
    }
}

/// The arguments of a call.
pub(crate) struct Arguments<'js> {
    ctx: Ctx<'js>,
    pub(crate) values: Vec<Value<'js>>,
}

impl<'js> Arguments<'js> {
    pub(crate) fn value(&self, index: usize) -> Value<'js> {
        let value = self.values.get(index).cloned();
        value.unwrap_or_else(|| Value::new_undefined(self.ctx.clone()))
    }

    pub(crate) fn text(&self, index: usize) -> js::Result<String> {
        Ok(Coerced::<String>::from_js(&self.ctx, self.value(index))?.0)
    }

    pub(crate) fn optional_text(&self, index: usize) -> js::Result<Option<String>> {
        let value = self.value(index);
        if value.is_undefined() || value.is_null() {
            return Ok(None);
        }
        self.text(index).map(Some)
    }

    pub(crate) fn number(&self, index: usize) -> f64 {
        self.value(index).as_number().unwrap_or(f64::NAN)
    }

    pub(crate) fn index(&self, index: usize) -> js::Result<usize> {
        usize::from_js(&self.ctx, self.value(index))
    }

    /// Tags, or nothing.
    pub(crate) fn tags(&self, index: usize) -> Vec<(String, String)> {
        crate::protocol::http::texts(&self.value(index)).unwrap_or_default()
    }
}

/// Adds native functions to an object.
type Add = for<'a, 'b> fn(&Adder<'a, 'b>) -> js::Result<()>;

/// Native functions by the module that uses them. Each virtual user makes those of the modules that it imports: a function takes some
/// 300 bytes.
const GROUPS: [(&str, Add); 17] = [
    ("codec", codec::add),
    ("data", core::add_data),
    ("event_stream", event_stream::add),
    ("execution", execution::add),
    ("files", files::add),
    ("grpc", grpc::add),
    ("html", html::add),
    ("x509", x509::add),
    ("http", http::add),
    ("k6", core::add_k6),
    ("metrics", core::add_metrics),
    ("require", require::add),
    ("secrets", secrets::add),
    ("socket", socket::add),
    ("subtle", subtle::add),
    ("summary", execution::add_summary),
    ("url", url::add),
];

/// Those groups whose functions make array buffers.
const MAKE_BUFFERS: [&str; 4] = ["codec", "files", "socket", "subtle"];

/// Sets the globals of a virtual user and the object of its native functions.
pub(crate) fn install(ctx: &Ctx<'_>, natives: &Natives) -> Result<(), Stop> {
    let adder = Adder {
        ctx,
        object: Object::new(ctx.clone())?,
        natives,
    };
    adder.add("open", |it, ctx, arguments| open(it, ctx, &arguments))?;
    adder.add("group", |it, ctx, arguments| {
        group(it, ctx, &arguments.text(0)?)
    })?;
    adder.add("library", |it, ctx, arguments| {
        library(it, ctx, &arguments.text(0)?)
    })?;
    core::add(&adder)?;
    ctx.globals().set(NATIVES, adder.object)?;
    natives.loader.load_at_once(ctx, own_program("globals"))?;
    ctx.globals().remove(NATIVES)?;
    natives.waiter.install_timers(ctx)?;
    let user = &natives.user;
    let environment = Object::new(ctx.clone())?;
    let scenario = user
        .id
        .map(|id| &user.shared.options.scenarios[id.scenario].env);
    let of_scenario = scenario.into_iter().flatten();
    for (name, value) in user.shared.environment.iter().chain(of_scenario) {
        environment.set(name.as_str(), value.as_str())?;
    }
    let globals = ctx.globals();
    globals.set("__ENV", environment)?;
    globals.set("__VU", user.number as f64)?;
    globals.set("__ITER", 0)?;
    Ok(())
}

/// The global that hands native functions to `js/globals.js`, which removes it from sight of scripts.
const NATIVES: &str = "plimsoll natives";

fn group<'js>(it: &Natives, ctx: &Ctx<'js>, name: &str) -> js::Result<Object<'js>> {
    let adder = Adder {
        ctx,
        object: Object::new(ctx.clone())?,
        natives: it,
    };
    if MAKE_BUFFERS.contains(&name) {
        it.loader.need_buffers(ctx);
    }
    match GROUPS.iter().find(|(group, _)| *group == name) {
        Some((_, add)) => add(&adder)?,
        None => return Err(Exception::throw_internal(ctx, "no such group of functions")),
    }
    Ok(adder.object)
}

/// Runs a module of this crate and returns its default export.
fn library<'js>(it: &Natives, ctx: &Ctx<'js>, name: &str) -> js::Result<Value<'js>> {
    let loaded = it.loader.load_at_once(ctx, own_program(name));
    let value = loaded.and_then(|exports| it.loader.exported(ctx, exports, "default"));
    value.map_err(|stop| match stop {
        Stop::Failed(error) | Stop::Rejected(error) => error,
        Stop::Kind(kind) => Exception::throw_internal(ctx, &kind.to_string()),
    })
}

/// Reads a file: text, or an array buffer with the mode `b`.
fn open<'js>(it: &Natives, ctx: &Ctx<'js>, arguments: &Arguments<'js>) -> js::Result<Value<'js>> {
    require_init(&it.user, ctx, "open()")?;
    let bytes = it
        .user
        .shared
        .files
        .open(&path_of_module(it, ctx, arguments.text(0)?));
    let bytes = bytes.map_err(|error| throw_error(ctx, &error.to_string()))?;
    if arguments.optional_text(1)?.as_deref() == Some("b") {
        it.loader.need_buffers(ctx);
        return ArrayBuffer::new_copy(ctx.clone(), bytes.as_slice()).map(ArrayBuffer::into_value);
    }
    let text = String::from_utf8_lossy(&bytes);
    js::String::from_str(ctx.clone(), &text).map(js::String::into_value)
}

/// The path of a file that a script opens while it is loaded: relative ones are in the folder of the module that is being loaded.
fn path_of_module(it: &Natives, ctx: &Ctx<'_>, path: String) -> String {
    if path.starts_with('/') || path.starts_with("file://") {
        return path;
    }
    let module = require::loading(it, ctx);
    // Modules of other servers have no folder.
    let folder = Path::new(&module).parent();
    match folder.filter(|folder| folder.is_absolute()) {
        Some(folder) => folder.join(path).to_string_lossy().into_owned(),
        None => path,
    }
}

pub(crate) fn require_init(user: &UserState, ctx: &Ctx<'_>, what: &str) -> js::Result<()> {
    if user.stage.get() == Stage::Init {
        return Ok(());
    }
    let message = format!("{what} can only be used in the init context, outside of functions");
    Err(throw_error(ctx, &message))
}

pub(crate) fn forbid_init(user: &UserState, ctx: &Ctx<'_>, what: &str) -> js::Result<()> {
    if user.stage.get() != Stage::Init {
        return Ok(());
    }
    let message = format!("{what} cannot be used in the init context: call it within a function");
    Err(throw_error(ctx, &message))
}

/// The level that `console` writes with.
pub(crate) fn level(name: &str) -> Level {
    match name {
        "debug" => Level::Debug,
        "warn" => Level::Warning,
        "error" => Level::Error,
        _ => Level::Info,
    }
}
