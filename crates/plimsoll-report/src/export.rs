//! Results for other programs and other places, one format a file.

mod table;

mod requests;

mod agents;

mod servers;

mod text;

pub(crate) mod html;

mod markdown;

mod junit;

pub(crate) mod prometheus;

pub use self::html::Html;
pub use self::junit::Junit;
pub use self::markdown::Markdown;
pub use self::prometheus::Prometheus;
pub(crate) use self::table::saturation_text;
pub use self::text::PlainText;
use crate::RunRecord;

/// Encodes one run, or several beside one another.
pub trait Exporter {
    /// The name of the format on the command line.
    fn name(&self) -> &'static str;

    /// The media type of what it makes (RFC 6838).
    fn media_type(&self) -> &'static str;

    /// The encoded runs; the same runs give the same bytes.
    fn export(&self, runs: &[RunRecord]) -> Vec<u8>;
}

#[cfg(test)]
mod tests;
