//! The helpers that templates may call: those that both dialects have, and how all of them are called.

use std::sync::Arc;

use handlebars::JsonTruthy as _;
use handlebars::{
    Context, Handlebars, Helper, HelperDef, HelperResult, Output, RenderContext, RenderError,
    RenderErrorReason, Renderable, ScopedJson, Template,
};
use serde_json::Value;

use super::call::{Call, HelperError, Run, number};
use super::output::BoundedOutput;
use super::{json, mockoon, state, wiremock};
use crate::template::data::DataBuckets;
use crate::template::{Chance, Dialect};

/// The role of a helper's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    /// The helper has no block.
    None,
    /// It stands where the helper holds, what is behind `else` where it does not.
    Condition,
    /// It is the first argument.
    Text,
    /// It is the last argument.
    Last,
}

/// A helper: its name, what its block is for, and what it does.
pub(super) type Entry = (&'static str, Block, Run);

/// Helpers of the library.
const BUILT_IN: [&str; 5] = ["if", "unless", "each", "with", "lookup"];

/// Helpers that change what the template sees, or walk over their blocks.
const SPECIAL: [(&str, Dialect, Option<Act>); 7] = [
    ("assign", Dialect::WireMock, Some(assign)),
    ("val", Dialect::WireMock, Some(val)),
    ("setVar", Dialect::Mockoon, Some(assign)),
    ("repeat", Dialect::Mockoon, Some(mockoon::repeat)),
    ("switch", Dialect::Mockoon, Some(mockoon::switch)),
    // Parts of `switch`.
    ("case", Dialect::Mockoon, None),
    ("default", Dialect::Mockoon, None),
];

const COMMON: [Entry; 14] = [
    ("eq", Block::Condition, |call| Ok(is_equal(call).into())),
    ("neq", Block::Condition, |call| Ok((!is_equal(call)).into())),
    ("ne", Block::Condition, |call| Ok((!is_equal(call)).into())),
    ("gt", Block::Condition, |call| {
        compare(call, |one, other| one > other)
    }),
    ("gte", Block::Condition, |call| {
        compare(call, |one, other| one >= other)
    }),
    ("lt", Block::Condition, |call| {
        compare(call, |one, other| one < other)
    }),
    ("lte", Block::Condition, |call| {
        compare(call, |one, other| one <= other)
    }),
    ("and", Block::Condition, |call| {
        Ok(call.arguments.iter().all(|it| it.is_truthy(false)).into())
    }),
    ("or", Block::Condition, |call| {
        Ok(call.arguments.iter().any(|it| it.is_truthy(false)).into())
    }),
    ("not", Block::Condition, |call| {
        Ok((!call.argument(0).is_some_and(|it| it.is_truthy(false))).into())
    }),
    ("trim", Block::Text, |call| Ok(call.text(0).trim().into())),
    ("lower", Block::Text, |call| {
        Ok(call.text(0).to_lowercase().into())
    }),
    ("upper", Block::Text, |call| {
        Ok(call.text(0).to_uppercase().into())
    }),
    ("replace", Block::Text, |call| {
        Ok(call.text(0).replace(&call.text(1), &call.text(2)).into())
    }),
];

fn all(dialect: Dialect) -> impl Iterator<Item = &'static Entry> {
    let own: [&'static [Entry]; 3] = match dialect {
        Dialect::WireMock => [&wiremock::HELPERS, &json::HELPERS, &state::HELPERS],
        Dialect::Mockoon => [&mockoon::HELPERS, &[], &[]],
    };
    COMMON.iter().chain(own.into_iter().flatten())
}

/// Whether there is such a helper.
pub(super) fn is_known(name: &str, dialect: Dialect) -> bool {
    BUILT_IN.contains(&name)
        || SPECIAL.iter().any(|it| (it.0, it.1) == (name, dialect))
        || all(dialect).any(|(known, ..)| *known == name)
}

/// Where a helper's arguments have the name of a variable that takes its value, if it is given.
pub(super) fn name_at(helper: &str, dialect: Dialect) -> Option<usize> {
    match (dialect, helper) {
        (Dialect::WireMock, "regexExtract") => Some(2),
        (Dialect::WireMock, "formData" | "parseJson") => Some(1),
        _ => None,
    }
}

/// Whether a helper takes all values of a parameter, not only the first one.
pub(super) fn takes_lists(name: &str) -> bool {
    [
        "each",
        "size",
        "join",
        "pickRandom",
        "toJson",
        "contains",
        "with",
        "lookup",
        "arrayJoin",
    ]
    .contains(&name)
}

pub(super) fn register(
    registry: &mut Handlebars<'static>,
    dialect: Dialect,
    chance: &Chance,
    data: &Arc<DataBuckets>,
) {
    for (name, block, run) in all(dialect) {
        let helper = Function {
            block: *block,
            run: *run,
            name_at: name_at(name, dialect),
            chance: chance.clone(),
            data: Arc::clone(data),
        };
        registry.register_helper(name, Box::new(helper));
    }
    for name in ["log", "len", "raw"] {
        if !is_known(name, dialect) {
            registry.unregister_helper(name);
        }
    }
    for (name, _, act) in SPECIAL.iter().filter(|(_, known, _)| *known == dialect) {
        if let Some(act) = act {
            let chance = chance.clone();
            registry.register_helper(name, Box::new(Special { act: *act, chance }));
        }
    }
}

/// The surroundings of a helper that writes its own output.
pub(super) struct Scene<'s, 'reg: 'rc, 'rc> {
    pub(super) helper: &'s Helper<'rc>,
    pub(super) registry: &'reg Handlebars<'reg>,
    pub(super) context: &'rc Context,
    pub(super) render: &'s mut RenderContext<'reg, 'rc>,
    pub(super) output: &'s mut dyn Output,
    pub(super) chance: &'s Chance,
}

impl<'reg: 'rc, 'rc> Scene<'_, 'reg, 'rc> {
    /// Renders a template.
    pub(super) fn rendered(&mut self, template: &'rc Template) -> Result<String, RenderError> {
        let mut text = BoundedOutput::within(self.output);
        template.render(self.registry, self.context, self.render, &mut text)?;
        Ok(text.into_text())
    }

    /// Writes the result of a template; nothing without one.
    pub(super) fn write(&mut self, template: Option<&'rc Template>) -> HelperResult {
        template.map_or(Ok(()), |it| {
            it.render(self.registry, self.context, self.render, self.output)
        })
    }

    /// The value of an argument.
    pub(super) fn argument(&self, at: usize) -> Option<&Value> {
        self.helper.param(at).map(handlebars::PathAndJson::value)
    }

    pub(super) fn option(&self, name: &str) -> Option<&Value> {
        self.helper
            .hash_get(name)
            .map(handlebars::PathAndJson::value)
    }
}

/// A helper that writes its own output.
pub(super) type Act = fn(&mut Scene<'_, '_, '_>) -> HelperResult;

struct Special {
    act: Act,
    chance: Chance,
}

impl HelperDef for Special {
    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        render: &mut RenderContext<'reg, 'rc>,
        output: &mut dyn Output,
    ) -> HelperResult {
        (self.act)(&mut Scene {
            helper,
            registry,
            context,
            render,
            output,
            chance: &self.chance,
        })
    }
}

struct Function {
    block: Block,
    run: Run,
    /// Which argument is the name of a variable that takes the value.
    name_at: Option<usize>,
    chance: Chance,
    data: Arc<DataBuckets>,
}

impl Function {
    fn value(
        &self,
        helper: &Helper<'_>,
        inner: Option<&Value>,
        context: &Context,
    ) -> Result<Value, RenderError> {
        let arguments = helper.params().iter().map(handlebars::PathAndJson::value);
        let is_last = self.block == Block::Last;
        let first = inner.filter(|_| !is_last);
        let last = inner.filter(|_| is_last);
        let options = helper.hash().iter().map(|(name, it)| (*name, it.value()));
        let call = Call {
            arguments: first.into_iter().chain(arguments).chain(last).collect(),
            options: options.collect(),
            name: helper.name(),
            model: context.data(),
            chance: &self.chance,
            data: &self.data,
        };
        (self.run)(&call).map_err(|error| failed(helper.name(), &error.to_string()))
    }
}

impl HelperDef for Function {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        context: &'rc Context,
        render: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        let changed = render.context();
        let now = changed.as_deref().unwrap_or(context);
        self.value(helper, None, now).map(ScopedJson::Derived)
    }

    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        render: &mut RenderContext<'reg, 'rc>,
        output: &mut dyn Output,
    ) -> HelperResult {
        if helper.is_block() && self.block == Block::Condition {
            let changed = render.context();
            let now = changed.as_deref().unwrap_or(context);
            let holds = self.value(helper, None, now)?.is_truthy(false);
            let template = if holds {
                helper.template()
            } else {
                helper.inverse()
            };
            return template.map_or(Ok(()), |it| it.render(registry, context, render, output));
        }
        let inner = match helper.template() {
            Some(template)
                if helper.is_block() && matches!(self.block, Block::Text | Block::Last) =>
            {
                let mut scene = Scene {
                    helper,
                    registry,
                    context,
                    render,
                    output,
                    chance: &self.chance,
                };
                Some(Value::from(scene.rendered(template)?))
            }
            Some(_) => return Err(failed(helper.name(), "is no block")),
            None => None,
        };
        let changed = render.context();
        let now = changed.as_deref().unwrap_or(context);
        let value = self.value(helper, inner.as_ref(), now)?;
        let name_at = self
            .name_at
            .and_then(|at| at.checked_sub(inner.iter().len()));
        let name = name_at
            .and_then(|at| helper.param(at))
            .map(|it| shown(it.value()));
        match name {
            Some(name) => set(render, context, &name, value),
            None => output.write(&shown(&value))?,
        }
        Ok(())
    }
}

/// Lists and objects as JSON, everything else as its text.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

pub(super) fn failed(name: &str, reason: &str) -> RenderError {
    RenderErrorReason::Other(format!("`{name}`: {reason}")).into()
}

/// `{{assign 'name' value}}`, or with a block whose text is the value: sets a name for the rest of the template.
fn assign(scene: &mut Scene<'_, '_, '_>) -> HelperResult {
    let name = scene.argument(0).map(shown);
    let name = name.ok_or_else(|| failed(scene.helper.name(), "needs a name"))?;
    let value = match scene.helper.template() {
        Some(template) => Value::from(scene.rendered(template)?),
        None => scene.argument(1).cloned().unwrap_or_default(),
    };
    set(scene.render, scene.context, &name, value);
    Ok(())
}

/// `{{val value or='default' assign='name'}}`
fn val(scene: &mut Scene<'_, '_, '_>) -> HelperResult {
    let given = scene.argument(0).filter(|it| !it.is_null());
    let other = scene.option("or").or(scene.option("default"));
    let value = given.or(other).cloned().unwrap_or_default();
    match scene.option("assign").map(shown) {
        Some(name) => set(scene.render, scene.context, &name, value),
        None => scene.output.write(&shown(&value))?,
    }
    Ok(())
}

/// Gives a name a value for what comes behind.
fn set(render: &mut RenderContext<'_, '_>, context: &Context, name: &str, value: Value) {
    let mut changed = match render.context() {
        Some(context) => (*context).clone(),
        None => context.clone(),
    };
    if let Value::Object(model) = changed.data_mut() {
        model.insert(name.to_owned(), value.clone());
    }
    if let Some(block) = render.block_mut() {
        block.set_local_var(name, value);
    }
    render.set_context(changed);
}

fn is_equal(call: &Call<'_>) -> bool {
    let (one, other) = (call.argument(0), call.argument(1));
    match (one, other) {
        (Some(one), Some(other)) if one.is_number() && other.is_number() => {
            number(one) == number(other)
        }
        (Some(one), Some(other)) => one == other || shown(one) == shown(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

fn compare(call: &Call<'_>, holds: fn(f64, f64) -> bool) -> Result<Value, HelperError> {
    let side = |at: usize| match call.argument(at) {
        // As JavaScript compares them.
        Some(Value::Bool(flag)) => Ok(f64::from(u8::from(*flag))),
        _ => call.number(at),
    };
    Ok(holds(side(0)?, side(1)?).into())
}
