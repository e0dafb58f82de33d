//! Offers of agents, until there are enough of them: who takes part, and which process of a name it is.

use std::time::{Duration, Instant};

use super::member::{Member, Namesake};
use super::{Coordinator, CoordinatorOutput, NotStarted, Note, State};
use crate::share::shares;

/// How long the first of two processes of one name may be silent before the second one takes its place: agents repeat their
/// offer with every call.
const NAMESAKE_WAIT: Duration = Duration::from_millis(1500);

/// Cores that an agent is taken to have, at most.
const MOST_CORES: usize = 4096;

impl Coordinator {
    pub(super) fn offer(&mut self, agent: String, instance: String, cores: usize, now: Instant) {
        if !is_name(&agent) || !is_name(&instance) {
            return;
        }
        let cores = cores.clamp(1, MOST_CORES);
        if let Some(position) = self.members.iter().position(|it| it.agent == agent) {
            self.offer_again(position, instance, cores, now);
            return;
        }
        let State::Gathering { .. } = self.state else {
            return;
        };
        let member = Member::new(agent.clone(), instance, cores, self.epoch, now);
        self.members.push(member);
        self.outputs.push(CoordinatorOutput::Note(Note::Joined {
            agent,
            cores,
            have: self.members.len(),
            wanted: self.plan.agents,
        }));
        self.order_if_all_are_there(now);
    }

    /// An agent of this name has offered itself before: the same one, or another.
    fn offer_again(&mut self, position: usize, instance: String, cores: usize, now: Instant) {
        let is_gathering = match self.state {
            State::Gathering { .. } => true,
            State::Preparing { .. } | State::Probing { .. } | State::SettingUp => false,
            // The order names the process that makes the part.
            State::Running | State::Ended => return,
        };
        let member = &mut self.members[position];
        let other = match &member.namesake {
            None if instance == member.instance => return,
            None if is_gathering => {
                member.namesake = Some(Namesake {
                    instance,
                    cores,
                    since: now,
                });
                return;
            }
            None => instance,
            Some(namesake) if instance == namesake.instance => return,
            Some(namesake) => namesake.instance.clone(),
        };
        let reason = NotStarted::SameName {
            agent: member.agent.clone(),
            instances: [member.instance.clone(), other],
        };
        self.fail(reason);
    }

    /// Agents that were started again take the place of those that are silent since.
    pub(super) fn replace_silent(&mut self, now: Instant) {
        for member in &mut self.members {
            let is_due = |it: &mut Namesake| now >= it.since + NAMESAKE_WAIT;
            if let Some(namesake) = member.namesake.take_if(is_due) {
                member.instance = namesake.instance;
                member.cores = namesake.cores;
            }
        }
        self.order_if_all_are_there(now);
    }

    fn order_if_all_are_there(&mut self, now: Instant) {
        let is_sure = self.members.iter().all(|it| it.namesake.is_none());
        if is_sure && self.members.len() == self.plan.agents {
            self.order(now);
        }
    }

    fn order(&mut self, now: Instant) {
        // By name, so that the same agents have the same parts in the next run.
        self.members
            .sort_by(|one, other| one.agent.cmp(&other.agent));
        let cores: Vec<_> = self.members.iter().map(|it| it.cores).collect();
        match shares(&cores, self.plan.connections) {
            Err(agents) => self.fail(NotStarted::TooMany {
                agents,
                connections: self.plan.connections,
            }),
            Ok(shares) => {
                if self.plan.is_dry {
                    let names = self.members.iter().map(|it| it.agent.clone());
                    let parts = Note::Parts(names.zip(shares).collect());
                    self.outputs.push(CoordinatorOutput::Note(parts));
                    self.fail(NotStarted::Dry);
                    return;
                }
                for (member, share) in self.members.iter_mut().zip(shares) {
                    member.share = share;
                    member.heard = now;
                }
                let members = self.members.iter();
                let shares = members.clone().map(|it| (it.agent.clone(), it.share));
                let instances = members.map(|it| (it.agent.clone(), it.instance.clone()));
                self.outputs.push(CoordinatorOutput::Order {
                    shares: shares.collect(),
                    instances: instances.collect(),
                });
                self.state = State::Preparing { since: now };
            }
        }
    }
}

/// Whether a text can be the name of an agent: nothing else is shown to people.
fn is_name(text: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    (1..=64).contains(&text.len()) && text.bytes().all(is_part)
}
