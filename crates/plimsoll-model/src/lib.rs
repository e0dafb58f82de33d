//! Plain values that every part of plimsoll shares.
//!
//! A load test, a check, a gateway log and a report speak of the same things: an [`Exchange`] with
//! its [`Phases`], the [`Failure`] that ended it, the [`Histogram`] it was counted in, the
//! [`RunSummary`] that came of many. This crate holds those values and the units people write them
//! in.
//!
//! It reads no clock, file, socket or environment; code that needs the time gets a [`Clock`].

#![forbid(unsafe_code)]

mod results;

mod exchange;

mod histogram;

mod censored;

mod cost;

mod threshold;

pub mod document;

pub mod look;

mod markup;

mod metrics_text;

mod units;

mod clock;

mod command_line;

mod causes;

mod secret;

mod field_class;

mod proxy_field;

pub use crate::causes::with_causes;
pub use crate::censored::{Bounded, Times, TimesView};
pub use crate::clock::Clock;
pub use crate::command_line::shell_line;
pub use crate::cost::{Cost, CpuTime, Memory, NetworkBytes, ResourceSample, Throttling};
pub use crate::exchange::failure::{Failure, FailureKind, Retry, Side};
pub use crate::exchange::grpc::{GrpcFigures, GrpcStatus, GrpcStatusCount};
pub use crate::exchange::phase::{Phase, Phases};
pub use crate::exchange::{Exchange, Protocol};
pub use crate::field_class::{FieldClass, may_be_trailer};
pub use crate::histogram::{Bucket, Histogram};
pub use crate::markup::{escaped_html, is_xml_char};
pub use crate::metrics_text::MetricsText;
pub use crate::proxy_field::is_proxy_field;
pub use crate::results::agents::{AgentFigures, AgentStanding};
pub use crate::results::chaos::{
    CaseAnswer, CaseRule, ChaosCase, ChaosMemory, ChaosObjective, ChaosSummary, HealthyFigures,
    HostileFigures,
};
pub use crate::results::check::{
    Certificate, Checked, CheckedCall, CheckedRedirect, Judgement, TlsSession, Verdict,
};
pub use crate::results::conditions::{Conditions, Limits, LoadAverage, Pinning};
pub use crate::results::generator::{Generator, Saturation, Stalls};
pub use crate::results::generator_share::GeneratorShare;
pub use crate::results::latency_by_status::LatencyByStatus;
pub use crate::results::loadtest::{
    LoadtestConnections, LoadtestFound, LoadtestShape, LoadtestSummary, LoadtestTick,
};
pub use crate::results::observed::{ClockDifference, ObservationGap, ObservedServer};
pub use crate::results::requests::{RequestFigures, RequestNames};
pub use crate::results::summary::{
    Counts, DecodedBytes, EventFigures, ExchangeKind, FailureCount, Latency, LoadModel, LoadShape,
    Messages, Moment, Nothing, RunSummary, ServerCost, WindowBytes,
};
pub use crate::results::tick::Tick;
pub use crate::secret::Secret;
pub use crate::secret::masking::{
    MASK, MaskWithoutSecret, is_secret_field, is_secret_name, masked_arguments,
    masked_command_line, masked_text, masked_urls, masked_with, secret_values, unmasked,
};
pub use crate::threshold::{
    Aggregation, JudgedThreshold, Measured, Metric, ServerFigures, Threshold, ThresholdError,
    ThresholdVerdict, Trend, Unit,
};
pub use crate::units::figures::{
    grouped, percent_rounded_down, percentage, rate_figures, rough_percent, rough_percentage,
    share_percentage, three_figures, without_trailing_zeros,
};
pub use crate::units::{
    ByteSize, DurationText, Rate, UnitError, counted, parse_byte_size, parse_duration, parse_rate,
};
