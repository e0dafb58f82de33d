//! The checksum of the counts of an interval, from their encoded record, so that no histogram has to be decoded for it.

use plimsoll_load::Interval;
use plimsoll_model::{GrpcStatus, Phase};

use super::buckets;
use super::{Figures, FiguresError, TimesRecord};
use crate::message::checksum::{Checksum, Digest};

impl Checksum {
    /// That of `interval`.
    pub fn from_interval(interval: &Interval) -> Self {
        let figures = Figures::from_interval(interval);
        figures.checksum().expect("they were written here")
    }
}

impl Figures {
    /// What these counts add to the checksum of an agent.
    pub fn checksum(&self) -> Result<Checksum, FiguresError> {
        let mut digest = Digest::default();
        let counts = &self.counts;
        let (sent_in_window, received_in_window) = self.bytes_in_window;
        let (encoded, decoded) = self.decoded_bytes;
        let (messages_sent, messages_received) = self.messages;
        let numbers = [
            counts.failed,
            counts.aborted,
            counts.failed_status,
            counts.unmet,
            counts.dropped,
            counts.missed,
            counts.broken,
            counts.reconnects,
            counts.redirects,
            counts.warm_up,
            counts.completed_in_window,
            self.bytes_sent,
            sent_in_window,
            received_in_window,
            self.connections_opened,
            encoded,
            decoded,
            messages_sent,
            messages_received,
            self.latency_ns,
        ];
        for number in numbers {
            digest.add(number);
        }
        for (status, count) in &self.statuses {
            digest.count(1, u64::from(*status), *count);
        }
        for failure in &self.failures {
            let failure = failure.read()?;
            let kind = failure.kind as u64 * 16 + failure.phase.index() as u64;
            digest.count(2, kind, failure.count);
        }
        for (position, count) in (0..).zip(&self.unmet) {
            digest.count(3, position, *count);
        }
        if let Some(grpc) = &self.grpc {
            for (code, count, _) in &grpc.statuses {
                let status = GrpcStatus::from_code(u64::from(*code));
                digest.count(4, u64::from(status.code()), *count);
            }
            digest.count(5, 0, grpc.messages_received);
            digest.count(5, 1, grpc.messages_in_window);
        }
        if let Some(events) = &self.events {
            let numbers = [
                events.opened,
                events.ended,
                events.broken,
                events.left,
                events.received,
            ];
            for (position, number) in (0..).zip(numbers) {
                digest.count(6, position, number);
            }
            histogram(&mut digest, 7, &events.gaps)?;
        }
        times(&mut digest, 8, &self.from_started)?;
        if let Some(intended) = &self.from_intended {
            times(&mut digest, 10, intended)?;
        }
        if let Some(of_errors) = &self.of_errors {
            histogram(&mut digest, 12, of_errors)?;
        }
        histogram(&mut digest, 13, &self.lag)?;
        for (name, times) in &self.phases {
            let position = Phase::ALL.iter().position(|phase| phase.name() == name);
            let position = position.ok_or(FiguresError("phase"))?;
            histogram(&mut digest, 14 + position as u64, times)?;
        }
        if let Some(of_timeouts) = &self.of_timeouts {
            histogram(&mut digest, 14 + Phase::ALL.len() as u64, of_timeouts)?;
        }
        Ok(Checksum {
            started: counts.started,
            ok: counts.ok,
            bytes_received: self.bytes_received,
            digest: digest.sum(),
        })
    }
}

/// Durations that are known, and behind them those that are known from below.
fn times(digest: &mut Digest, kind: u64, times: &TimesRecord) -> Result<(), FiguresError> {
    histogram(digest, kind, &times.known)?;
    histogram(digest, kind + 1, &times.censored)
}

fn histogram(digest: &mut Digest, kind: u64, encoded: &str) -> Result<(), FiguresError> {
    buckets::each(encoded, |nanos, count| digest.count(kind, nanos, count))
}
