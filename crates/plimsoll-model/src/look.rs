//! The style of all pages: colours, type and spacing, light and dark.
//!
//! Reports, the page of a mock and status pages put this style sheet before their own, and use its custom properties
//! instead of colours.

/// The style sheet. Its custom properties:
///
/// | property | for |
/// |---|---|
/// | `--bg`, `--panel`, `--line` | the page, what is set apart from it, borders |
/// | `--text`, `--faint`, `--link` | text (contrast of at least 4.5 on `--bg` and `--panel`) |
/// | `--good`, `--warn`, `--part`, `--bad` | text that judges: fine, degraded, partly down, down |
/// | `--mark`, `--marktext` | a remark that must be seen |
/// | `--c0` … `--c6` | lines and areas of plots |
/// | `--b0` … `--b5` | bars of states: up, degraded, partly down, down, maintenance, no data |
/// | `--sans`, `--mono`, `--radius`, `--small` | fonts and corners |
pub const STYLE: &str = include_str!("look.css");
