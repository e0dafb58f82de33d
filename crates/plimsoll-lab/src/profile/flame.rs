//! Flame graphs, drawn by inferno.

use std::io;

use inferno::differential;
use inferno::flamegraph::{self, Options, color::Palette};

use super::Profile;

/// A flame graph as SVG; wide is what took long, callers are below what they called.
///
/// Fails if there is not a single sample.
pub fn svg(profile: &Profile, title: &str) -> io::Result<Vec<u8>> {
    let folded = profile.folded();
    draw(&folded, title, Palette::default())
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
    draw(&String::from_utf8_lossy(&lines), title, Palette::default())
}

fn draw(lines: &str, title: &str, colors: Palette) -> io::Result<Vec<u8>> {
    let mut options = Options::default();
    title.clone_into(&mut options.title);
    options.colors = colors;
    options.hash = true;
    options.min_width = 0.05;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.lines(), &mut svg)?;
    Ok(svg)
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
    }

    #[test]
    fn nothing_cannot_be_drawn() {
        assert!(svg(&Profile::default(), "t").is_err());
    }
}
