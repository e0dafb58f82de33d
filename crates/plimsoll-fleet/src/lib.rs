//! One load from many machines: agents, a coordinator, the transport between them, and the exact merge of their figures.
//!
//! [`coordinate`] gathers agents over a [`FleetTransport`], gives each the part of some workers
//! ([`plimsoll_load::RunPart`]), and merges what they count; [`serve`] is an agent. Both are loops around machines without clock,
//! thread or transport ([`Coordinator`], [`Agent`]), which tests drive in virtual time.
//!
//! A run has a log. The order (what is run, its files, the parts) is one text in it, signed by the operator's key. Agents number
//! what they add, and send a checksum of all of it at the end, so a figure that is lost or merged twice is noticed: the run is
//! then *incomplete*. Load is never given to another agent silently.
//!
//! It reads no flags, prints nothing, and compiles no command line and runs no script: [`PartMaker`] and [`Merger`] do that, in the binary.

pub mod transport;

mod message;

mod share;

mod order;

mod trust;

mod probe;

mod coordinator;

mod agent;

mod merge;

mod part;

mod drive;

#[cfg(test)]
mod transport_contract;

#[cfg(test)]
mod model;

pub use crate::agent::{Agent, AgentOutput};
pub use crate::coordinator::{
    Coordinator, CoordinatorOutput, Ending, FleetPlan, MemberEnd, MemberSecond, NotStarted, Note,
};
pub use crate::drive::coordinate::{
    FleetError, FleetOutcome, FleetRun, FoundRun, coordinate, find_run, new_run_name,
};
pub use crate::drive::fetch_files;
pub use crate::drive::serve::{AgentEnd, AgentNote, AgentSettings, OrderTrust, serve};
pub use crate::merge::{
    LoadMerger, LoadtestEnd, LoadtestMerger, Merger, OnTick, PartSums, UnionError, together,
};
pub use crate::message::{
    AgentReport, CheckFigures, Checksum, Counted, Envelope, Figures, FiguresError, Instances,
    MessageError, ReportedProcesses, RunNames, ScriptFigures, SetUp, Shares, ToAgents,
    ToCoordinator, VERSION, decode, encode, tick_bytes,
};
pub use crate::order::{
    Argument, FileEntry, MOST_FILE_BYTES, OrderError, OrderFile, RunOrder, Work,
};
pub use crate::part::{
    LoadPart, PartControl, PartError, PartMaker, PartStart, PartTick, PreparedPart,
};
pub use crate::probe::{ClockOffset, ClockProbes, PROBES, spread};
pub use crate::share::{Share, shares};
pub use crate::transport::memory::MemoryTransport;
pub use crate::transport::nats::{NatsPlan, NatsTransport};
pub use crate::transport::{Deliver, Delivered, FleetTransport, Subscription, TransportError};
pub use crate::trust::{KeyError, SigningKey, TrustedKeys};
