//! QR codes as drawings of a page (ISO/IEC 18004), black on white in dark pages too, as cameras expect.

use std::fmt::Write as _;

use plimsoll_model::escaped_html;
use qrcode::{Color, EcLevel, QrCode};

/// Modules of white around a code.
const QUIET: usize = 4;

/// The code of a text as an SVG element; `None` if the text is too long for one.
///
/// - `label`: for readers who cannot see it.
pub(super) fn svg(text: &str, label: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::M).ok()?;
    let size = code.width() + 2 * QUIET;
    let label = escaped_html(label);
    // Attributes of presentation are no inline style, which the policy of the pages forbids.
    Some(format!(
        "<svg class=\"qr\" viewBox=\"0 0 {size} {size}\" role=\"img\" aria-label=\"{label}\" shape-rendering=\"crispEdges\">\
         <rect width=\"{size}\" height=\"{size}\" fill=\"#fff\"/><path fill=\"#000\" d=\"{}\"/></svg>",
        path(&code)
    ))
}

/// Each run of dark modules as a rectangle.
fn path(code: &QrCode) -> String {
    let modules = code.to_colors();
    let mut path = String::new();
    for (y, row) in modules.chunks(code.width()).enumerate() {
        let mut x = 0;
        for run in row.chunk_by(|one, other| one == other) {
            if run.first() == Some(&Color::Dark) {
                let (left, top, length) = (x + QUIET, y + QUIET, run.len());
                write!(path, "M{left} {top}h{length}v1h-{length}z")
                    .expect("writing to memory does not fail");
            }
            x += run.len();
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "otpauth://totp/plimsoll:ann?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=plimsoll";

    /// Places of dark modules in a path.
    fn drawn(path: &str) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        for run in path.split('M').skip(1) {
            let (place, rest) = run.split_once('h').unwrap();
            let (x, y) = place.split_once(' ').unwrap();
            let (length, _) = rest.split_once('v').unwrap();
            let (x, y): (usize, usize) = (x.parse().unwrap(), y.parse().unwrap());
            let length: usize = length.parse().unwrap();
            all.extend((x..x + length).map(|x| (x - QUIET, y - QUIET)));
        }
        all
    }

    #[test]
    fn every_dark_module_is_drawn_once() {
        let code = QrCode::with_error_correction_level(TEXT, EcLevel::M).unwrap();
        let width = code.width();
        let dark = code.to_colors().into_iter().enumerate();
        let dark = dark.filter(|(_, color)| *color == Color::Dark);
        let expected: Vec<_> = dark.map(|(at, _)| (at % width, at / width)).collect();
        let found = drawn(&path(&code));
        assert_eq!(found, expected);
        // The upper edges of the finder patterns, with white between them and the rest.
        let row: Vec<_> = found
            .iter()
            .filter(|(_, y)| *y == 0)
            .map(|(x, _)| *x)
            .collect();
        assert!(
            row.starts_with(&[0, 1, 2, 3, 4, 5, 6]) && !row.contains(&7),
            "{row:?}"
        );
        assert!(row.ends_with(&[
            width - 7,
            width - 6,
            width - 5,
            width - 4,
            width - 3,
            width - 2,
            width - 1
        ]));
    }

    #[test]
    fn it_is_a_labelled_picture_with_a_white_border() {
        let shown = svg(TEXT, "QR code of \"ann\"").unwrap();
        assert!(
            shown.contains("aria-label=\"QR code of &quot;ann&quot;\""),
            "{shown}"
        );
        assert!(!shown.contains("style="), "{shown}");
        assert!(
            !shown.contains("JBSW"),
            "the secret is in the picture alone: {shown}"
        );
        assert_eq!(svg(&"x".repeat(5_000), "too long"), None);
    }
}
