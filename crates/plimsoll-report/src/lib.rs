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
    LoadtestCountsDocument, LoadtestDocument, LoadtestLatencyDocument, LoadtestShapeDocument,
    LoadtestTickDocument,
};
pub use crate::document::loadtest_part::{LoadtestPart, LoadtestPartError};
pub use crate::document::{
    ConditionsDocument, CostDocument, CountsDocument, DecodedDocument, EventsDocument,
    FailureDocument, GeneratorDocument, GrpcDocument, LatencyDocument, LoadDocument,
    MessagesDocument, PhaseDocument, RequestDocument, SaturationDocument, SpreadDocument,
    SummaryDocument, TargetDocument, ThresholdDocument, TickDocument, TimesDocument, to_json,
};
pub use crate::hdr::latency_log;
pub use crate::merge::{MergeError, merged, same_load};
pub use crate::record::{RecordError, RunRecord};
pub use crate::samples::samples_csv;
pub use crate::series::series_csv;
