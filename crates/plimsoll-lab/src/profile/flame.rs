//! Flame graphs, drawn by inferno.

use std::io;

use inferno::differential;
use inferno::flamegraph::{self, Options, TextTruncateDirection};

use super::{Profile, ProfileKind};

/// A flame graph as SVG; wide is what took long, callers are below what they called.
///
/// Fails if there is not a single sample.
pub fn svg(profile: &Profile, title: &str) -> io::Result<Vec<u8>> {
    let folded = profile.folded();
    let (count_name, subtitle) = match profile.kind {
        ProfileKind::Cpu => ("samples", "width: CPU time"),
        ProfileKind::OffCpu => ("µs", "width: time off the processor, waiting"),
    };
    draw(&folded, title, subtitle, count_name)
}

/// The flame graph of `after`, coloured by how it differs from `before`: red is more, blue is less. Both
/// are folded stacks; `before` is scaled to as many samples as `after`.
pub fn difference(before: &str, after: &str, title: &str) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    let options = differential::Options {
        normalize: true,
        strip_hex: false,
    };
    differential::from_readers(options, before.as_bytes(), after.as_bytes(), &mut lines)?;
    draw(&String::from_utf8_lossy(&lines), title, LEGEND, "samples")
}

/// Of a difference.
const LEGEND: &str =
    "width: share now · red: a larger share than before · blue: a smaller one · white: the same";

fn draw(lines: &str, title: &str, subtitle: &str, count_name: &str) -> io::Result<Vec<u8>> {
    let mut options = Options::default();
    title.clone_into(&mut options.title);
    options.subtitle = Some(subtitle.to_owned());
    count_name.clone_into(&mut options.count_name);
    options.hash = true;
    options.min_width = 0.05;
    // The beginnings of function names distinguish less than their ends; but a cut beginning cannot be read at all.
    options.text_truncate_direction = TextTruncateDirection::Right;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.lines(), &mut svg)?;
    Ok(dark_as_preferred(svg))
}

/// With colours for readers who prefer dark pages; the frames keep theirs.
fn dark_as_preferred(svg: Vec<u8>) -> Vec<u8> {
    const STYLE: &str = "<style type=\"text/css\">@media (prefers-color-scheme: dark){\
        svg{background:#0f1318}rect[fill=\"url(#background)\"]{fill:#0f1318}\
        #title,#subtitle,#details,#search,#matched,#unzoom{fill:#e4e8ed}}</style>";
    let Ok(text) = String::from_utf8(svg) else {
        return Vec::new();
    };
    match text.find("<defs>") {
        Some(at) => {
            let (head, rest) = text.split_at(at);
            format!("{head}{STYLE}{rest}").into_bytes()
        }
        None => text.into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_changed() {
        let svg = difference(
            "main;work 90\nmain;rest 10\n",
            "main;work 50\nmain;rest 50\n",
            "t",
        );
        let svg = String::from_utf8(svg.unwrap()).unwrap();
        assert!(svg.contains("rest (50 samples, 50.00%; +40.00%)"), "{svg}");
        assert!(svg.contains("work (50 samples, 50.00%; -40.00%)"));
        assert!(svg.contains("prefers-color-scheme: dark"), "{svg}");
        assert!(svg.contains("red: a larger share than before"), "{svg}");
    }

    #[test]
    fn nothing_cannot_be_drawn() {
        assert!(svg(&Profile::default(), "t").is_err());
    }
}
