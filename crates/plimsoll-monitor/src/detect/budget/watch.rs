//! Watches the budgets of all monitors, and writes notices when one burns and when it no longer does.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

use crate::detect::budget::{Rule, Slo};
use crate::detect::excluded::{declared_downtime, excluded};
use crate::detect::status::Health;
use crate::detect::uptime::{HealthAt, Span};
use crate::engine::{Board, View};
use crate::notify::{Message, NoticeKind};
use crate::store::timestamp::Timestamp;
use crate::store::{About, Change, MonitorId, NewNotice, OrgId, Store, StoreError};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(20);

/// Changes wait so long for others, such as for the change that is still being recorded.
const GATHER: Duration = Duration::from_secs(1);

/// Incidents that are looked at.
const MOST_DECLARED: usize = 5_000;

/// The history that a budget is measured from.
pub(crate) struct History {
    pub(crate) changes: Vec<HealthAt>,
    pub(crate) declared: Vec<Span>,
    pub(crate) excluded: Vec<Span>,
}

impl History {
    /// Of a monitor from `back` ago until now.
    pub(crate) async fn read(
        org: OrgId,
        store: &dyn Store,
        view: &View,
        back: Duration,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let from = now.minus(back);
        let changes = store.health(org, view.id, from, now).await?;
        let declared = store.declared(org, from, None, MOST_DECLARED).await?;
        Ok(Self {
            changes: changes.into_iter().map(|(change, _)| change).collect(),
            declared: declared_downtime(&declared, view.id, now),
            excluded: excluded(&view.plan.windows, (from, now)),
        })
    }

    /// The rule that fires now.
    pub(crate) fn burning(&self, slo: &Slo, now: Timestamp) -> Option<Rule> {
        slo.burning(&self.changes, &self.declared, &self.excluded, now)
    }

    /// When the last outage began.
    fn last_outage(&self) -> Option<Timestamp> {
        let outages = self.changes.iter().filter(|it| it.health == Health::Down);
        let declared = self.declared.iter().map(|span| span.0);
        outages.map(|it| it.at).chain(declared).max()
    }
}

/// Watches for ever.
pub(crate) async fn run(
    org: OrgId,
    store: Arc<dyn Store>,
    board: Arc<Board>,
    report: Arc<dyn Fn(&str) + Send + Sync>,
) {
    let mut burning = None;
    let mut changes = board.subscribe();
    loop {
        if let Err(error) = look(org, &*store, &board, &mut burning).await {
            report(&format!("cannot measure error budgets: {error}"));
        }
        let waited = tokio::time::timeout(LOOK, changes.changed()).await;
        if matches!(waited, Ok(Err(_))) {
            return;
        }
        tokio::time::sleep(GATHER).await;
    }
}

/// The outage during which a monitor began to burn its budget: the name by which receivers know it, and when it was.
type Burning = (String, Timestamp);

/// The name under which the store keeps it.
const MEMORY: &str = "budget";

/// What was announced is read from the store, which the next process does too.
async fn known(org: OrgId, store: &dyn Store) -> Result<HashMap<MonitorId, Burning>, StoreError> {
    let memories = store.memories(org, MEMORY).await?.into_iter();
    let known = memories.filter_map(|(monitor, text)| {
        let (since, name) = text.split_once(' ')?;
        Some((monitor, (name.to_owned(), Timestamp(since.parse().ok()?))))
    });
    Ok(known.collect())
}

/// - `burning`: what was announced; read from the store the first time.
async fn look(
    org: OrgId,
    store: &dyn Store,
    board: &Board,
    burning: &mut Option<HashMap<MonitorId, Burning>>,
) -> Result<(), StoreError> {
    let now = Timestamp::of(SystemClock.wall());
    let burning = match burning {
        Some(burning) => burning,
        None => burning.insert(known(org, store).await?),
    };
    let mut changes = Vec::new();
    let mut change = |monitor, notices, text| {
        let notices = Change::Notices {
            monitor,
            at: now,
            notices,
        };
        let name = MEMORY;
        let memory = Change::Memory {
            monitor,
            name,
            text,
        };
        changes.extend([notices, memory]);
    };
    for view in board.views() {
        let Some(slo) = view.plan.slo else {
            continue;
        };
        let history = History::read(org, store, &view, Slo::looks_back(), now).await?;
        let rule = history.burning(&slo, now);
        let known = burning.get(&view.id).cloned();
        match (rule, known) {
            (Some(rule), None) => {
                let since = history.last_outage().unwrap_or(now);
                let name = format!("{}/budget/{}", view.plan.key, since.0);
                let kind = NoticeKind::BudgetBurning;
                let text = Some(format!("{} {name}", since.0));
                let since = (name, since);
                let notices = written(board, &view, kind, &since, now, &reason(&slo, rule));
                change(view.id, notices, text);
                burning.insert(view.id, since);
            }
            (None, Some(since)) => {
                let kind = NoticeKind::BudgetSteady;
                let notices = written(board, &view, kind, &since, now, "");
                change(view.id, notices, None);
                burning.remove(&view.id);
            }
            _ => {}
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    store.record(org, changes).await?;
    board.touch();
    Ok(())
}

fn reason(slo: &Slo, rule: Rule) -> String {
    let hours = rule.long.as_secs() / 3_600;
    let window = slo.window.as_secs() / 86_400;
    format!(
        "over the last {hours} h it was down {} times as long as {}% in {window} days allow",
        rule.rate,
        slo.target * 100.0,
    )
}

/// A notice for each channel that wants it. The same outage gives the same notices, also after a restart.
fn written(
    board: &Board,
    view: &View,
    kind: NoticeKind,
    (incident, since): &Burning,
    now: Timestamp,
    text: &str,
) -> Vec<NewNotice> {
    let plan = &view.plan;
    let pages = board.pages();
    let name = if plan.group.is_empty() {
        plan.name.clone()
    } else {
        format!("{}/{}", plan.group, plan.name)
    };
    let title = match kind {
        NoticeKind::BudgetBurning => format!("{name} uses its error budget up too fast"),
        _ => format!("{name} no longer uses its error budget up too fast"),
    };
    let message = Message {
        kind,
        title,
        text: text.to_owned(),
        monitor: plan.key.clone(),
        incident: incident.clone(),
        at: now,
        since: *since,
        link: pages.iter().find_map(|page| page.url.clone()),
    };
    let content = message.to_json().to_string();
    let channels = board.channels();
    let wanted = channels
        .iter()
        .filter(|channel| channel.wants(kind, &plan.key) && channel.is_on_call(now));
    wanted
        .map(|channel| NewNotice {
            channel: channel.name.clone(),
            about: About::Other,
            dedup: format!("{incident}/{}", kind.name()),
            message: content.clone(),
            due: now,
        })
        .collect()
}
