//! `cargo xtask package`: what users install, and `--check`, which installs it.
//!
//! One static program goes into an archive with manual pages and completions, a package for Debian, and an image without
//! anything else in it, with their sums and a bill of materials. The same commit and toolchain give the same bytes: times are
//! those of the commit, owners are root, and paths of the machine are replaced.

mod archive;
mod bill;
mod check;
mod debian;
mod files;
mod image;
mod program;
mod speed;
mod sums;
mod target;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use self::program::Programs;
use self::target::Target;
use crate::bench::target_directory;
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

/// What is packaged
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Write the packages here [default: `packages` in the target directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Package `plimsoll` and `plimsoll-packed` of this folder instead of building them
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,

    /// Package for this target, repeatable for other processors [default: this machine's]
    #[arg(long, value_name = "TRIPLE")]
    target: Vec<String>,

    /// Then package again, run the program in an empty root, unpack the archive, install and remove the Debian package, and
    /// run the image
    #[arg(long)]
    check: bool,

    /// Compile everything again from nothing for the second packages, which have to have the same bytes
    #[arg(long, requires = "check", conflicts_with = "programs")]
    rebuild: bool,
}

/// What every package names itself by.
struct Release {
    /// Of the workspace.
    version: String,
    target: Target,
    /// When its commit was made, in seconds since 1970.
    epoch: u64,
    /// The commit.
    revision: String,
    repository: String,
}

impl Release {
    fn of_commit(root: &Path, target: Target) -> Result<Self, Failure> {
        let metadata = metadata(root, &["--no-deps"])?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let package = packages
            .into_iter()
            .find(|package| package["name"] == "plimsoll")
            .ok_or("the workspace has no package `plimsoll`")?;
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let git = |arguments: &[&str]| {
            let mut command = std::process::Command::new("git");
            step::output(root, command.args(arguments)).map(|text| text.trim().to_owned())
        };
        let epoch = git(&["log", "-1", "--format=%ct"])?;
        Ok(Self {
            version: text("version"),
            target,
            epoch: epoch
                .parse()
                .map_err(|_| format!("git has `{epoch}` as the time of the commit"))?,
            revision: git(&["rev-parse", "HEAD"])?,
            repository: text("repository"),
        })
    }

    /// `plimsoll-1.2.3-x86_64-unknown-linux-musl`
    fn name(&self) -> String {
        format!("plimsoll-{}-{}", self.version, self.target.triple)
    }
}

/// What packages of one target are made of.
struct Made {
    release: Release,
    programs: Programs,
}

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let target = target_directory(root)?;
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| target.join("packages"));
    fs::create_dir_all(&out).map_err(|error| cannot("make", &out, &error))?;
    // The checks run in folders of their own.
    let found = out.canonicalize();
    let out = found.map_err(|error| cannot("find", &out, &error))?;
    let (made, left_out) = made(root, &target, arguments)?;
    let packages = packages(root, &out, &made)?;
    sums::write(&out, &packages)?;
    println!();
    let programs = made
        .iter()
        .flat_map(|it| [&it.programs.plimsoll, &it.programs.packed]);
    for file in packages.iter().chain(programs) {
        println!("{:>8.1} MB  {}", megabytes(length(file)?), file.display());
    }
    for target in left_out {
        println!("   not made  {target}");
    }
    if arguments.check {
        let second = target.join(format!("packages-again-{}", std::process::id()));
        fs::create_dir_all(&second).map_err(|error| cannot("make", &second, &error))?;
        let made = if arguments.rebuild {
            for it in &made {
                let built = target.join(it.release.target.triple);
                fs::remove_dir_all(&built).map_err(|error| cannot("remove", &built, &error))?;
            }
            self::made(root, &target, arguments)?.0
        } else {
            made
        };
        let again = self::packages(root, &second, &made)?;
        let checked = check::run(root, &target, &made, &packages, &again);
        // A leftover lies in the target directory.
        fs::remove_dir_all(&second).ok();
        checked?;
    }
    Ok(())
}

/// The programs of each target, and a line for each target that is left out.
fn made(
    root: &Path,
    target_directory: &Path,
    arguments: &Arguments,
) -> Result<(Vec<Made>, Vec<String>), Failure> {
    let (targets, left_out) = if arguments.target.is_empty() {
        (vec![Target::here()?], Target::others())
    } else {
        (target::for_each_processor(&arguments.target)?, Vec::new())
    };
    if let Some(folder) = &arguments.programs {
        let [target] = targets[..] else {
            return Err("--programs has the programs of one target".into());
        };
        let release = Release::of_commit(root, target)?;
        let programs = Programs::existing(folder)?;
        return Ok((vec![Made { release, programs }], Vec::new()));
    }
    let mut made = Vec::new();
    for target in targets {
        let release = Release::of_commit(root, target)?;
        let programs = Programs::build(root, target_directory, &release)?;
        made.push(Made { release, programs });
    }
    Ok((made, left_out))
}

/// Writes every package into `out`: those of each target, and one image for all.
fn packages(root: &Path, out: &Path, made: &[Made]) -> Result<Vec<PathBuf>, Failure> {
    let mut packages = Vec::new();
    for Made { release, programs } in made {
        let staged = files::stage(root, &root.join(debian::STAGED), release.target, programs)?;
        packages.push(archive::write(out, release, &staged)?);
        packages.push(debian::write(root, out, release)?);
        packages.push(bill::write(root, out, release)?);
    }
    packages.push(image::write(out, made)?);
    Ok(packages)
}

/// Cargo's metadata of the workspace.
fn metadata(root: &Path, arguments: &[&str]) -> Result<Value, Failure> {
    let mut command = cargo(&["metadata", "--locked", "--format-version", "1"]);
    let text = step::output(root, command.args(arguments))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo's metadata: {error}").into())
}

/// Bytes of the file.
fn length(file: &Path) -> Result<u64, Failure> {
    let metadata = fs::metadata(file).map_err(|error| cannot("read", file, &error))?;
    Ok(metadata.len())
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    format!("cannot {verb} {}: {error}", path.display()).into()
}

#[cfg(test)]
mod tests;
