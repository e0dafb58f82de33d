//! The merge of checks that agents make of built-in servers, second by second.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use plimsoll_load::harness::found_in;
use plimsoll_load::{Interval, PartReport, UnionSecond};
use plimsoll_model::{AgentFigures, AgentStanding, LoadtestFound, LoadtestTick};

use super::{Merger, PartSums, UnionError, together};
use crate::coordinator::{MemberEnd, MemberSecond};
use crate::message::{Checksum, Counted, ReportedProcesses, Shares};

/// Called with the state of all agents together, and with the agents side by side.
type OnTick<'a> = &'a mut dyn FnMut(LoadtestTick, &[AgentStanding]);

/// What all agents have found.
#[derive(Debug, Default)]
pub struct LoadtestEnd {
    /// Outcomes of their checks.
    pub found: LoadtestFound,
    /// From the start to the end of the last check.
    pub elapsed: Duration,
    /// Processes of all agents that finished.
    pub processes: ReportedProcesses,
    /// The sum of what the processes of all agents held at most.
    pub peak_memory_bytes: Option<u64>,
    /// The agents, by their names.
    pub agents: Vec<AgentFigures>,
    /// Doubts about the figures; those about figures that are missing come first.
    pub cautions: Vec<String>,
}

/// Merges parts of `loadtest`.
pub struct LoadtestMerger<'a> {
    workers: usize,
    on_tick: OnTick<'a>,
    found: LoadtestFound,
    sums: Option<PartSums>,
    /// Until which second each agent has counted; `None` if no more comes of it.
    counted: Vec<Option<u64>>,
    /// Counts of seconds that some agents have not reported yet.
    ahead: BTreeMap<u64, Second>,
    shown: LoadtestTick,
    /// The end of the last second of any agent.
    last: Duration,
}

/// What agents counted in one second.
#[derive(Debug, Default)]
struct Second {
    ok: u64,
    errors: u64,
    in_flight: u64,
    /// Whether it has more than what agents counted after their last whole second.
    is_whole: bool,
}

impl std::fmt::Debug for LoadtestMerger<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadtestMerger")
            .field("workers", &self.workers)
            .field("counted", &self.counted)
            .finish_non_exhaustive()
    }
}

impl<'a> LoadtestMerger<'a> {
    /// - `workers`: of all agents.
    /// - `on_tick`: called for each second that all agents have counted.
    pub fn new(workers: usize, on_tick: OnTick<'a>) -> Self {
        Self {
            workers,
            on_tick,
            found: LoadtestFound::default(),
            sums: None,
            counted: Vec::new(),
            ahead: BTreeMap::new(),
            shown: LoadtestTick::default(),
            last: Duration::ZERO,
        }
    }

    /// What all agents have found; `None` if the run has not started.
    pub fn finish(mut self, members: &[MemberEnd]) -> Option<LoadtestEnd> {
        self.show(u64::MAX);
        let reports: Vec<Option<PartReport>> = members
            .iter()
            .map(|member| Some(member.report.as_ref()?.read(Interval::new(0, false))))
            .collect();
        let mut agents = self.sums?.figures(members, &reports);
        for (agent, member) in agents.iter_mut().zip(members) {
            agent.workers = member.share.part_of(self.workers);
            // The processes of a part are not measured one by one.
            agent.busiest_worker_percent = None;
        }
        let lacks = members.iter().filter_map(MemberEnd::lack);
        let mut cautions: Vec<_> = lacks.map(|lack| format!("incomplete: {lack}")).collect();
        cautions.extend(together(&agents));
        let mut end = LoadtestEnd {
            found: self.found,
            cautions,
            agents,
            ..LoadtestEnd::default()
        };
        end.found.counts.abort_rest();
        for agent in &mut end.agents {
            agent.counts.abort_rest();
        }
        end.found
            .failures
            .sort_by_key(|failure| std::cmp::Reverse(failure.count));
        let reported = members.iter().zip(&reports);
        for (member, report) in reported {
            let Some(report) = report else {
                // Nothing but its seconds says how long it has worked.
                end.elapsed = end.elapsed.max(self.last);
                continue;
            };
            end.elapsed = end.elapsed.max(report.stopped);
            if let Some(bytes) = report.peak_memory_bytes {
                *end.peak_memory_bytes.get_or_insert(0) += bytes;
            }
            let processes = member.report.as_ref().and_then(|it| it.processes());
            let processes = processes.unwrap_or_default();
            end.processes.clients += processes.clients;
            end.processes.origins += processes.origins;
            end.processes.listeners += processes.listeners;
        }
        Some(end)
    }

    /// Shows the seconds that every agent has counted.
    fn show_whole(&mut self) {
        let whole = self.counted.iter().flatten().min().copied();
        self.show(whole.unwrap_or(u64::MAX));
    }

    /// - `until`: the last second to show.
    fn show(&mut self, until: u64) {
        while let Some(entry) = self.ahead.first_entry().filter(|it| *it.key() <= until) {
            let (number, second) = entry.remove_entry();
            self.shown = LoadtestTick {
                at: Duration::from_secs(number),
                ok: self.shown.ok + second.ok,
                errors: self.shown.errors + second.errors,
                in_flight: second.in_flight,
                memory_bytes: None,
            };
            let standings = self.sums.as_ref().map(PartSums::standings);
            if second.is_whole {
                (self.on_tick)(self.shown, standings.unwrap_or_default());
            }
        }
    }
}

impl Merger for LoadtestMerger<'_> {
    fn begin(&mut self, shares: &Shares, _: SystemTime) {
        self.sums = Some(PartSums::new(shares));
        self.counted = vec![Some(0); shares.len()];
    }

    fn merge_second(&mut self, second: &MemberSecond) -> Result<Checksum, UnionError> {
        let (Some(sums), Counted::Load(figures)) = (&mut self.sums, &second.figures) else {
            return Err(UnionError::Kind);
        };
        let mut interval = Interval::new(0, false);
        figures.add_to(&mut interval)?;
        let checksum = figures.checksum()?;
        self.found.merge(&found_in(&interval));
        let at = Duration::from_micros(second.at_us);
        self.last = self.last.max(at);
        // Seconds end a moment late; the last one is not whole.
        let rounding = if second.is_last {
            Duration::from_nanos(999_999_999)
        } else {
            Duration::from_millis(500)
        };
        let number = (at + rounding).as_secs();
        let shared = self.ahead.entry(number).or_default();
        shared.ok += interval.counts.ok;
        shared.errors += interval.counts.errors();
        shared.in_flight += interval.in_flight;
        shared.is_whole |= !second.is_last;
        self.counted[second.member] = (!second.is_last).then_some(number);
        sums.add(&UnionSecond {
            part: second.member,
            at,
            grace: second.grace,
            is_last: second.is_last,
            interval,
        });
        self.show_whole();
        Ok(checksum)
    }

    fn give_up(&mut self, member: usize) {
        if let Some(sums) = &mut self.sums {
            sums.give_up(member);
            self.counted[member] = None;
            self.show_whole();
        }
    }

    fn look(&mut self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_load::harness::interval_of;

    use super::*;
    use crate::message::AgentReport;
    use crate::part::PartTick;
    use crate::share::Share;

    fn shares() -> Shares {
        let share = |first| Share {
            first,
            workers: 2,
            of: 4,
        };
        [("one".to_owned(), share(0)), ("two".to_owned(), share(2))].into()
    }

    /// A second of checks that took so many milliseconds each.
    fn second(member: usize, number: u64, millis: &[u64], is_last: bool) -> MemberSecond {
        let mut found = LoadtestFound::default();
        found.counts.started = millis.len() as u64;
        found.counts.ok = millis.len() as u64;
        for millis in millis {
            found.latency.record(Duration::from_millis(*millis));
        }
        let at = Duration::from_millis(number * 1000 + 3);
        let tick = PartTick::from_interval(&interval_of(&found, number), at, false, is_last);
        MemberSecond {
            member,
            at_us: tick.at_us,
            grace: tick.grace,
            is_last: tick.is_last,
            figures: tick.figures,
        }
    }

    fn member(name: &str, report: Option<Box<AgentReport>>) -> MemberEnd {
        let problem = report.is_none().then(|| "it is gone".to_owned());
        MemberEnd {
            agent: name.to_owned(),
            cores: 2,
            share: shares()[name],
            report,
            problem,
            merged: Checksum::default(),
        }
    }

    fn report(seconds: u64) -> Box<AgentReport> {
        let processes = ReportedProcesses {
            clients: 1,
            origins: 2,
            listeners: 16,
        };
        let times = (Duration::from_secs(seconds), Duration::from_micros(50));
        Box::new(AgentReport::of_loadtest(times, Some(1000), processes))
    }

    #[test]
    fn seconds_are_shown_once_all_have_counted_them() {
        let mut shown = Vec::new();
        let mut on_tick = |tick: LoadtestTick, agents: &[AgentStanding]| {
            assert_eq!(agents.len(), 2);
            shown.push((tick.at.as_secs(), tick.ok, tick.in_flight));
        };
        let mut merger = LoadtestMerger::new(10, &mut on_tick);
        merger.begin(&shares(), SystemTime::UNIX_EPOCH);
        for second in [
            second(0, 1, &[10, 10], false),
            second(0, 2, &[10], false),
            second(1, 1, &[30], false),
            second(0, 2, &[], true),
            second(1, 2, &[30, 40, 50], false),
            second(1, 2, &[], true),
        ] {
            merger.merge_second(&second).unwrap();
        }
        let end = merger.finish(&[
            member("one", Some(report(2))),
            member("two", Some(report(3))),
        ]);
        let end = end.unwrap();
        assert_eq!(shown, [(1, 3, 2), (2, 7, 4)]);
        assert_eq!(end.found.counts.ok, 7);
        assert_eq!(end.found.latency.len(), 7);
        assert_eq!(end.elapsed, Duration::from_secs(3));
        assert_eq!(end.peak_memory_bytes, Some(2000));
        assert_eq!(end.processes.origins, 4);
        let agents: Vec<_> = end
            .agents
            .iter()
            .map(|it| (it.workers, it.counts.ok))
            .collect();
        assert_eq!(agents, [(5, 3), (5, 4)]);
        assert!(end.cautions.is_empty());
    }

    #[test]
    fn what_a_lost_agent_had_counted_is_kept_and_named_incomplete() {
        let mut shown = Vec::new();
        let mut on_tick = |tick: LoadtestTick, agents: &[AgentStanding]| {
            shown.push((tick.at.as_secs(), tick.ok, agents[1].is_lost));
        };
        let mut merger = LoadtestMerger::new(10, &mut on_tick);
        merger.begin(&shares(), SystemTime::UNIX_EPOCH);
        merger.merge_second(&second(0, 1, &[10], false)).unwrap();
        merger
            .merge_second(&second(1, 1, &[20, 20], false))
            .unwrap();
        merger.merge_second(&second(0, 2, &[10], false)).unwrap();
        merger.give_up(1);
        merger.merge_second(&second(0, 3, &[10], true)).unwrap();
        let end = merger.finish(&[member("one", Some(report(3))), member("two", None)]);
        let end = end.unwrap();
        assert_eq!(shown[..2], [(1, 3, false), (2, 4, true)]);
        assert_eq!(end.found.counts.ok, 5);
        assert_eq!(end.cautions, ["incomplete: agent two: it is gone"]);
        assert_eq!(end.agents[1].counts.ok, 2);
        assert_eq!(end.elapsed, Duration::from_millis(3003));
    }

    #[test]
    fn figures_of_a_script_are_of_another_kind() {
        let mut on_tick = |_: LoadtestTick, _: &[AgentStanding]| {};
        let mut merger = LoadtestMerger::new(10, &mut on_tick);
        merger.begin(&shares(), SystemTime::UNIX_EPOCH);
        let script = MemberSecond {
            figures: Counted::Script(Box::default()),
            ..second(0, 1, &[], false)
        };
        let refused = merger.merge_second(&script);
        assert!(matches!(refused, Err(UnionError::Kind)), "{refused:?}");
    }
}
