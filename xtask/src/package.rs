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
mod sums;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use self::program::Programs;
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

    /// Package for this target
    #[arg(long, value_name = "TRIPLE", default_value = program::TARGET)]
    target: String,

    /// Then run the program in an empty root, unpack the archive, install and remove the Debian package, and run the image
    #[arg(long)]
    check: bool,
}

/// What every package names itself by.
struct Release {
    /// Of the workspace.
    version: String,
    target: String,
    /// When its commit was made, in seconds since 1970.
    epoch: u64,
    /// The commit.
    revision: String,
    repository: String,
}

impl Release {
    fn of_commit(root: &Path, target: &str) -> Result<Self, Failure> {
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
            target: target.to_owned(),
            epoch: epoch
                .parse()
                .map_err(|_| format!("git has `{epoch}` as the time of the commit"))?,
            revision: git(&["rev-parse", "HEAD"])?,
            repository: text("repository"),
        })
    }

    /// `plimsoll-1.2.3-x86_64-unknown-linux-gnu`
    fn name(&self) -> String {
        format!("plimsoll-{}-{}", self.version, self.target)
    }

    /// The processor as Debian and the Open Container Initiative call it.
    fn architecture(&self) -> Result<&'static str, Failure> {
        match self.target.split('-').next() {
            Some("x86_64") => Ok("amd64"),
            Some("aarch64") => Ok("arm64"),
            _ => Err(format!("no packages are made for `{}`", self.target).into()),
        }
    }
}

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let release = Release::of_commit(root, &arguments.target)?;
    let target = target_directory(root)?;
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| target.join("packages"));
    fs::create_dir_all(&out).map_err(|error| cannot("make", &out, &error))?;
    let programs = match &arguments.programs {
        Some(folder) => Programs::existing(folder)?,
        None => Programs::build(root, &target, &release)?,
    };
    let staged = files::stage(root, &root.join(debian::STAGED), &programs)?;
    let bill = bill::write(root, &out, &release)?;
    let archive = archive::write(&out, &release, &staged)?;
    let debian = debian::write(root, &out, &release)?;
    let image = image::write(&out, &release, &programs)?;
    let packages = [archive, debian, image.archive.clone(), bill];
    sums::write(&out, &packages)?;
    println!();
    for file in packages
        .iter()
        .chain([&programs.plimsoll, &programs.packed])
    {
        println!("{:>8.1} MB  {}", megabytes(length(file)?), file.display());
    }
    if arguments.check {
        check::run(&target, &out, &release, &programs, &packages)?;
    }
    Ok(())
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
