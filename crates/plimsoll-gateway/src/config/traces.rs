//! `[traces]`.

use std::any::Any;
use std::sync::Arc;

use plimsoll_client::Endpoint;
use plimsoll_server::config::{SectionContext, Value, as_text};

use crate::traces::TracesPlan;

/// The compiled section; nothing without one, or with errors in it.
#[derive(Debug, Default)]
pub(super) struct Traces(pub(super) Option<Arc<TracesPlan>>);

pub(super) fn compile(
    value: Option<Value<'_>>,
    _context: &SectionContext<'_>,
) -> Arc<dyn Any + Send + Sync> {
    Arc::new(Traces(value.and_then(plan).map(Arc::new)))
}

fn plan(value: Value<'_>) -> Option<TracesPlan> {
    let mut table = value.table()?;
    let service = table.text("service");
    let plan = match table.take_value("otlp") {
        None => {
            table.missing("otlp", "such as otlp = \"http://127.0.0.1:4318/v1/traces\"");
            None
        }
        Some(value) => {
            let endpoint = as_text(&value).and_then(|it| value.check(Endpoint::parse(it)));
            let service = service.unwrap_or_else(|| "plimsoll".to_owned());
            endpoint.and_then(|endpoint| value.check(TracesPlan::new(endpoint, service)))
        }
    };
    table.finish();
    plan
}
