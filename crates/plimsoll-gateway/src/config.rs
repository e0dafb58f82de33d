//! `[upstream.NAME]` and `proxy` in a `[[route]]`, compiled.

mod auth;

mod cache;

mod connect;

mod fastcgi;

mod health;

mod jwt;

mod layer4;

mod oidc;

mod proxy;

mod rules;

mod servers;

mod sources;

mod traces;

mod upstream;

mod uwsgi;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_server::config::{ActionKind, GuardKind, SectionContext, SectionKind, Value};

pub use self::layer4::LISTENS;

use crate::admin;
use crate::forward::RouteFigures;
use crate::sampler::{Sampled, SampledFigures};
use crate::upstream::{UpstreamFigures, UpstreamPlan};

/// The action `proxy`, for routes of a server's configuration.
pub const PROXY: ActionKind = ActionKind {
    key: "proxy",
    compile: proxy::compile,
};

/// The action `connect`, for routes of the method CONNECT.
pub const CONNECT: ActionKind = ActionKind {
    key: "connect",
    compile: connect::compile,
};

/// The guards of requests, the outermost first: `jwt`, `oidc` and `auth`.
pub const GUARDS: [GuardKind; 3] = [jwt::KIND, oidc::KIND, auth::KIND];

/// The tables `[upstream.NAME]`, which routes name.
pub const UPSTREAMS: SectionKind = SectionKind {
    key: "upstream",
    compile: compile_upstreams,
};

/// The table `[traces]`: where spans of forwarded requests are sent.
pub const TRACES: SectionKind = SectionKind {
    key: "traces",
    compile: traces::compile,
};

/// The upstreams of a file by name; one with errors is there without a plan, so that routes do not report it again.
#[derive(Debug, Default)]
struct Upstreams(BTreeMap<String, Option<Arc<UpstreamPlan>>>);

fn compile_upstreams(
    value: Option<Value<'_>>,
    context: &SectionContext<'_>,
) -> Arc<dyn Any + Send + Sync> {
    if let Some(apis) = context.apis {
        let counters = context.counters;
        counters.figures::<SampledFigures>().watch(|| {
            let upstreams: Arc<dyn Sampled> = counters.figures::<UpstreamFigures>();
            let routes: Arc<dyn Sampled> = counters.figures::<RouteFigures>();
            vec![upstreams, routes]
        });
        apis.add(
            "/upstreams",
            &[],
            admin::answer(counters.figures(), apis.audit()),
        );
        apis.add(
            "/caches",
            &[],
            admin::caches(counters.figures(), apis.audit()),
        );
        apis.add("/gateway", &[], admin::page(Arc::clone(counters)));
    }
    let Some(mut table) = value.and_then(Value::table) else {
        return Arc::new(Upstreams::default());
    };
    let upstreams = table.rest().into_iter().map(|(name, value)| {
        let plan = value
            .table()
            .and_then(|table| upstream::compile(&name, table, context));
        (name, plan.map(Arc::new))
    });
    Arc::new(Upstreams(upstreams.collect()))
}
