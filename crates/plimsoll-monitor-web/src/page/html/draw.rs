//! Small drawings: lines, signs, the icon of a browser's tab.

use std::fmt::Write as _;

use crate::page::snapshot::State;

const IN_MEMORY: &str = "writing to memory does not fail";

/// A line through hourly medians.
pub(crate) fn sparkline(hours: &[Option<u64>]) -> String {
    const WIDTH: f64 = 100.0;
    const HEIGHT: f64 = 20.0;

    let known = hours.iter().flatten();
    let (low, high) = known.clone().fold((u64::MAX, 0), |(low, high), one| {
        (low.min(*one), high.max(*one))
    });
    if known.count() < 2 {
        return String::new();
    }
    let range = (high - low).max(1) as f64;
    let step = WIDTH / (hours.len().max(2) - 1) as f64;
    let mut path = String::new();
    let mut is_drawn = false;
    for (at, micros) in hours.iter().enumerate() {
        let Some(micros) = micros else {
            is_drawn = false;
            continue;
        };
        let command = if is_drawn { 'L' } else { 'M' };
        let (x, y) = (
            at as f64 * step,
            HEIGHT - 1.0 - (micros - low) as f64 / range * (HEIGHT - 2.0),
        );
        write!(path, "{command}{x:.1} {y:.1}").expect(IN_MEMORY);
        is_drawn = true;
    }
    format!(
        "<svg class=\"spark\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path d=\"{path}\"/></svg>"
    )
}

/// The sign of a state, apart from its colour.
pub(crate) fn icon(state: State) -> &'static str {
    match state {
        State::Operational => {
            "<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"12\"/><path d=\"M7 12.5l3.4 3.4L17.2 9\"/></svg>"
        }
        State::Maintenance => {
            "<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"12\"/><path d=\"M12 6.5V12l3.6 2.4\"/></svg>"
        }
        State::Degraded | State::Partial => {
            "<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"12\"/><path d=\"M12 6.5v6.5M12 17v.1\"/></svg>"
        }
        State::Major => {
            "<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"12\"/><path d=\"M8 8l8 8M16 8l-8 8\"/></svg>"
        }
        State::Unknown => {
            "<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"12\"/><path d=\"M7.5 12h9\"/></svg>"
        }
    }
}

/// The icon of a browser's tab, in the colour of the state.
pub(crate) fn tab_icon(state: State) -> String {
    let color = match state {
        State::Operational => "#2da44e",
        State::Degraded => "#e3b341",
        State::Partial => "#ee8a3c",
        State::Major => "#d9413d",
        State::Maintenance => "#5794f2",
        State::Unknown => "#7d8590",
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><circle cx=\"8\" cy=\"8\" r=\"7\" fill=\"{color}\"/></svg>"
    )
}
