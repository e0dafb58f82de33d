//! `plimsoll gateway import`: configurations of nginx, Caddy, Traefik, HAProxy, Kubernetes and ExpressGateway as those of `plimsoll up`.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use plimsoll_gateway::{
    ImportError, ImportNote, Imported, Include, import_caddy, import_expressgateway,
    import_haproxy, import_kubernetes, import_nginx, import_traefik, is_caddyfile,
    is_expressgateway, is_haproxy, is_kubernetes, is_traefik,
};
use plimsoll_model::counted;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Translate a configuration of nginx, Caddy, Traefik, HAProxy, Kubernetes (Ingress) or ExpressGateway to one for `plimsoll up` and report what is left out
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Configuration of nginx or Caddy, whose `include` and `import` are relative to its folder, of Traefik (a dynamic configuration in YAML, or a compose file with labels), of HAProxy, manifests of Kubernetes with an Ingress, or of ExpressGateway (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write the configuration to this file, which must not exist [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let shown = args.file.display().to_string();
    let text = fs::read_to_string(&args.file)
        .map_err(|error| Problem::new(format!("cannot read {shown}: {error}")).could_not_run())?;
    let imported = if is_expressgateway(&text) {
        of_expressgateway(&shown, &text)?
    } else if is_kubernetes(&text) {
        import_kubernetes(&shown, &text).map_err(|error| not_one(&error))?
    } else if is_traefik(&text) {
        import_traefik(&shown, &text).map_err(|error| not_one(&error))?
    } else if is_haproxy(&text) {
        import_haproxy(&shown, &text).map_err(|error| not_one(&error))?
    } else if is_caddyfile(&shown, &text) {
        with_files(&args.file, |include| import_caddy(&shown, &text, include))?
    } else {
        with_files(&args.file, |include| import_nginx(&shown, &text, include))?
    };
    terminal::print_notes(&shown_notes(&imported.notes));
    let Some(out) = &args.out else {
        print(imported.toml.trim_end())?;
        return Ok(Exit::Fine);
    };
    let cannot = |error: std::io::Error| {
        Problem::new(format!("cannot write {}: {error}", out.display()))
            .hint("give another name, or take the file away")
            .could_not_run()
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(out)
        .map_err(cannot)?;
    file.write_all(imported.toml.as_bytes()).map_err(cannot)?;
    let out = out.display();
    let notes = counted(imported.notes.len() as u64, "note");
    print(&format!(
        "wrote {out} with {notes}; check it with `plimsoll up {out} --check`"
    ))?;
    Ok(Exit::Fine)
}

/// Notes of a translation as they are printed.
pub(crate) fn shown_notes(notes: &[ImportNote]) -> Vec<Problem> {
    let shown = notes.iter().map(|note| {
        let place = format!("{}:{}", note.file, note.line);
        Problem::new(&note.message).about(&place)
    });
    shown.collect()
}

/// - `file`: its name, for messages.
pub(crate) fn of_expressgateway(file: &str, text: &str) -> Result<Imported, Failed> {
    import_expressgateway(file, text).map_err(|problems| {
        let problems = problems.iter().map(|problem| {
            let place = format!("{file}:{}:{}", problem.line, problem.column);
            let shown = Problem::new(problem).about(&place);
            match &problem.hint {
                Some(hint) => shown.hint(hint),
                None => shown,
            }
        });
        Failed {
            exit: Exit::Usage,
            problems: problems.collect(),
        }
    })
}

/// Translates a file that names others.
fn with_files(
    path: &Path,
    import: impl FnOnce(&mut Include<'_>) -> Result<Imported, ImportError>,
) -> Result<Imported, Failed> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut include = |pattern: &str| {
        let files = matching(&directory.join(pattern));
        let is_pattern = pattern.contains(['*', '?']);
        if files.is_empty() && !is_pattern {
            return Err(format!("cannot read {pattern}: no such file").into());
        }
        let read = |file: PathBuf| {
            let name = file.display().to_string();
            match fs::read_to_string(&file) {
                Ok(text) => Ok((name, text)),
                Err(error) => Err(format!("cannot read {name}: {error}").into()),
            }
        };
        files.into_iter().map(read).collect()
    };
    import(&mut include).map_err(|error| not_one(&error))
}

/// Why a file is no configuration.
fn not_one(error: &ImportError) -> Failed {
    let place = format!("{}:{}", error.file, error.line);
    Failed {
        exit: Exit::Usage,
        problems: vec![Problem::new(&error.reason).about(&place)],
    }
}

fn print(text: &str) -> Result<(), Failed> {
    terminal::print(text).map_err(|error| Problem::caused_by(&error).could_not_run())
}

/// The files that a path with `*` and `?` stands for, in order.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let name = component.as_os_str().to_string_lossy();
        let is_pattern = matches!(component, Component::Normal(_)) && name.contains(['*', '?']);
        found = found
            .into_iter()
            .flat_map(|folder| {
                if !is_pattern {
                    return vec![folder.join(component)];
                }
                let here = if folder.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    &folder
                };
                let entries = fs::read_dir(here).into_iter().flatten().flatten();
                let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
                let matching = names.filter(|it| matches_pattern(name.as_bytes(), it.as_bytes()));
                matching.map(|name| folder.join(name)).collect()
            })
            .collect();
    }
    found.retain(|file| file.is_file());
    found.sort();
    found
}

/// Whether a name is what a pattern with `*` and `?` describes. Names that begin with a dot are described only by such.
fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    fn rest(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', after)), None) => rest(after, name),
            (Some((b'*', after)), Some((_, behind))) => rest(after, name) || rest(pattern, behind),
            (Some((b'?', after)), Some((_, behind))) => rest(after, behind),
            (Some((wanted, after)), Some((found, behind))) => {
                wanted == found && rest(after, behind)
            }
            _ => false,
        }
    }
    let is_hidden = name.starts_with(b".") && !pattern.starts_with(b".");
    !is_hidden && rest(pattern, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_describe_names() {
        for (pattern, name, expected) in [
            ("*.conf", "a.conf", true),
            ("*.conf", ".conf", false),
            ("*.conf", "a.conf.bak", false),
            ("*", "a", true),
            ("*", ".a", false),
            ("a?c*", "abcd", true),
            ("a?c", "ac", false),
        ] {
            let found = matches_pattern(pattern.as_bytes(), name.as_bytes());
            assert_eq!(found, expected, "{pattern} {name}");
        }
    }
}
