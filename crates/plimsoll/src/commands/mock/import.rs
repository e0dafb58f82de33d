//! `plimsoll mock import`: files of other mock servers as rules.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_mock::import::{self, FileRemark, ForeignKind, Imported};

use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Convert files of another mock server to a rule file and report what cannot be converted
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// WireMock mappings, an OpenAPI document, a HAR file, a Mockoon environment, a Postman collection or a db.json
    #[arg(value_name = "FILE or DIR")]
    what: PathBuf,

    /// Write the rules to this file, which must not exist [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let imported = read(&args.what)?;
    terminal::print_notes(&notes(&imported));
    let Some(out) = &args.out else {
        let text = imported.text(imported.directory());
        print(text.trim_end())?;
        return Ok(Exit::Fine);
    };
    let cannot = |error: std::io::Error| {
        let hint = "give another name, or take the file away";
        Problem::new(format!("cannot write {}: {error}", out.display()))
            .hint(hint)
            .could_not_run()
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(out)
        .map_err(cannot)?;
    let respond_dir = imported.directory().and_then(|it| seen_from(out, it));
    let text = imported.text(respond_dir.as_deref());
    file.write_all(text.as_bytes()).map_err(cannot)?;
    let what = match imported.kind {
        ForeignKind::OpenApi => "operation",
        ForeignKind::JsonServer => "collection",
        _ => "rule",
    };
    let rules = match imported.rules {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let kind = imported.kind.name();
    let out = out.display();
    print(&format!(
        "wrote {rules} of {kind} to {out}; serve them with `plimsoll mock {out}`"
    ))?;
    Ok(Exit::Fine)
}

fn print(text: &str) -> Result<(), Failed> {
    terminal::print(text).map_err(|error| Problem::caused_by(&error).could_not_run())
}

/// Reads a foreign file, telling what is wrong with it.
pub(super) fn read(path: &Path) -> Result<Imported, Failed> {
    import::read(path).map_err(|remarks| Failed {
        exit: Exit::Usage,
        problems: remarks.iter().map(shown).collect(),
    })
}

/// Parts of the file that the rules do not carry.
pub(super) fn notes(imported: &Imported) -> Vec<Problem> {
    imported.left_out.iter().map(shown).collect()
}

fn shown(found: &FileRemark) -> Problem {
    let FileRemark { file, remark } = found;
    let place = format!("{}{}", file.display(), remark.place);
    let problem = Problem::new(&remark.message).about(&place);
    match &remark.hint {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

/// A folder as the file `out` names it; absent if it is the folder of that file.
fn seen_from(out: &Path, folder: &Path) -> Option<PathBuf> {
    let parent = out.parent().filter(|it| !it.as_os_str().is_empty());
    let here = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
    let Ok(there) = folder.canonicalize() else {
        return Some(folder.to_owned());
    };
    let common = here
        .components()
        .zip(there.components())
        .take_while(|(one, other)| one == other)
        .count();
    let up = here.components().skip(common).map(|_| "..");
    let mut path: PathBuf = up.collect();
    path.extend(there.components().skip(common));
    Some(path).filter(|path| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_the_file_sees_them() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let bodies = folder.path().join("a/__files");
        std::fs::create_dir_all(&bodies).expect("folders can be made");
        std::fs::create_dir_all(folder.path().join("b")).expect("folders can be made");
        for (out, expected) in [
            ("b/rules.toml", Some("../a/__files")),
            ("a/rules.toml", Some("__files")),
            ("a/__files/rules.toml", None),
        ] {
            let seen = seen_from(&folder.path().join(out), &bodies);
            assert_eq!(seen.as_deref(), expected.map(Path::new), "{out}");
        }
    }
}
