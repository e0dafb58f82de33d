//! The frame of result pages: style, and short figures for their plots.

use plimsoll_model::grouped;
use plimsoll_model::look::STYLE as LOOK;

use crate::plot::{STYLE as PLOTS, escaped};

/// A page that needs nothing else, light or dark as the reader prefers, without a script.
///
/// - `title`: plain text.
/// - `body`: HTML, what stands in the page's `main` element.
pub fn html_page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{} – plimsoll</title><style>{LOOK}{PLOTS}{STYLE}</style></head><body><main>\n\
         {body}</main></body></html>\n",
        escaped(title)
    )
}

/// `250 µs`, `2.5 ms`, `10 s`, without needless decimals.
pub fn short_time(micros: f64) -> String {
    let (value, unit) = match micros {
        micros if micros >= 120e6 => (micros / 60e6, "min"),
        micros if micros >= 1e6 || micros == 0.0 => (micros / 1e6, "s"),
        micros if micros >= 1e3 => (micros / 1e3, "ms"),
        micros => (micros, "µs"),
    };
    format!("{} {unit}", short_number(value))
}

/// A fraction as `0.5 %`, without needless decimals.
pub fn short_share(fraction: f64) -> String {
    format!("{} %", short_number(fraction * 100.0))
}

/// `64 kB`, `1.5 MB`, without needless decimals.
pub fn short_bytes(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes >= 1e9 => (bytes / 1e9, "GB"),
        bytes if bytes >= 1e6 => (bytes / 1e6, "MB"),
        bytes if bytes >= 1e3 => (bytes / 1e3, "kB"),
        bytes => (bytes, "B"),
    };
    format!("{} {unit}", short_number(value))
}

/// At most three decimals; thousands are set apart from ten thousand on.
pub fn short_number(value: f64) -> String {
    if value >= 1e4 {
        return grouped(value);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Of results; colours and type are those of every page.
const STYLE: &str = include_str!("page.css");
