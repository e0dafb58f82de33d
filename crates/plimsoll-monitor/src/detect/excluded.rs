//! Time that counts differently from what checks found: maintenance.

use std::sync::Arc;

use crate::detect::uptime::{Span, united};
use crate::detect::window::Window;

/// Maintenance within a window of time, in order and apart.
pub fn excluded(windows: &[Arc<Window>], window: Span) -> Vec<Span> {
    let spans = windows.iter().flat_map(|it| it.spans(window.0, window.1));
    united(spans.collect())
}
