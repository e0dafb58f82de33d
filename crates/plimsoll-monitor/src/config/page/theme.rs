//! How a page looks beyond its colour and its logo: font, density, bars, and a style sheet of one's own.

use std::borrow::Cow;
use std::sync::Arc;

use plimsoll_model::document::{Table, Value, as_text};

use super::LogoFolder;

/// Bytes of a style sheet of one's own.
const MOST_CSS: usize = 64 * 1024;

/// How a page looks.
#[derive(Debug, Clone, Default)]
pub struct Theme {
    /// Its font.
    pub font: Font,
    /// Whether there is less room between its lines.
    pub is_compact: bool,
    /// Its bars of days.
    pub bars: Bars,
    /// A style sheet behind those of the page, which loads nothing.
    pub css: Option<Arc<str>>,
}

/// A font that the reader's machine has: pages load none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Font {
    /// That of the system.
    #[default]
    Sans,
    /// With serifs.
    Serif,
    /// With letters of one width.
    Mono,
    /// With round ends.
    Rounded,
}

/// Shape of the bars of days.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bars {
    /// Narrow rectangles.
    #[default]
    Bars,
    /// A strip without gaps.
    Solid,
    /// With round ends.
    Round,
    /// Dots.
    Dots,
}

impl Theme {
    /// Takes the keys of a theme from the table of a page.
    pub(super) fn compile(table: &mut Table<'_>, folder: Option<LogoFolder<'_>>) -> Option<Self> {
        const FONTS: [(&str, Font); 4] = [
            ("sans", Font::Sans),
            ("serif", Font::Serif),
            ("mono", Font::Mono),
            ("rounded", Font::Rounded),
        ];
        const DENSITIES: [(&str, bool); 2] = [("normal", false), ("compact", true)];
        const BARS: [(&str, Bars); 4] = [
            ("bars", Bars::Bars),
            ("solid", Bars::Solid),
            ("round", Bars::Round),
            ("dots", Bars::Dots),
        ];

        let font = chosen(table, "font", FONTS);
        let density = chosen(table, "density", DENSITIES);
        let bars = chosen(table, "bars", BARS);
        let css = match table.take_value("css") {
            None => Some(None),
            Some(value) => css(&value, folder).map(Some),
        };
        Some(Self {
            font: font?,
            is_compact: density?,
            bars: bars?,
            css: css?,
        })
    }
}

/// One of several words; the first one if there is none.
fn chosen<T: Copy, const N: usize>(
    table: &mut Table<'_>,
    key: &'static str,
    all: [(&str, T); N],
) -> Option<T> {
    let Some(value) = table.take_value(key) else {
        return all.first().map(|(_, first)| *first);
    };
    let text = as_text(&value)?;
    match all.iter().find(|(word, _)| *word == text) {
        Some((_, found)) => Some(*found),
        None => value.wrong(format!(
            "`{text}` is not one of {}",
            all.map(|(word, _)| word).join(", ")
        )),
    }
}

/// A file, or the style sheet itself, which has a brace.
fn css(value: &Value<'_>, folder: Option<LogoFolder<'_>>) -> Option<Arc<str>> {
    let text = as_text(value)?;
    let content: Cow<'_, str> = if text.contains('{') {
        text.into()
    } else if let Some((directory, named)) = folder {
        let path = directory.join(text);
        named.borrow_mut().push(path.clone());
        match std::fs::read_to_string(&path) {
            Ok(content) => content.into(),
            Err(error) => return value.wrong(format!("cannot read {}: {error}", path.display())),
        }
    } else {
        return value.wrong("names a file; give the style sheet itself instead");
    };
    if content.len() > MOST_CSS {
        return value.wrong(format!("is longer than {MOST_CSS} bytes"));
    }
    match loading(&content) {
        Some(found) => value.wrong(format!(
            "must load nothing, but has `{found}`; use colours, fonts of the system and gradients"
        )),
        None => Some(content.into()),
    }
}

/// The first construct of a style sheet that loads something (CSS Values 4, section 4.5; CSS Cascade 5, section 2). It is
/// looked for in comments and strings too. The policy of the pages refuses what would be loaded all the same.
fn loading(css: &str) -> Option<&'static str> {
    const LOADING: [&str; 7] = [
        "url(",
        "src(",
        "image(",
        "image-set(",
        "@import",
        "@font-face",
        "expression(",
    ];

    let plain = unescaped(css).to_lowercase();
    LOADING.into_iter().find(|one| plain.contains(one))
}

/// The text with the characters that escapes stand for (CSS Syntax 3, section 4.3.7).
fn unescaped(css: &str) -> String {
    let mut text = String::with_capacity(css.len());
    let mut rest = css.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        let mut code = 0;
        let mut digits = 0;
        while digits < 6
            && let Some(digit) = rest.peek().and_then(|c| c.to_digit(16))
        {
            code = code * 16 + digit;
            digits += 1;
            rest.next();
        }
        if digits == 0 {
            text.extend(rest.next());
            continue;
        }
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        // One space ends an escape and is no part of the text.
        rest.next_if(char::is_ascii_whitespace);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loads_something_is_found() {
        for (css, found) in [
            ("body{background:url(https://a/b.png)}", "url("),
            ("body{background:URL('b.png')}", "url("),
            (r"body{background:\75 rl(//a/b)}", "url("),
            (r"body{background:u\72\6c(//a/b)}", "url("),
            (r"body{background:u\000072l(//a/b)}", "url("),
            (r"body{background:\u\r\l(//a/b)}", "url("),
            ("@import 'https://a/b.css';body{}", "@import"),
            (r"@\69mport 'b';body{}", "@import"),
            ("@font-face{font-family:x}", "@font-face"),
            ("a{background:-webkit-image-set('a' 1x)}", "image-set("),
            ("a{background:image('a.png')}", "image("),
            ("a{content:\"/*\";background:url(x);content:\"*/\"}", "url("),
        ] {
            assert_eq!(loading(css), Some(found), "{css}");
        }
        for css in [
            "body{--accent:#0a7d5a;background:linear-gradient(#fff,#eee)}",
            ".top h1::before{content:'\\2713  '}",
            "@media (max-width:640px){.top{padding:0}}",
        ] {
            assert_eq!(loading(css), None, "{css}");
        }
    }
}
