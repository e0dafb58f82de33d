//! k6/execution, and the summary for scripts.

use plimsoll_model::Clock as _;
use plimsoll_script::js::{self, Ctx, IntoJs as _, Value};
use plimsoll_wire::SystemClock;

use super::{Adder, Natives, forbid_init};
use crate::go_error::throw_error;
use crate::options::duration::millis;
use crate::summary::{self, LegacyLook};

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("execution", |it, ctx, arguments| {
        property(it, ctx, &arguments.text(0)?)
    })?;
    adder.add("tag", |it, _, arguments| {
        Ok(it.user.tag(&arguments.text(0)?))
    })?;
    adder.add("tagNames", |it, _, _| Ok(it.user.tag_names()))?;
    adder.add("setTag", |it, _, arguments| {
        it.user
            .set_tag(&arguments.text(0)?, arguments.optional_text(1)?);
        Ok(())
    })?;
    adder.add("metadata", |it, _, arguments| {
        Ok(it.user.metadata(&arguments.text(0)?))
    })?;
    adder.add("metadataNames", |it, _, _| Ok(it.user.metadata_names()))?;
    adder.add("setMetadata", |it, _, arguments| {
        it.user
            .set_metadata(&arguments.text(0)?, arguments.optional_text(1)?);
        Ok(())
    })?;
    adder.add("options", |it, _, _| {
        Ok(it.user.shared.options.json.to_string())
    })?;
    adder.add("abort", |it, ctx, arguments| {
        let message = match arguments.text(0)? {
            message if message.is_empty() => "test aborted".to_owned(),
            message => format!("test aborted: {message}"),
        };
        it.user.verdict(|verdict| {
            verdict.aborted.get_or_insert_with(|| message.clone());
        });
        it.user.shared.abort.abort(message);
        it.user.has_aborted.set(true);
        // The iteration ends here, whatever it would catch.
        it.waiter.cancel(ctx)
    })?;
    adder.add("markFailed", |it, ctx, arguments| {
        forbid_init(&it.user, ctx, "test.fail()")?;
        let message = arguments.text(0)?;
        it.user.verdict(|verdict| {
            verdict.failed.get_or_insert(message);
        });
        Ok(())
    })
}

/// The summary for scripts.
pub(super) fn add_summary(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("textSummary", |_, ctx, arguments| {
        let data: serde_json::Value = serde_json::from_str(&arguments.text(0)?)
            .map_err(|error| throw_error(ctx, &error.to_string()))?;
        let options: serde_json::Value = serde_json::from_str(&arguments.text(1)?)
            .map_err(|error| throw_error(ctx, &error.to_string()))?;
        let stats = options["summaryTrendStats"].as_array();
        let stats = stats.into_iter().flatten();
        let look = LegacyLook {
            indent: options["indent"].as_str().unwrap_or_default(),
            has_colors: options["enableColors"] == true,
            unit: options["summaryTimeUnit"].as_str().unwrap_or_default(),
            trend_stats: stats.filter_map(serde_json::Value::as_str).collect(),
            keeps_families: arguments.value(2).as_bool().unwrap_or(true),
        };
        Ok(summary::legacy_text_of(&data, &look))
    })?;
    adder.add("humanize", |_, _, arguments| {
        let (kind, contains) = (arguments.text(1)?, arguments.text(2)?);
        let unit = arguments.text(3)?;
        Ok(summary::humanize(
            arguments.number(0),
            &kind,
            &contains,
            &unit,
        ))
    })
}

fn property<'js>(it: &Natives, ctx: &Ctx<'js>, name: &str) -> js::Result<Value<'js>> {
    let user = &it.user;
    let what = name.split('.').next().unwrap_or_default();
    forbid_init(user, ctx, &format!("{what} of k6/execution"))?;
    let progress = &user.shared.progress;
    let scenario = || {
        user.id.ok_or_else(|| {
            let message = format!("{name} is known in iterations only");
            throw_error(ctx, &message)
        })
    };
    let (in_scenario, own) = user.iteration.get();
    match name {
        "instance.iterationsInterrupted" => progress.interrupted().into_js(ctx),
        "instance.iterationsCompleted" => progress.completed().into_js(ctx),
        "instance.vusActive" => progress.active().into_js(ctx),
        "instance.vusInitialized" => progress.initialised().into_js(ctx),
        "instance.currentTestRunDuration" => {
            millis(user.shared.duration(SystemClock.now())).into_js(ctx)
        }
        "vu.idInInstance" => user.number.into_js(ctx),
        "vu.idInTest" => match (&user.shared.options.segment, user.number.checked_sub(1)) {
            (Some(segment), Some(number)) => (segment.of_run(number) + 1).into_js(ctx),
            _ => user.number.into_js(ctx),
        },
        "vu.iterationInInstance" | "vu.iterationInScenario" => own.into_js(ctx),
        "scenario.iterationInInstance" => {
            scenario()?;
            in_scenario.into_js(ctx)
        }
        "scenario.iterationInTest" => {
            let claims = &user.shared.claims[scenario()?.scenario];
            claims.number_in_run(in_scenario).into_js(ctx)
        }
        _ => {
            let id = scenario()?;
            let options = &user.shared.options.scenarios[id.scenario];
            match name {
                "scenario.name" => options.name.as_str().into_js(ctx),
                "scenario.executor" => options.executor.name().into_js(ctx),
                "scenario.startTime" => {
                    let start = progress.start().unwrap_or(user.shared.start);
                    let passed = SystemClock.now().saturating_duration_since(start);
                    let passed = passed.saturating_sub(options.start_time);
                    let began = SystemClock.wall().checked_sub(passed);
                    let since = began.and_then(|it| it.duration_since(std::time::UNIX_EPOCH).ok());
                    since.map(millis).into_js(ctx)
                }
                "scenario.progress" => {
                    let passed = user.at().saturating_sub(options.start_time);
                    let completed = progress.scenario(id.scenario).completed();
                    let executor = user.shared.claims[id.scenario].executor();
                    executor.progress(passed, completed).into_js(ctx)
                }
                _ => Ok(Value::new_undefined(ctx.clone())),
            }
        }
    }
}
