//! `plimsoll pack`: a site within an executable.

use std::path::{Path, PathBuf};

use plimsoll_model::counted;
use plimsoll_site::pack::{PackError, PackOptions, extract, list, pack};
use plimsoll_site::{LinkPlace, load_links};

use crate::commands::serve::SiteArgs;
use crate::commands::serve::stand_in::StandIn;
use crate::commands::serving::Brought;
use crate::exit::Exit;
use crate::flags::{Preferred, ServingArgs, quoted_path};
use crate::own_file::own_file;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Pack a directory and a server for it into one executable
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory to pack; with --list or --extract, a packed site
    #[arg(value_name = "DIR|FILE")]
    place: PathBuf,

    /// Executable to write
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["list", "extract"])]
    output: Option<PathBuf>,

    /// Program to pack into [default: `plimsoll-packed` beside this program or in PATH, else this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// List the files of a packed site
    #[arg(long, conflicts_with_all = ["output", "program", "extract"])]
    list: bool,

    /// Extract the files of a packed site into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "program"])]
    extract: Option<PathBuf>,

    #[command(flatten)]
    site: SiteArgs,
}

/// Serves the site that this program carries.
///
/// SIGTERM and Ctrl-C stop listening and let open connections end; the second time they do not wait.
#[derive(Debug, clap::Args)]
pub(crate) struct PackedArgs {
    #[command(flatten)]
    serving: ServingArgs,
}

/// A program with its site.
#[derive(Debug)]
pub(crate) struct PackedSite {
    pub(crate) program: PathBuf,
    /// Keys of `files`, one a line.
    pub(crate) keys: String,
}

/// Serves what a program carries.
pub(crate) fn run_packed(args: &PackedArgs, packed: &PackedSite) -> Result<Exit, Failed> {
    let program = quoted_path(&packed.program);
    let route = |keys: &str| format!("[[route]]\n[route.files]\npack = {program}\n{keys}");
    let (keys, preferred) = match StandIn::of_environment()? {
        None => (packed.keys.clone(), Preferred::default()),
        Some(stand_in) => (stand_in.over(&packed.keys), stand_in.preferred()),
    };
    let brought = Brought::for_sites();
    args.serving
        .serve_preferring(&route(&keys), &preferred, brought)
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    if args.list {
        let files = list(&args.place).map_err(|error| pack_failed(&error))?;
        let lines = files.iter().map(|file| {
            let copies = file.copies.iter();
            let copies = copies.map(|(coding, length)| format!("  {coding} {length}"));
            let copies: Vec<_> = copies.collect();
            format!("{:>12}  {}{}\n", file.length, file.path, copies.concat())
        });
        return print(&lines.collect::<Vec<_>>().concat());
    }
    if let Some(directory) = &args.extract {
        let files = extract(&args.place, directory).map_err(|error| pack_failed(&error))?;
        return print(&format!(
            "wrote {} to {}",
            counted(files as u64, "file"),
            directory.display()
        ));
    }
    let Some(output) = &args.output else {
        return Err(Problem::with("--output", "says what is to be written").usage());
    };
    args.site.check()?;
    let (urls, links) = links(args.site.redirects())?;
    let (program, is_small) = program(args.program.as_deref())?;
    let options = PackOptions {
        directory: args.place.clone(),
        program,
        output: output.clone(),
        keys: args.site.keys(&urls).join("\n") + "\n",
        links,
        hidden: args.site.hidden(),
    };
    let packed = pack(&options).map_err(|error| pack_failed(&error))?;
    terminal::print_warnings(&doubts(is_small, packed.is_dynamic));
    let copies = match packed.copies {
        1 => "1 compressed copy".to_owned(),
        copies => format!("{copies} compressed copies"),
    };
    print(&format!(
        "{}: {} and {copies}, {} bytes and a program of {}",
        output.display(),
        counted(packed.files as u64, "file"),
        packed.bytes - packed.program_bytes,
        packed.program_bytes
    ))
}

/// The lists that stay where they are, and the lines of those that are packed.
fn links(places: &[String]) -> Result<(Vec<String>, String), Failed> {
    let (mut urls, mut lines) = (Vec::new(), String::new());
    for place in places {
        if place.starts_with("http://") || place.starts_with("https://") {
            urls.push(place.clone());
            continue;
        }
        let parsed = load_links(&LinkPlace::File(PathBuf::from(place)))
            .map_err(|reason| Problem::with("--redirects", format!("{place}: {reason}")).usage())?;
        for remark in &parsed.remarks {
            let message = format!("{place}{}: {}", remark.place, remark.message);
            terminal::print_warnings(&[Problem::new(message)]);
        }
        for alias in parsed.entries {
            lines.extend([alias.name.as_str(), " ", &alias.url, "\n"]);
        }
    }
    Ok((urls, lines))
}

/// What a packed site is larger or less portable for than it need be.
fn doubts(is_small: bool, is_dynamic: bool) -> Vec<Problem> {
    let mut doubts = Vec::new();
    if !is_small {
        let message = format!("all of plimsoll is packed with the site, since there is no {SMALL}");
        doubts.push(Problem::new(message).hint(
            "`cargo build --profile packed -p plimsoll-packed` makes one of 10 MB; put it beside this program, or give it as --program",
        ));
    }
    if is_dynamic {
        let message = "the program needs libraries of the system: it does not run in an empty root";
        doubts.push(Problem::new(message).hint(
            "give `plimsoll-packed` of the packages as --program; docs/install.md has them, and `cargo xtask package` makes them",
        ));
    }
    doubts
}

/// The program that only serves what follows it.
const SMALL: &str = "plimsoll-packed";

/// The program that a site is packed into, and whether it is the small program or a given one.
fn program(given: Option<&Path>) -> Result<(PathBuf, bool), Failed> {
    if let Some(given) = given {
        return Ok((given.to_owned(), true));
    }
    let own = own_file().map_err(|error| {
        Problem::new(format!("cannot find this program's own file: {error}")).could_not_run()
    })?;
    let beside = own.parent().into_iter().flat_map(|folder| {
        let folders = [".", "../libexec/plimsoll", "../lib/plimsoll"];
        folders.map(|name| folder.join(name).join(SMALL))
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path: Vec<_> = std::env::split_paths(&path)
        .map(|it| it.join(SMALL))
        .collect();
    let small = beside.chain(in_path).find(|it| it.is_file());
    let is_small = small.is_some();
    Ok((small.unwrap_or(own), is_small))
}

fn pack_failed(error: &PackError) -> Failed {
    let problem = Problem::caused_by(error);
    match error {
        PackError::NoPayload(_) | PackError::Occupied(_) | PackError::Name(_) => problem.usage(),
        _ => problem.could_not_run(),
    }
}

fn print(text: &str) -> Result<Exit, Failed> {
    terminal::print(text.trim_end()).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}
