//! Lines of the load balancers of AWS: fields separated by blanks, the request in quotation marks.
//!
//! Application Load Balancers begin with the kind of request, classic ones with the time.

use super::extended::fields;
use super::time::Time;
use super::{Entry, Unusable, request_line};

const KINDS: [&str; 6] = ["http", "https", "h2", "grpcs", "ws", "wss"];

/// The fields of an Application Load Balancer behind which its line ends or goes on with newer ones.
const CREATED: usize = 21;

/// Whether a line begins as one of them does.
pub(super) fn is_line(line: &str) -> bool {
    let mut words = line.split(' ');
    let first = words.next().unwrap_or_default();
    let time = if KINDS.contains(&first) {
        words.next().unwrap_or_default()
    } else {
        first
    };
    time.contains('T') && Time::parse(time).is_some()
}

pub(super) fn read(line: &str) -> Result<Entry, Unusable> {
    let fields = fields(line);
    let first = fields.first().copied().unwrap_or_default();
    let is_application = KINDS.contains(&first);
    let shift = usize::from(is_application);
    let field = |position: usize| fields.get(position + shift).copied();
    let request = field(11).ok_or(Unusable::NotALine)?;
    if matches!(first, "ws" | "wss") {
        return Err(Unusable::Upgraded);
    }
    // The first time is that of the response; the times that it took come behind the addresses.
    let created = is_application
        .then(|| fields.get(CREATED).and_then(|field| Time::parse(field)))
        .flatten();
    let ended = field(0).and_then(Time::parse).ok_or(Unusable::NotALine)?;
    let took = (4..7)
        .filter_map(|position| field(position)?.parse::<f64>().ok())
        .filter(|seconds| *seconds > 0.0)
        .sum();
    let (method, target) = request_line(request.trim())?;
    Ok(Entry {
        time: created.unwrap_or_else(|| ended.minus(took)),
        method,
        target,
        host: None,
        status: field(7).and_then(|status| status.parse().ok()),
    })
}
