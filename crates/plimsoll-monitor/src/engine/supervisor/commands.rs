//! Carries out commands of the API.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::config::{MonitorPlan, What};
use crate::detect::Input;
use crate::detect::status::Status;
use crate::engine::command::{Command, CommandError, HeartbeatSignal, PushedResult};
use crate::engine::running;
use crate::engine::supervisor::Supervisor;
use crate::probe::reading::CheckResult;
use crate::store::MonitorId;
use crate::time::Timestamp;

impl Supervisor {
    /// Carries a command out, even if its caller no longer waits.
    pub(super) async fn handle_command(&mut self, command: Command) {
        match command {
            Command::Reload(plan, done) => {
                done.send(self.load(*plan).await).ok();
            }
            Command::Rebuild(done) => {
                done.send(self.rebuild().await).ok();
            }
            Command::Put(monitors, gone, done) => {
                let done_so = self.put(monitors, &gone).await;
                let error =
                    |error: crate::store::StoreError| CommandError::Store(error.to_string());
                done.send(done_so.map_err(error)).ok();
            }
            Command::Try(plan, done) => self.try_out(*plan, done),
            Command::CheckNow(key, done) => self.check_now(&key, done),
            Command::Pause(key, paused, done) => {
                done.send(self.pause(&key, paused).await).ok();
            }
            Command::Acknowledge(key, opened, actor, done) => {
                let done_so = if opened.is_none_or(|opened| self.has_incident_of(&key, opened)) {
                    self.on_incident(&key, actor, Input::Acknowledge)
                } else {
                    Err(CommandError::NoIncident)
                };
                done.send(done_so).ok();
            }
            Command::Resolve(key, actor, done) => {
                done.send(self.on_incident(&key, actor, Input::Resolve))
                    .ok();
            }
            Command::Push(key, result, done) => {
                done.send(self.pushed(&key, result)).ok();
            }
            Command::Report(agent, run, results, done) => {
                done.send(self.report(&agent, run, results)).ok();
            }
            Command::Heartbeat(key, signal, done) => {
                done.send(self.heartbeat(&key, signal)).ok();
            }
        }
    }

    /// Makes a check beside the schedule, unless too many are under way.
    fn try_out(
        &mut self,
        plan: MonitorPlan,
        done: oneshot::Sender<Result<CheckResult, CommandError>>,
    ) {
        const MOST: usize = 8;

        while self.trials.try_join_next().is_some() {}
        if !matches!(plan.what, What::Probe(_)) {
            done.send(Err(CommandError::Kind(plan.kind))).ok();
            return;
        }
        if self.trials.len() >= MOST {
            let error = CommandError::Busy("too many tests are under way");
            done.send(Err(error)).ok();
            return;
        }
        let context = Rc::clone(&self.context);
        self.trials.spawn_local(async move {
            let (result, _) = running::result(&plan, &context).await;
            done.send(Ok(result)).ok();
        });
    }

    /// Checks at once, here and by the agents of the monitor.
    fn check_now(&mut self, key: &str, done: oneshot::Sender<Result<CheckResult, CommandError>>) {
        let id = match self.probed(key) {
            Ok(id) => id,
            Err(error) => {
                done.send(Err(error)).ok();
                return;
            }
        };
        let requested = self.request_from_agents(key, id);
        let live = self.live.get(&id);
        if live.is_some_and(|live| !self.checks_itself(&live.plan)) {
            match requested {
                Ok(since) => self.agents.wait(id, since, done),
                Err(error) => {
                    done.send(Err(error)).ok();
                }
            }
            return;
        }
        let is_running = self.passes.values().any(|pass| pass.key == id);
        let begun = if is_running {
            Ok(())
        } else {
            self.begin(id, self.origin + self.moment().elapsed)
        };
        match begun {
            Ok(()) => self.waiting_for.entry(id).or_default().push(done),
            Err(reason) => {
                done.send(Err(CommandError::Busy(reason.name()))).ok();
            }
        }
    }

    /// Whether the open incident of a monitor is the one that opened then.
    fn has_incident_of(&self, key: &str, opened: Timestamp) -> bool {
        let id = self.keys.get(key);
        let live = id.and_then(|id| self.live.get(id));
        let incident = live.and_then(|live| live.detector.incident());
        incident.is_some_and(|(begun, _)| begun == opened)
    }

    fn id(&self, key: &str) -> Result<MonitorId, CommandError> {
        self.keys.get(key).copied().ok_or(CommandError::NotFound)
    }

    /// A monitor with a probe that is not paused.
    fn probed(&self, key: &str) -> Result<MonitorId, CommandError> {
        let id = self.id(key)?;
        let live = self.live.get(&id).ok_or(CommandError::NotFound)?;
        match live.plan.what {
            What::Probe(_) if live.is_paused => Err(CommandError::Busy("the monitor is paused")),
            What::Probe(_) => Ok(id),
            _ => Err(CommandError::Kind(live.plan.kind.clone())),
        }
    }

    pub(super) async fn pause(&mut self, key: &str, paused: bool) -> Result<(), CommandError> {
        let id = self.id(key)?;
        let stored = self.store.pause_monitor(self.org, id, paused).await;
        stored.map_err(|error| CommandError::Store(error.to_string()))?;
        let now = self.moment();
        let Some(live) = self.live.get_mut(&id) else {
            return Err(CommandError::NotFound);
        };
        live.is_paused = paused;
        let plan = Arc::clone(&live.plan);
        let checks = !paused && self.checks_itself(&plan);
        match plan.timing.filter(|_| checks) {
            Some(timing) => {
                self.scheduler
                    .set(id, timing, Duration::ZERO, self.origin + now.elapsed);
            }
            None => {
                self.scheduler.remove(&id);
            }
        }
        self.board.change(key, |view| view.is_paused = paused);
        self.feed(id, Input::Pause(paused));
        self.judge_composite(id);
        Ok(())
    }

    pub(super) fn on_incident(
        &mut self,
        key: &str,
        actor: Option<String>,
        input: Input,
    ) -> Result<(), CommandError> {
        let id = self.id(key)?;
        let has_incident = self
            .live
            .get(&id)
            .is_some_and(|live| live.detector.has_incident());
        if !has_incident {
            return Err(CommandError::NoIncident);
        }
        self.actor = actor;
        self.feed(id, input);
        self.actor = None;
        Ok(())
    }

    pub(super) fn pushed(&mut self, key: &str, pushed: PushedResult) -> Result<(), CommandError> {
        let id = self.id(key)?;
        let now = self.moment();
        let live = self.live.get_mut(&id).ok_or(CommandError::NotFound)?;
        if !matches!(live.plan.what, What::Pushed { .. } | What::Manual) {
            return Err(CommandError::Kind(live.plan.kind.clone()));
        }
        if let Some(state) = &mut live.heartbeat {
            state.end(now);
        }
        let status = if pushed.is_up {
            Status::Up
        } else {
            Status::Down
        };
        let reason = pushed.reason.filter(|_| !pushed.is_up);
        self.accept_result(
            id,
            CheckResult::plain(now.wall, status, pushed.took, reason),
        );
        self.set_timer(id);
        Ok(())
    }

    pub(super) fn heartbeat(
        &mut self,
        key: &str,
        signal: HeartbeatSignal,
    ) -> Result<(), CommandError> {
        let id = self.id(key)?;
        let now = self.moment();
        let live = self.live.get_mut(&id).ok_or(CommandError::NotFound)?;
        let kind = live.plan.kind.clone();
        let state = live.heartbeat.as_mut().ok_or(CommandError::Kind(kind))?;
        let (status, reason) = match signal {
            HeartbeatSignal::Log => return Ok(()),
            HeartbeatSignal::Start => {
                state.start(now);
                let beat = state.beat();
                self.board.change(key, |view| view.beat = Some(beat));
                self.remember(id);
                self.flush_group();
                self.set_timer(id);
                return Ok(());
            }
            HeartbeatSignal::Success => (Status::Up, None),
            HeartbeatSignal::Fail(reason) => {
                let reason = reason.unwrap_or_else(|| "the job reported a failure".to_owned());
                (Status::Down, Some(reason))
            }
        };
        let took = state.end(now);
        let beat = state.beat();
        self.board.change(key, |view| view.beat = Some(beat));
        self.accept_result(id, CheckResult::plain(now.wall, status, took, reason));
        self.remember(id);
        self.flush_group();
        self.set_timer(id);
        Ok(())
    }
}
