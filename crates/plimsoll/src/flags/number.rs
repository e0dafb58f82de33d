//! Numbers on the command line: one set of value parsers, so that all flags refuse zero and what no
//! machine can do, in the same words and before anything else happens.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use plimsoll_model::{ByteSize, Rate, parse_byte_size, parse_duration, parse_rate};

/// Connections, requests under way and the like: more than the ports of 15 addresses.
pub(crate) const MOST_CONNECTIONS: u64 = 1_000_000;

/// Requests that may be under way at a time, on all connections together: each takes memory.
pub(crate) const MOST_PLACES: u64 = 10_000_000;

/// Threads: beyond any machine.
pub(crate) const MOST_THREADS: u64 = 1_024;

/// Trials, rounds and rows that are kept in memory.
pub(crate) const MOST_TRIALS: u64 = 100_000;

/// Requests of a run: at ten million a second, three years.
pub(crate) const MOST_REQUESTS: u64 = 1_000_000_000_000_000;

/// Seconds of a trial: a day.
pub(crate) const MOST_SECONDS: u64 = 86_400;

/// Bytes of a message that is made up.
const LARGEST_MESSAGE: u64 = 1 << 30;

/// A whole number from one to `most`.
pub(crate) fn count<T>(most: u64) -> RangedU64ValueParser<T>
where
    T: TryFrom<u64> + Clone + Send + Sync,
{
    RangedU64ValueParser::new().range(1..=most)
}

/// The id of a process, or its name: then of the one process that has it.
pub(crate) fn process(text: &str) -> Result<u32, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text
            .parse()
            .ok()
            .filter(|pid| *pid > 0)
            .ok_or_else(|| format!("`{text}` is not the id of a process"));
    }
    plimsoll_observe::pid_of_name(text).map_err(|error| error.to_string())
}

/// A number of arrivals that come at once.
pub(crate) fn burst(text: &str) -> Result<NonZeroU32, String> {
    let number: u32 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a whole number"))?;
    NonZeroU32::new(number)
        .filter(|number| u64::from(number.get()) <= MOST_CONNECTIONS)
        .ok_or_else(|| format!("{number} is not in 1..={MOST_CONNECTIONS}"))
}

/// A duration above zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    if duration.is_zero() {
        return Err("must be more than zero".to_owned());
    }
    Ok(duration)
}

/// A rate above zero.
pub(crate) fn positive_rate(text: &str) -> Result<Rate, String> {
    let rate = parse_rate(text).map_err(|error| error.to_string())?;
    if rate.per_second() == 0.0 {
        return Err("must be more than zero".to_owned());
    }
    Ok(rate)
}

/// The size of a message, which is held in memory.
pub(crate) fn message_size(text: &str) -> Result<ByteSize, String> {
    let size = parse_byte_size(text).map_err(|error| error.to_string())?;
    if size.0 > LARGEST_MESSAGE {
        return Err("must be at most 1GiB".to_owned());
    }
    Ok(size)
}
