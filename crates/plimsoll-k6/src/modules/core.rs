//! k6, k6/metrics, k6/data, console.

use std::time::Duration;

use plimsoll_load::scenario::{Contains, MetricId, MetricKind};
use plimsoll_script::js::{self, Value};

use super::{Adder, forbid_init, level, require_init};
use crate::go_error::throw_error;
use crate::line_source::LineSource;
use crate::metrics::checks::SEPARATOR;
use crate::user::{Call, Stage};

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("log", |it, _, arguments| {
        let (level, text) = (level(&arguments.text(0)?), arguments.text(1)?);
        let source = match it.user.stage.get() {
            Stage::Init => LineSource::ConsoleAtInit,
            _ => LineSource::Console,
        };
        (it.user.shared.log)(level, &text, source);
        Ok(())
    })?;
    adder.add("fail", |_, ctx, arguments| {
        Err::<(), _>(throw_error(ctx, &arguments.text(0)?))
    })?;
    adder.add("forbidInit", |it, ctx, arguments| {
        forbid_init(&it.user, ctx, &arguments.text(0)?)
    })?;
    adder.add("requireInit", |it, ctx, arguments| {
        require_init(&it.user, ctx, &arguments.text(0)?)
    })?;
    adder.add("random", |it, _, _| Ok(it.user.random.borrow_mut().f64()))
}

/// The functions of `k6`.
pub(super) fn add_k6(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("sleep", |it, ctx, arguments| {
        let seconds = arguments.number(0);
        let Ok(duration) = Duration::try_from_secs_f64(seconds) else {
            let message = format!("sleep() takes a number of seconds, not {seconds}");
            return Err(throw_error(ctx, &message));
        };
        forbid_init(&it.user, ctx, "sleep()")?;
        it.waiter.wait(ctx, Call::Sleep(duration)).map(drop)
    })?;
    adder.add("check", |it, _, arguments| {
        let is_passed = arguments.value(1).as_bool().unwrap_or(false);
        it.user
            .count_check(&arguments.text(0)?, is_passed, arguments.tags(2));
        Ok(())
    })?;
    groups(adder)?;
    adder.add("randomSeed", |it, _, arguments| {
        let bits = arguments.number(0).to_bits();
        it.user.random.replace(fastrand::Rng::with_seed(bits));
        Ok(())
    })
}

fn groups(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("enterGroup", |it, ctx, arguments| {
        let name = arguments.text(0)?;
        if name.contains(SEPARATOR) || name.is_empty() {
            let message = "the name of a group must not be empty or contain '::'";
            return Err(throw_error(ctx, message));
        }
        it.user.enter_group(&name);
        Ok(())
    })?;
    adder.add("leaveGroup", |it, _, _| {
        it.user.leave_group();
        Ok(())
    })
}

pub(super) fn add_metrics(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("metric", |it, ctx, arguments| {
        require_init(&it.user, ctx, "metrics")?;
        let kind = match arguments.text(0)?.as_str() {
            "counter" => MetricKind::Counter,
            "gauge" => MetricKind::Gauge,
            "rate" => MetricKind::Rate,
            _ => MetricKind::Trend,
        };
        let contains = if arguments.value(2).as_bool().unwrap_or(false) {
            Contains::Time
        } else {
            Contains::Default
        };
        let id = it
            .user
            .shared
            .registry
            .register(&arguments.text(1)?, kind, contains);
        let id = id.map_err(|error| throw_error(ctx, &error.to_string()))?;
        Ok(f64::from(id.number()))
    })?;
    adder.add("addSample", |it, ctx, arguments| {
        forbid_init(&it.user, ctx, "adding to a metric")?;
        let value = arguments.number(1);
        if !value.is_finite() {
            let message = "a metric takes a number or a boolean";
            if it.user.shared.options.throws {
                return Err(throw_error(ctx, message));
            }
            it.user.warn(message);
            return Ok(false);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is the id of a metric"
        )]
        let id = MetricId::of_number(arguments.number(0) as u32);
        it.user.add(id, value, &arguments.tags(2));
        Ok(true)
    })
}

pub(super) fn add_data(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("findShared", |it, _, arguments| {
        let found = it.user.shared.shared_arrays.find(&arguments.text(0)?);
        Ok(found.map_or(-1.0, |index| index as f64))
    })?;
    adder.add("share", |it, _, arguments| {
        let elements = arguments.value(1);
        let elements: Vec<String> = elements.get()?;
        let index = it
            .user
            .shared
            .shared_arrays
            .add(&arguments.text(0)?, elements);
        Ok(index as f64)
    })?;
    adder.add("sharedLength", |it, _, arguments| {
        let array = it.user.shared.shared_arrays.get(arguments.index(0)?);
        Ok(array.map_or(0.0, |array| array.len() as f64))
    })?;
    adder.add("sharedElement", |it, ctx, arguments| {
        let array = it.user.shared.shared_arrays.get(arguments.index(0)?);
        let array = array.unwrap_or_default();
        match array.get(arguments.index(1)?) {
            Some(text) => {
                let text = js::String::from_str(ctx.clone(), text)?;
                Ok(text.into_value())
            }
            None => Ok(Value::new_undefined(ctx.clone())),
        }
    })
}
