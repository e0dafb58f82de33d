//! The frame of result pages: style, and short figures for their plots.

use plimsoll_model::look::STYLE as LOOK;
use plimsoll_model::{escaped_html, grouped, without_trailing_zeros};

use crate::plot::STYLE as PLOTS;
use crate::text::Emphasis;

/// What a verdict means for the reader, whatever it is about; decides on colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Judgement {
    /// Neither good nor bad.
    #[default]
    Neutral,
    /// Kept, met, better.
    Good,
    /// Not known: to be looked at.
    Open,
    /// Missed, broken, worse.
    Bad,
}

impl Judgement {
    /// The class of its text on pages; empty for none.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Neutral => "",
            Self::Good => "good",
            Self::Open => "open",
            Self::Bad => "bad",
        }
    }

    /// Its emphasis on a terminal.
    pub const fn emphasis(self) -> Emphasis {
        match self {
            Self::Neutral => Emphasis::Plain,
            Self::Good => Emphasis::Good,
            Self::Open => Emphasis::Warning,
            Self::Bad => Emphasis::Error,
        }
    }
}

/// One principal figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    label: String,
    value: String,
    note: Option<(Judgement, String)>,
    judgement: Judgement,
}

impl Card {
    /// A figure below what it counts.
    pub fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            value: value.into(),
            note: None,
            judgement: Judgement::Neutral,
        }
    }

    /// The same, marked as an error.
    #[must_use]
    pub fn bad_if(self, is_bad: bool) -> Self {
        self.judged(if is_bad {
            Judgement::Bad
        } else {
            Judgement::Neutral
        })
    }

    /// The same with a figure that is itself a verdict.
    #[must_use]
    pub fn judged(mut self, judgement: Judgement) -> Self {
        self.judgement = judgement;
        self
    }

    /// The same with a remark below it.
    #[must_use]
    pub fn with_note(mut self, judgement: Judgement, note: impl Into<String>) -> Self {
        self.note = Some((judgement, note.into()));
        self
    }

    fn html(&self) -> String {
        let note = self
            .note
            .as_ref()
            .map_or_else(String::new, |(judgement, note)| {
                format!(
                    "<em class=\"{}\">{}</em>",
                    judgement.class(),
                    escaped_html(note)
                )
            });
        format!(
            "<div class=\"card {}\"><span>{}</span><strong>{}</strong>{note}</div>",
            self.judgement.class(),
            escaped_html(&self.label),
            escaped_html(&unbroken(&self.value))
        )
    }
}

/// The section of the principal figures.
pub fn cards(cards: &[Card]) -> String {
    let cards: String = cards.iter().map(Card::html).collect();
    format!("<section class=\"cards\">{cards}</section>\n")
}

/// With a space that does not break between a number and its unit; a share in parentheses, or an interval, may go to the next
/// line.
pub(crate) fn unbroken(text: &str) -> String {
    let mut after_digit = false;
    let mut rest = text.chars().peekable();
    let mut unbroken = String::with_capacity(text.len());
    while let Some(c) = rest.next() {
        let is_between = c == ' ' && after_digit && !matches!(rest.peek(), Some('(' | '['));
        let after_number = after_digit;
        after_digit = c.is_ascii_digit();
        match c {
            _ if is_between => unbroken.push('\u{a0}'),
            // A dash of an interval does not end a line.
            '–' if after_number => unbroken.push_str("\u{2060}–\u{2060}"),
            c => unbroken.push(c),
        }
    }
    unbroken
}

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
        escaped_html(title)
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
    without_trailing_zeros(&text).to_owned()
}

/// Of results; colours and type are those of every page.
const STYLE: &str = include_str!("page.css");
