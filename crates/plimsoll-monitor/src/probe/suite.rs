//! Several checks one after the other, as a suite of Gatus: later ones use what earlier ones stored.
//!
//! As in Gatus a step that fails ends the suite but for steps that always run, and a value that cannot be stored fails the step
//! that uses it. Otherwise than there the limit of the whole suite ends it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{Clock, Failure, FailureKind, Phase, is_secret_field, masked_urls};
use serde_json::Value;

use crate::detect::status::Status;
use crate::probe::context::{ProbeContext, Reach};
use crate::probe::gatus_condition::value_of;
use crate::probe::http::{HttpOptions, HttpProbe, HttpProbeError};
use crate::probe::known_secrets::KnownSecrets;
use crate::probe::reading::{Expectation, GatusDisplay, Judged, Reading};
use crate::probe::suite_context::SuiteContext;
use crate::probe::{GatusCondition, Probe, ProbeFuture};
use crate::time::Timestamp;

/// Checks a suite.
#[derive(Debug)]
pub struct SuiteProbe {
    /// In their order.
    pub steps: Vec<SuiteStep>,
    /// The values at the beginning.
    pub context: SuiteContext,
    /// Of all steps together.
    pub timeout: Duration,
    /// Credentials that the steps send.
    pub secrets: Arc<KnownSecrets>,
}

/// One check of a suite.
#[derive(Debug)]
pub struct SuiteStep {
    /// Its name in reasons and conditions.
    pub name: String,
    /// What it does.
    pub does: StepProbe,
    /// The conditions, all of which must hold.
    pub conditions: Vec<GatusCondition>,
    /// Whether a target that cannot be reached is left to the conditions.
    pub leaves_failures: bool,
    /// Display of its conditions.
    pub shows: GatusDisplay,
    /// What later steps may use, by its name: a placeholder such as `[BODY].id`.
    pub store: Vec<(String, String)>,
    /// Whether it runs after a step that failed.
    pub always_runs: bool,
}

impl SuiteStep {
    /// A condition, as one of the suite.
    fn named(&self, condition: &str) -> String {
        format!("{}: {condition}", self.name)
    }

    /// Its conditions where they hold, unless they are hidden.
    pub(crate) fn texts(&self) -> Vec<String> {
        let conditions = self
            .conditions
            .iter()
            .filter(|_| !self.shows.hide_conditions);
        conditions
            .map(|condition| self.named(condition.text()))
            .collect()
    }
}

/// What a step does.
#[derive(Debug)]
pub enum StepProbe {
    /// The same each time.
    Fixed(Arc<dyn Probe>),
    /// A request with places for what earlier steps stored.
    Filled(Box<FilledRequest>),
}

/// A request whose URL, fields and content have places such as `[CONTEXT].id`.
#[derive(Debug)]
pub struct FilledRequest {
    /// All but the content.
    pub options: HttpOptions,
    /// The content as text.
    pub body: Option<String>,
    /// Whether the content is a query of GraphQL.
    pub is_graphql: bool,
    /// The way to the target.
    pub reach: Reach,
}

/// Why a step has no request to make.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FillError {
    /// Places without a value, by their paths.
    #[error("nothing is stored as {}", .0.join(", "))]
    Missing(Vec<String>),
    /// What comes of the options is no request.
    #[error(transparent)]
    Request(#[from] HttpProbeError),
}

impl FilledRequest {
    /// Checks that a request without places can be made.
    pub(crate) fn options_hold(&self) -> Result<(), FillError> {
        self.probe(&SuiteContext::default()).map(|_| ())
    }

    /// The probe with all places filled, and the values of fields that are credentials.
    fn probe(&self, context: &SuiteContext) -> Result<(HttpProbe, Vec<String>), FillError> {
        let mut missing = BTreeSet::new();
        let mut fill = |text: &str| context.fill(text, &mut missing);
        let url = fill(&self.options.url);
        let body = self.body.as_deref().map(&mut fill);
        let fields: Vec<_> = self
            .options
            .fields
            .iter()
            .map(|(name, value)| (name.clone(), fill(value)))
            .collect();
        if !missing.is_empty() {
            return Err(FillError::Missing(missing.into_iter().collect()));
        }
        let is_secret = |(name, _): &&(String, String)| is_secret_field(name);
        let secrets = fields.iter().filter(is_secret);
        let secrets = secrets.map(|(_, value)| value.clone()).collect();
        let options = HttpOptions {
            url,
            fields,
            body: body.map(|body| content(body, self.is_graphql).into_bytes()),
            ..self.options.clone()
        };
        Ok((HttpProbe::new(options, self.reach.clone())?, secrets))
    }
}

/// The content of a request.
pub(crate) fn content(body: String, is_graphql: bool) -> String {
    if is_graphql {
        serde_json::json!({ "query": body }).to_string()
    } else {
        body
    }
}

/// The result of the suite so far.
#[derive(Default)]
struct Progress {
    reading: Reading,
    /// Values that were not there to be stored, with their steps.
    not_stored: Vec<String>,
    has_failed: bool,
}

impl SuiteProbe {
    async fn run(&self, context: &ProbeContext, progress: &mut Progress) {
        let mut values = self.context.clone();
        for step in &self.steps {
            if progress.has_failed && !step.always_runs {
                continue;
            }
            self.run_step(step, context, &mut values, progress).await;
        }
    }

    async fn run_step(
        &self,
        step: &SuiteStep,
        context: &ProbeContext,
        values: &mut SuiteContext,
        progress: &mut Progress,
    ) {
        let at = Timestamp::from_system(context.clock.wall());
        let mut secrets = KnownSecrets::clone(&self.secrets);
        let (mut reading, problem) = match &step.does {
            StepProbe::Fixed(probe) => (probe.check(context).await, None),
            StepProbe::Filled(request) => match request.probe(values) {
                Ok((probe, sent)) => {
                    for value in &sent {
                        secrets.add_field(value);
                    }
                    (probe.check(context).await, None)
                }
                Err(problem) => (Reading::default(), Some(problem.to_string())),
            },
        };
        reading.context = Some(Arc::new(values.clone()));
        let expectation = Expectation::Gatus {
            conditions: step.conditions.clone(),
            leaves_failures: step.leaves_failures,
            shows: step.shows,
        };
        let result = expectation.judge(&reading, at, &secrets);
        for (name, placeholder) in &step.store {
            match value_of(placeholder, &reading, at) {
                Some(text) => values.set(name, stored(&text)),
                None => progress.not_stored.push(format!(
                    "`{}` has no {placeholder} to store as {name}",
                    step.name
                )),
            }
        }
        let whole = &mut progress.reading;
        if !step.shows.hide_conditions {
            let judged = result.conditions.into_iter();
            whole.judged.extend(judged.map(|one| Judged {
                condition: step.named(&one.condition),
                ..one
            }));
        }
        whole.phases.add(&reading.phases);
        whole.connected |= reading.connected;
        whole.peer = whole.peer.or(reading.peer);
        whole.size += reading.size;
        if let Some(found) = reading.certificate {
            let is_first = |known: &plimsoll_model::Certificate| found.not_after < known.not_after;
            if whole.certificate.as_ref().is_none_or(is_first) {
                whole.certificate = Some(found);
            }
        }
        let has_failed = result.status != Status::Up || problem.is_some();
        if has_failed && !progress.has_failed {
            // The first failure is that of the suite.
            whole.code = reading.code;
            if result.status == Status::Error {
                whole.failure = reading.failure;
            }
            let reason = problem.or(result.reason).unwrap_or_default();
            let mut parts = vec![format!("step `{}`: {reason}", step.name)];
            parts.append(&mut progress.not_stored);
            whole.unmet = Some(parts.join("; "));
        } else if !progress.has_failed {
            whole.code = reading.code;
        }
        progress.has_failed |= has_failed;
    }
}

impl Probe for SuiteProbe {
    fn kind(&self) -> &'static str {
        "suite"
    }

    fn target(&self) -> String {
        let first = self.steps.first().map(|step| match &step.does {
            StepProbe::Fixed(probe) => probe.target(),
            StepProbe::Filled(request) => masked_urls(&request.options.url).into_owned(),
        });
        let more = self.steps.len().saturating_sub(1);
        match (first, more) {
            (None, _) => String::new(),
            (Some(first), 0) => first,
            (Some(first), more) => format!("{first} and {more} more"),
        }
    }

    /// Its steps go to several.
    fn host(&self) -> Option<Arc<str>> {
        None
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(async move {
            let begun = context.clock.now();
            let mut progress = Progress::default();
            let run = self.run(context, &mut progress);
            let ended = tokio::time::timeout(self.timeout, run).await;
            let mut reading = progress.reading;
            if ended.is_err() && reading.failure.is_none() && reading.unmet.is_none() {
                let cause = format!("the suite did not end within {:?}", self.timeout);
                let failure = Failure::new(Phase::Wait, FailureKind::Timeout);
                reading.failure = Some(failure.because(cause));
            }
            reading.took = context.clock.now().saturating_duration_since(begun);
            reading
        })
    }
}

/// A text as Gatus stores it: as a number or a boolean if it is one.
fn stored(text: &str) -> Value {
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    if let Ok(number) = text.parse::<f64>() {
        return match serde_json::Number::from_f64(number) {
            Some(number) => Value::Number(number),
            // As Go writes them.
            None if number.is_nan() => "NaN".into(),
            None if number > 0.0 => "+Inf".into(),
            None => "-Inf".into(),
        };
    }
    match text {
        "t" | "T" | "true" | "TRUE" | "True" => true.into(),
        "f" | "F" | "false" | "FALSE" | "False" => false.into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_texts_become_numbers_and_booleans_as_in_gatus() {
        for (text, shown) in [
            ("007", "7"),
            ("1.0", "1"),
            ("24.99", "24.99"),
            ("1500000", "1500000"),
            ("1.5e+06", "1.5e+06"),
            ("9223372036854775807", "9223372036854775807"),
            ("12345678901234567890", "1.2345678901234567e+19"),
            ("1e5", "100000"),
            ("inf", "+Inf"),
            ("T", "true"),
            ("False", "false"),
            ("yes", "yes"),
            ("a b", "a b"),
            ("", ""),
        ] {
            let mut context = SuiteContext::default();
            context.set("x", stored(text));
            let mut missing = BTreeSet::new();
            assert_eq!(context.fill("[CONTEXT].x", &mut missing), shown, "{text}");
        }
    }

    #[test]
    fn places_are_filled_by_paths_and_those_without_a_value_are_named() {
        let mut context = SuiteContext::default();
        context.set("user.name", "ann".into());
        context.set("user.id", stored("12"));
        context.set("user.id.low", stored("2"));
        context.set("id-x_1", "y".into());
        let mut missing = BTreeSet::new();
        let filled = context.fill(
            "/[CONTEXT].user.name/[CONTEXT].user.id.low?[CONTEXT].id-x_1&[CONTEXT]&[context].a [CONTEXT].no.[CONTEXT].",
            &mut missing,
        );
        assert_eq!(
            filled,
            "/ann/2?y&[CONTEXT]&[context].a [CONTEXT].no.[CONTEXT]."
        );
        assert_eq!(Vec::from_iter(missing), ["no."]);
    }
}
