//! Each agent's part while figures are merged: the agents side by side.

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_load::{PartReport, UnionSecond};
use plimsoll_model::{AgentFigures, AgentStanding, Counts, Saturation, Times};

use crate::coordinator::MemberEnd;
use crate::message::Shares;

/// A start that is later than this on an agent is reported.
const LATE: Duration = Duration::from_millis(20);

/// Ticks that are shorter have no rate worth showing.
const SHORTEST: Duration = Duration::from_millis(200);

/// One part: its sum, and how it stands.
#[derive(Debug)]
struct PartSum {
    counts: Counts,
    /// From the intended start, where there is one.
    latency: Times,
    /// Until when it is counted, since the start of the run.
    at: Duration,
}

/// What each agent has counted so far, by their positions.
#[derive(Debug)]
pub struct PartSums {
    sums: Vec<PartSum>,
    standings: Vec<AgentStanding>,
}

impl PartSums {
    /// - `shares`: the parts of the agents; their order is that of the positions.
    pub fn new(shares: &Shares) -> Self {
        let standings = shares.iter().map(|(name, share)| AgentStanding {
            name: name.clone(),
            workers: share.workers,
            ..AgentStanding::default()
        });
        let sum = || PartSum {
            counts: Counts::default(),
            latency: Times::new(),
            at: Duration::ZERO,
        };
        Self {
            sums: shares.iter().map(|_| sum()).collect(),
            standings: standings.collect(),
        }
    }

    /// How the agents stand, by their names.
    pub fn standings(&self) -> &[AgentStanding] {
        &self.standings
    }

    /// Adds a second of an agent.
    pub fn add(&mut self, second: &UnionSecond) {
        let (sum, standing) = (
            &mut self.sums[second.part],
            &mut self.standings[second.part],
        );
        let interval = &second.interval;
        sum.counts.merge(&interval.counts);
        sum.latency.merge(interval.honest_latency());
        let length = second.at.saturating_sub(sum.at);
        sum.at = sum.at.max(second.at);
        if second.grace {
            standing.per_second = None;
        } else if length >= SHORTEST {
            standing.per_second = Some(interval.counts.ok as f64 / length.as_secs_f64());
            standing.p99 = interval.honest_latency().quantile(0.99);
            standing.lag_p99 = interval.lag.quantile(0.99);
            // Processes of `loadtest` are not measured one by one.
            let busiest = interval.busiest_worker_percent;
            standing.busiest_worker_percent = (busiest > 0.0).then_some(busiest);
        }
        standing.errors = sum.counts.errors();
        standing.is_over |= second.is_last;
    }

    /// No more comes of an agent.
    pub fn give_up(&mut self, part: usize) {
        let standing = &mut self.standings[part];
        standing.is_lost |= !standing.is_over;
        standing.is_over = true;
        standing.per_second = None;
    }

    /// The agents of the summary, in the order of `members`.
    ///
    /// - `reports`: of the same agents.
    pub fn figures(
        self,
        members: &[MemberEnd],
        reports: &[Option<PartReport>],
    ) -> Vec<AgentFigures> {
        let ends = members.iter().zip(reports);
        let agents = self.sums.into_iter().zip(ends);
        let figures = agents.map(|(sum, (member, report))| {
            let report = report.as_ref();
            AgentFigures {
                name: member.agent.clone(),
                workers: member.share.workers,
                counts: sum.counts,
                latency: sum.latency,
                late: report.map(|report| report.late),
                busiest_worker_percent: report.map(|report| report.busiest_worker_percent),
                was_limit: report.is_some_and(|report| report.saturated.is_some()),
                cautions: report.map(cautions).unwrap_or_default(),
                problem: member.problem.clone(),
            }
        });
        figures.collect()
    }
}

/// Names of agents that a caution has at most.
const MOST_NAMES: usize = 5;

/// The cautions of all agents: one that several have is written once, with their names.
pub fn together(agents: &[AgentFigures]) -> Vec<String> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for agent in agents {
        for caution in &agent.cautions {
            match all.iter_mut().find(|(text, _)| text == caution) {
                Some((_, names)) => names.push(&agent.name),
                None => all.push((caution, vec![&agent.name])),
            }
        }
    }
    let cautions = all.into_iter().map(|(text, names)| match names.as_slice() {
        [name] => format!("agent {name}: {text}"),
        names => {
            let shown = names.len().min(MOST_NAMES);
            let mut list = names[..shown].join(", ");
            if names.len() > shown {
                write!(list, " and {} more", names.len() - shown).expect("a text takes more");
            }
            format!("agents {list}: {text}")
        }
    });
    cautions.collect()
}

/// Doubts about an agent, to be read behind its name and a colon.
fn cautions(report: &PartReport) -> Vec<String> {
    let mut cautions = Vec::new();
    match report.saturated {
        Some(Saturation::Cpu { percent }) => cautions.push(format!(
            "it was the limit: a worker used {percent:.0} % of its core"
        )),
        Some(Saturation::Lag { p99 }) => cautions.push(format!(
            "it was the limit: it started requests up to {:.1} ms late (p99) although connections were free",
            p99.as_secs_f64() * 1e3
        )),
        None => {}
    }
    if report.late >= LATE {
        let millis = report.late.as_secs_f64() * 1e3;
        cautions.push(format!("it started {millis:.0} ms after the others"));
    }
    cautions.extend(report.warnings.iter().cloned());
    cautions
}

#[cfg(test)]
mod tests {
    use plimsoll_load::Interval;

    use super::*;
    use crate::share::Share;

    #[test]
    fn an_agent_is_the_limit_as_long_as_a_worker_uses_all_of_its_core() {
        let share = Share {
            first: 0,
            workers: 2,
            of: 2,
        };
        let empty = Interval::new(0, false);
        let mut sums = PartSums::new(&[("web".to_owned(), share)].into());
        let mut standing = |at: u64, millis: u64, percent: f64| {
            let mut interval = empty.clone();
            interval.busiest_worker_percent = percent;
            sums.add(&UnionSecond {
                part: 0,
                at: Duration::from_millis(at * 1000 + millis),
                grace: false,
                is_last: false,
                interval,
            });
            let standing = &sums.standings()[0];
            (standing.busiest_worker_percent, standing.is_limit())
        };
        assert_eq!(standing(1, 0, 0.0), (None, false));
        assert_eq!(standing(2, 0, 99.0), (Some(99.0), true));
        // So short a tick says nothing.
        assert_eq!(standing(2, 50, 12.0), (Some(99.0), true));
        assert_eq!(standing(3, 0, 60.0), (Some(60.0), false));
    }

    #[test]
    fn a_caution_of_several_agents_is_written_once_with_their_names() {
        let agent = |number: usize| AgentFigures {
            name: format!("web{number}"),
            cautions: if number == 1 {
                vec!["busy".to_owned(), "it was the limit".to_owned()]
            } else {
                vec!["busy".to_owned()]
            },
            ..AgentFigures::default()
        };
        let agents: Vec<_> = (0..7).map(agent).collect();
        assert_eq!(
            together(&agents),
            [
                "agents web0, web1, web2, web3, web4 and 2 more: busy",
                "agent web1: it was the limit"
            ]
        );
        assert_eq!(together(&agents[..1]), ["agent web0: busy"]);
    }
}
