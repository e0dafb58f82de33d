//! The summary of a run, from the counts of its exchanges and what was measured beside them.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{
    Cost, Generator, Latency, LoadModel, LoadShape, RequestFigures, RunSummary, Tick,
};
use plimsoll_observe::{NamedTarget, Target};

use crate::plan::{HttpPlan, RunPlan, WorkloadPlan};
use crate::run::costs::Observed;
use crate::run::observed::{fill_moments, observed_server};
use crate::run::{hazards, saturation};
use crate::worker::recorder::Interval;
use crate::worker::thread_share::ThreadShare;

/// Everything beside the counts of the exchanges.
pub(crate) struct Measured<'a> {
    pub(crate) ticks: Vec<Tick>,
    pub(crate) window: Duration,
    pub(crate) worst_worker: ThreadShare,
    pub(crate) observed: Observed,
    pub(crate) target: Option<&'a dyn Target>,
    pub(crate) named: &'a [NamedTarget],
    pub(crate) conditions: plimsoll_model::Conditions,
    pub(crate) interrupted: bool,
}

pub(crate) fn summarise(plan: &RunPlan, mut total: Interval, measured: Measured<'_>) -> RunSummary {
    let unmet = plan
        .expectations
        .conditions()
        .iter()
        .zip(&total.unmet)
        .filter(|(_, count)| **count > 0)
        .map(|(condition, count)| (condition.text().to_owned(), *count))
        .collect();
    let requests = requests(plan, total.requests.take());
    let (messages, decoded) = (total.messages, total.decoded);
    let events = total.events.take();
    RunSummary {
        unmet,
        requests,
        messages: matches!(plan.workload, WorkloadPlan::WebSocket(_)).then_some(messages),
        decoded: match &plan.workload {
            WorkloadPlan::Requests(_, responses) => responses.decode.map(|_| decoded),
            _ => None,
        },
        events: matches!(plan.workload, WorkloadPlan::Events(..)).then(|| {
            let mut events = events.map_or_else(Default::default, |events| *events);
            events
                .failures
                .sort_by_key(|failure| std::cmp::Reverse(failure.count));
            events
        }),
        ..summary_of(shape(plan), total, measured)
    }
}

/// The summary of what every kind of run has.
pub(crate) fn summary_of(
    load: LoadShape,
    mut total: Interval,
    measured: Measured<'_>,
) -> RunSummary {
    let Measured {
        ticks,
        window,
        worst_worker,
        observed,
        target,
        named,
        conditions,
        interrupted,
    } = measured;
    let aborted = total.counts.started - total.counts.ok - total.counts.failed;
    debug_assert!(total.counts.aborted <= aborted, "an exchange ends once");
    // An exchange that was never given up in an orderly way waited for a time that is not known.
    for _ in total.counts.aborted..aborted {
        total.record_lost();
    }
    total
        .failures
        .sort_by_key(|failure| std::cmp::Reverse(failure.count));
    let latency = Latency {
        from_started: total.from_started.clone(),
        from_intended: total.from_intended.clone(),
        of_errors: total.of_errors.as_deref().cloned(),
        of_timeouts: total.of_timeouts.as_deref().cloned(),
    };
    let no_cost = Cost {
        cpu: plimsoll_model::CpuTime::default(),
        window,
        exchanges: 0,
    };
    let is_open = total.from_intended.is_some();
    // Rates and costs are those of the same exchanges. Samples are taken a moment after the ends of
    // the window, so their own counts differ a little.
    let exchanges = total.counts.completed_in_window;
    let generator = Generator {
        cost: Cost {
            exchanges,
            ..observed
                .generator
                .map_or(no_cost, |(first, last)| Cost::between(&first, &last))
        },
        peak_memory_bytes: observed.samples.generator_peak_memory_bytes,
        busiest_worker_percent: worst_worker.cpu_percent,
        lag_p99: total.lag.quantile(0.99).unwrap_or_default(),
        lag_max: total.lag.max().unwrap_or_default(),
        stalls: worst_worker.stalls,
        run_delay: worst_worker.run_delay,
        throttled: observed.throttled,
        saturated: saturation::judge(
            worst_worker.cpu_percent,
            &total.lag,
            latency.honest().observed(),
            is_open,
        ),
    };
    let mut samples = observed.samples;
    let unseen_children = samples.unseen_children;
    let mut moments = std::mem::take(&mut samples.moments);
    let within = (load.warm_up, load.warm_up + window);
    let servers = named.iter().zip(observed.named);
    let servers: Vec<_> = servers
        .map(|(named, samples)| observed_server(named, samples, within, exchanges))
        .collect();
    let mut server = observed.target.zip(target).map(|((first, last), target)| {
        let mut server = samples.cost(target.name(), &first, &last);
        server.cost.exchanges = exchanges;
        server
    });
    // Without processes that are known by other means the first observed server is the target.
    if target.is_none()
        && let Some(first) = servers.first()
        && let Some(cost) = &first.cost
    {
        fill_moments(&mut moments, &cost.samples);
        server = first.is_whole.then(|| cost.clone());
    }
    let mut conditions = conditions;
    conditions
        .warnings
        .extend(hazards::unseen_children(unseen_children, exchanges));
    conditions.warnings.extend(hazards::observed(&servers));
    RunSummary {
        load,
        window,
        counts: total.counts,
        statuses: total.statuses().collect(),
        grpc: total.grpc(),
        failures: std::mem::take(&mut total.failures),
        unmet: BTreeMap::new(),
        requests: Vec::new(),
        thresholds: Vec::new(),
        bytes_sent: total.bytes_sent,
        bytes_received: total.bytes_received,
        bytes_in_window: total.bytes_in_window,
        connections_opened: total.connections_opened,
        messages: None,
        decoded: None,
        events: None,
        latency,
        phases: total.into_phases(),
        ticks,
        moments,
        target: server,
        observed: servers,
        agents: Vec::new(),
        generator,
        conditions,
        interrupted,
    }
}

/// Names the figures per request and puts the worst first.
fn requests(plan: &RunPlan, figures: Option<Box<[RequestFigures]>>) -> Vec<RequestFigures> {
    let figures = figures.unwrap_or_default().into_vec();
    let named = figures.into_iter().zip(plan.names.names());
    let mut requests: Vec<RequestFigures> = named
        .map(|(figures, name)| RequestFigures {
            name: name.clone(),
            ..figures
        })
        .collect();
    requests.sort_by(RequestFigures::worst_first);
    requests
}

/// The configuration of a run, as its summary has it.
pub fn shape(plan: &RunPlan) -> LoadShape {
    let first = &plan.requests[0];
    LoadShape {
        url: plan.url(),
        urls: plan.requests.len(),
        method: first.request.method().to_owned(),
        expectations: plan
            .expectations
            .conditions()
            .iter()
            .map(|condition| condition.text().to_owned())
            .collect(),
        fail_status: plan.fail_statuses.given().map(str::to_owned),
        model: match plan.average_rate() {
            None => LoadModel::Closed,
            Some(rate) => LoadModel::Open { rate },
        },
        protocol: plan.protocol(),
        connections: plan.connections,
        exchanges: plan.exchanges(),
        streams: plan.streams(),
        udp_payload: match plan.workload.http() {
            HttpPlan::Http3(http3) => http3.udp_payload,
            HttpPlan::Http1 | HttpPlan::Http2(_) => None,
        },
        workers: plan.workers,
        duration: plan.stop.duration,
        requests: plan.stop.requests,
        warm_up: plan.warm_up,
    }
}
