//! Encoders for what was measured: text, HTML, Markdown, JSON, CSV, `JUnit`, Prometheus, OTLP,
//! HdrHistogram log.
//!
//! Each takes a [`plimsoll_model::RunSummary`] and gives text or bytes; nothing here measures,
//! prints, or writes a file. [`text::summary`] is what a person reads after a run,
//! [`SummaryDocument`] what a program reads, and [`files::of_run`] all of it for a directory.
//! A [`RunRecord`] is a run as such a directory keeps it; each [`export::Exporter`] encodes one or
//! several of them; [`push`] does the same for databases of time series.
//! [`plot`] and [`page`] are what other pages of figures are made of; [`dashboard`] is that of a run that goes on.
//! [`text::check`] and [`CheckDocument`] are the same for a single checked exchange, and
//! [`text::loadtest`] and [`LoadtestDocument`] for a run of the harness,
//! [`text::chaos`] and [`ChaosDocument`] for one of hostile clients.
//!
//! # The way of a figure
//!
//! 1. Defaults of `load` are constants beside the code that compiles the flag (`plimsoll/src/commands/load/compile/shape.rs`);
//!    help texts in its `args.rs` repeat them.
//! 2. `RunSummary` keeps histograms, no percentiles: `report` computes them by `Times::quantile`, whose result is a
//!    `Bounded`: a figure, or a lower bound if what was given up could change it (`model/src/censored.rs`;
//!    `report/src/document/times.rs`, `text/summary/`). No format can print the one as the other. `Tick::p99`
//!    (`load/src/run/collector.rs`) is that of one second.
//! 3. CPU per request: `observe/src/tree/linux.rs` reads /proc, `observe/src/sampler.rs` keeps the samples,
//!    `Cost::between` (`model/src/cost.rs`) subtracts them, `summary_of` (`load/src/run.rs`) puts in the exchanges
//!    of the window, and `Cost::cpu_us_per_request` divides.

#![forbid(unsafe_code)]

pub mod text;

mod document;

mod date;

mod series;

mod samples;

mod hdr;

pub mod files;

mod record;

mod merge;

pub mod plot;

pub mod page;

pub mod dashboard;

pub mod export;

pub mod push;

#[cfg(test)]
mod fixture;

pub use crate::document::chaos_document::{
    ChaosCaseDocument, ChaosDocument, ChaosMemoryDocument, ChaosObjectiveDocument,
    HealthyClientDocument, HostileClientsDocument,
};
pub use crate::document::check_document::{
    CallDocument, CertificateDocument, CheckDocument, CheckFailureDocument, ExchangeDocument,
    FieldDocument, JudgementDocument, PhaseTimeDocument, RedirectDocument, TlsDocument,
};
pub use crate::document::loadtest_document::{
    LoadtestAgentDocument, LoadtestCountsDocument, LoadtestDocument, LoadtestLatencyDocument,
    LoadtestShapeDocument, LoadtestTickDocument,
};
pub use crate::document::loadtest_part::{LoadtestPart, LoadtestPartError};
pub use crate::document::{
    ConditionsDocument, CostDocument, CountsDocument, DecodedDocument, EventsDocument,
    FailureDocument, FleetAgentDocument, GapDocument, GeneratorDocument, GeneratorShareDocument,
    GrpcDocument, LatencyDocument, LoadDocument, MessagesDocument, ObservedDocument,
    ObservedTickDocument, PhaseDocument, PlanDocument, RequestDocument, SaturationDocument,
    SpreadDocument, SummaryDocument, TargetDocument, ThresholdDocument, TickDocument,
    TimesDocument, to_json,
};
pub use crate::hdr::latency_log;
pub use crate::merge::{MergeError, merged, same_load};
pub use crate::record::{RecordError, RunRecord};
pub use crate::samples::samples_csv;
pub use crate::series::series_csv;
