//! Watches the budgets of all monitors, and writes notices when one burns and when it no longer does.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

use crate::detect::budget::{Rule, Slo};
use crate::detect::excluded::excluded;
use crate::detect::uptime::{HealthAt, OutageCounter, Span};
use crate::engine::{Board, Parts, View};
use crate::notify::{Message, NoticeKind, full_name};
use crate::store::{
    About, Change, MonitorId, NewNotice, OrgId, Store, StoreError, declared_downtime,
};
use crate::time::Timestamp;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(20);

/// Changes wait so long for others, such as for the change that is still being recorded.
const GATHER: Duration = Duration::from_secs(1);

/// Incidents that are looked at.
const MOST_DECLARED: usize = 5_000;

/// The history that a budget is measured from.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    pub(crate) changes: Vec<HealthAt>,
    pub(crate) declared: Vec<Span>,
    pub(crate) excluded: Vec<Span>,
}

impl History {
    /// Of a monitor from `back` ago until now.
    pub async fn read(
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
    pub fn burning(&self, slo: &Slo, now: Timestamp) -> Option<Rule> {
        slo.burning(&self.changes, &self.declared, &self.excluded, now)
    }

    /// When the last outage began.
    fn last_outage(&self) -> Option<Timestamp> {
        let (mut counter, mut last) = (OutageCounter::default(), None);
        for change in &self.changes {
            let outage = counter.outage_of(change);
            if let Some(outage) = outage
                && last.is_none_or(|(known, _)| known != outage)
            {
                last = Some((outage, change.at));
            }
        }
        let declared = self.declared.iter().map(|span| span.0);
        declared.chain(last.map(|(_, at)| at)).max()
    }
}

/// Watches until it should end.
pub(crate) async fn run(parts: Parts) {
    let Parts {
        mut stop,
        org,
        store,
        board,
        report,
    } = parts;
    let mut burning = None;
    let mut changes = board.subscribe();
    loop {
        if let Err(error) = look(org, &*store, &board, &mut burning).await {
            report(&format!("cannot measure error budgets: {error}"));
        }
        if stop.comes_before_a_change(&mut changes, LOOK).await || stop.comes_within(GATHER).await {
            return;
        }
    }
}

/// A budget that burns, as it was announced.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Burning {
    /// The name by which receivers know it.
    key: String,
    /// When the outage was during which it began.
    since: Timestamp,
    /// What its monitor was called for people: after a removal nothing else knows.
    name: String,
}

impl Burning {
    /// As the store keeps it.
    fn to_text(&self) -> String {
        format!("{} {} {}", self.since.0, self.key, self.name)
    }

    /// Reads what the store kept.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let since = Timestamp(parts.next()?.parse().ok()?);
        let key = parts.next()?.to_owned();
        // An older version wrote no name.
        let name = parts.next().unwrap_or(&key).to_owned();
        Some(Self { key, since, name })
    }

    /// The key of its monitor.
    fn monitor(&self) -> &str {
        self.key.split("/budget/").next().unwrap_or_default()
    }
}

/// The name under which the store keeps it.
const MEMORY: &str = "budget";

/// What was announced is read from the store, which the next process does too.
async fn known(org: OrgId, store: &dyn Store) -> Result<HashMap<MonitorId, Burning>, StoreError> {
    let memories = store.memories(org, MEMORY).await?.into_iter();
    let known = memories.filter_map(|(monitor, text)| Some((monitor, Burning::parse(&text)?)));
    Ok(known.collect())
}

/// - `burning`: what was announced; read from the store the first time.
async fn look(
    org: OrgId,
    store: &dyn Store,
    board: &Board,
    burning: &mut Option<HashMap<MonitorId, Burning>>,
) -> Result<(), StoreError> {
    let now = Timestamp::from_system(SystemClock.wall());
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
    let mut watched = HashSet::new();
    for view in board.views() {
        let Some(slo) = view.plan.slo else {
            continue;
        };
        watched.insert(view.id);
        let history = History::read(org, store, &view, Slo::looks_back(), now).await?;
        let rule = history.burning(&slo, now);
        let known = burning.get(&view.id).cloned();
        match (rule, known) {
            (Some(rule), None) => {
                let since = history.last_outage().unwrap_or(now);
                let begun = Burning {
                    key: format!("{}/budget/{}", view.plan.key, since.0),
                    since,
                    name: full_name(&view.plan.group, &view.plan.name),
                };
                let kind = NoticeKind::BudgetBurning;
                let text = reason(&slo, rule);
                let key = &view.plan.key;
                let channels = wanted(board, key, kind, now);
                let notices = written(board, channels, key, kind, &begun, now, &text);
                change(view.id, notices, Some(begun.to_text()));
                burning.insert(view.id, begun);
            }
            (None, Some(begun)) => {
                let kind = NoticeKind::BudgetSteady;
                let key = &view.plan.key;
                let channels = wanted(board, key, kind, now);
                let notices = written(board, channels, key, kind, &begun, now, "");
                change(view.id, notices, None);
                burning.remove(&view.id);
            }
            _ => {}
        }
    }
    // Those of monitors that were removed, by whichever process, or have no objective any more.
    let gone: Vec<_> = burning
        .keys()
        .filter(|id| !watched.contains(id))
        .copied()
        .collect();
    for id in gone {
        let Some(begun) = burning.remove(&id) else {
            continue;
        };
        let kind = NoticeKind::BudgetSteady;
        let text = "the monitor was removed, or has no objective any more";
        let channels = informed_channels(org, store, board, &begun).await?;
        let notices = written(board, channels, begun.monitor(), kind, &begun, now, text);
        change(id, notices, None);
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

/// The channels that want a notice about a monitor.
fn wanted(board: &Board, monitor: &str, kind: NoticeKind, now: Timestamp) -> Vec<String> {
    let channels = board.channels();
    let wanted = channels
        .iter()
        .filter(|channel| channel.wants(kind, monitor) && channel.is_on_call(now));
    wanted.map(|channel| channel.name.clone()).collect()
}

/// The channels that announced that a budget burns, and want its end. None may name its monitor any more.
async fn informed_channels(
    org: OrgId,
    store: &dyn Store,
    board: &Board,
    begun: &Burning,
) -> Result<Vec<String>, StoreError> {
    let dedup = dedup_of(begun, NoticeKind::BudgetBurning);
    let mut informed = Vec::new();
    for channel in board.channels().iter() {
        if channel.kinds.contains(&NoticeKind::BudgetSteady)
            && store.notice(org, &channel.name, &dedup).await?.is_some()
        {
            informed.push(channel.name.clone());
        }
    }
    Ok(informed)
}

/// What makes a notice about a burning budget the same as another one.
fn dedup_of(begun: &Burning, kind: NoticeKind) -> String {
    format!("{}/{}", begun.key, kind.name())
}

/// A notice for each of the channels. The same outage gives the same notices, also after a restart.
///
/// - `monitor`: its key.
fn written(
    board: &Board,
    channels: Vec<String>,
    monitor: &str,
    kind: NoticeKind,
    begun: &Burning,
    now: Timestamp,
    text: &str,
) -> Vec<NewNotice> {
    let pages = board.pages();
    let name = &begun.name;
    let title = match kind {
        NoticeKind::BudgetBurning => format!("{name} uses its error budget up too fast"),
        _ => format!("{name} no longer uses its error budget up too fast"),
    };
    let message = Message {
        kind,
        title,
        text: text.to_owned(),
        monitor: monitor.to_owned(),
        name: name.clone(),
        group: String::new(),
        incident: begun.key.clone(),
        at: now,
        since: begun.since,
        link: pages.iter().find_map(|page| page.url.clone()),
        acknowledge: None,
        is_escalated: false,
    };
    let content = message.to_json().to_string();
    let notice = |channel| NewNotice {
        channel,
        about: About::Other,
        dedup: dedup_of(begun, kind),
        message: content.clone(),
        due: now,
    };
    channels.into_iter().map(notice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::status::Health;

    #[test]
    fn an_outage_began_before_the_gap_in_it() {
        use Health::{Down, NoData, Up};

        let last = |list: &[(i64, Health)]| {
            let changes = list
                .iter()
                .map(|(at, health)| HealthAt::new(Timestamp(*at), *health));
            let history = History {
                changes: changes.collect(),
                declared: Vec::new(),
                excluded: Vec::new(),
            };
            history.last_outage().map(|at| at.0)
        };
        let first = [(0, Up), (10, Down), (20, Up)];
        assert_eq!(last(&first), Some(10));
        let over_a_gap = [(0, Up), (10, Down), (20, NoData), (30, Down)];
        assert_eq!(last(&over_a_gap), Some(10));
        let behind_a_gap = [(0, Up), (10, Down), (20, Up), (30, NoData), (40, Down)];
        assert_eq!(last(&behind_a_gap), Some(40));
        assert_eq!(last(&[(0, Up)]), None);
    }
}
