//! Time that counts differently from what checks found: maintenance, and downtime that an operator declared.

use std::sync::Arc;

use crate::detect::uptime::{Span, united};
use crate::detect::window::Window;
use crate::store::timestamp::Timestamp;
use crate::store::{Declared, MonitorId};

/// Maintenance within a window of time, in order and apart.
pub(crate) fn excluded(windows: &[Arc<Window>], window: Span) -> Vec<Span> {
    let spans = windows.iter().flat_map(|it| it.spans(window.0, window.1));
    united(spans.collect())
}

/// The spans of declared incidents that count as downtime of a monitor.
pub(crate) fn declared_downtime(
    declared: &[Declared],
    monitor: MonitorId,
    now: Timestamp,
) -> Vec<Span> {
    let counted = declared
        .iter()
        .filter(|one| one.counts_as_downtime && one.monitors.contains(&monitor));
    counted.map(|one| one.span(now)).collect()
}
