//! What programs are made for: the compiler, linker and emulator of each target.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{self, Package};
use crate::step;
use crate::{Failure, Outcome};

/// In all of them the C library of the system is put into the programs.
const ALL: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        architecture: "amd64",
        processor: "x86_64",
        tools: Tools {
            prefix: "x86_64-linux-gnu-",
            compiler: Package {
                program: "x86_64-linux-gnu-gcc",
                name: "gcc-x86-64-linux-gnu libc6-dev-amd64-cross",
            },
            emulator: Package {
                program: "qemu-x86_64-static",
                name: "qemu-user-static",
            },
        },
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        architecture: "arm64",
        processor: "aarch64",
        tools: Tools {
            prefix: "aarch64-linux-gnu-",
            compiler: Package {
                program: "aarch64-linux-gnu-gcc",
                name: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
            },
            emulator: Package {
                program: "qemu-aarch64-static",
                name: "qemu-user-static",
            },
        },
    },
];

/// Of this machine's own target.
const BINUTILS: Package = Package {
    program: "strip",
    name: "binutils",
};

/// A target that packages are made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) triple: &'static str,
    /// The processor as Debian and the Open Container Initiative call it.
    pub(super) architecture: &'static str,
    /// As the kernel calls it.
    processor: &'static str,
    /// What another machine needs to make and to run its programs.
    tools: Tools,
}

#[derive(Debug, Clone, Copy)]
struct Tools {
    /// Of the names of its binary utilities.
    prefix: &'static str,
    compiler: Package,
    emulator: Package,
}

impl Target {
    /// The target of this machine.
    pub(super) fn here() -> Result<Self, Failure> {
        let here = ALL.into_iter().find(|target| target.is_here());
        let processor = std::env::consts::ARCH;
        here.ok_or_else(|| format!("no packages are made for `{processor}`").into())
    }

    /// The one of that name.
    pub(super) fn named(triple: &str) -> Result<Self, Failure> {
        let known = ALL.map(|target| target.triple).join("`, `");
        ALL.into_iter()
            .find(|target| target.triple == triple)
            .ok_or_else(|| format!("no packages are made for `{triple}`, but for `{known}`").into())
    }

    /// For each target of another processor, how to have its packages made.
    pub(super) fn others() -> Vec<String> {
        let others = ALL.into_iter().filter(|target| !target.is_here());
        let triples = others.map(|target| target.triple);
        triples
            .map(|triple| format!("{triple}: only with `--target {triple}`"))
            .collect()
    }

    pub(super) fn is_here(self) -> bool {
        self.processor == std::env::consts::ARCH
    }

    /// Installs what makes and runs its programs.
    pub(super) fn prepare(self, root: &Path) -> Outcome {
        if !has_library(root, self.triple)? {
            let mut add = Command::new("rustup");
            step::run(root, add.args(["target", "add", self.triple]))?;
        }
        if self.is_here() {
            return packages::install(root, &[BINUTILS]);
        }
        packages::install(root, &[self.tools.compiler, self.tools.emulator])
    }

    /// The linker, where it is not the usual one.
    pub(super) fn linker(self) -> Option<&'static str> {
        (!self.is_here()).then_some(self.tools.compiler.program)
    }

    /// What has rustc's own linker link for another processor: where this is the machine's, rustc uses it by itself.
    pub(super) fn linker_flags(self, root: &Path) -> Result<Vec<String>, Failure> {
        if self.is_here() {
            return Ok(Vec::new());
        }
        let mut sysroot = Command::new("rustc");
        let sysroot = step::output(root, sysroot.args(["--print", "sysroot"]))?;
        let linker = Path::new(sysroot.trim())
            .join("lib/rustlib")
            .join(Self::here()?.triple)
            .join("bin/gcc-ld");
        Ok(vec![
            "-C".to_owned(),
            format!("link-arg=-B{}", linker.display()),
            "-C".to_owned(),
            "link-arg=-fuse-ld=lld".to_owned(),
        ])
    }

    /// The program that removes symbols.
    pub(super) fn strip(self) -> String {
        let prefix = if self.is_here() {
            ""
        } else {
            self.tools.prefix
        };
        format!("{prefix}strip")
    }

    /// A command that runs `program`, which may be for another processor.
    pub(super) fn command(self, program: &Path) -> Command {
        match self.emulator() {
            Some(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(program);
                command
            }
            None => Command::new(program),
        }
    }

    /// What runs its programs here, if the processor does not: a static program.
    pub(super) fn emulator(self) -> Option<PathBuf> {
        let name = self.tools.emulator.program;
        (!self.is_here()).then(|| packages::find(name, &[]).unwrap_or_else(|| name.into()))
    }
}

/// Whether the toolchain has the standard library for `target`.
fn has_library(root: &Path, target: &str) -> Result<bool, Failure> {
    let mut library = Command::new("rustc");
    library.args(["--print", "target-libdir", "--target", target]);
    let library = step::output(root, &mut library)?;
    Ok(Path::new(library.trim()).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_not_known_is_refused_with_those_that_are() {
        let Err(Failure(message)) = Target::named("riscv64gc-unknown-linux-gnu") else {
            panic!("it is known");
        };
        assert!(message.contains("aarch64-unknown-linux-gnu"), "{message}");
    }

    #[test]
    fn programs_for_another_processor_run_by_its_emulator() {
        for target in ALL {
            let program = target.command(Path::new("plimsoll"));
            let is_direct = program.get_program() == "plimsoll";
            assert_eq!(is_direct, target.is_here());
            assert_eq!(target.linker().is_none(), target.is_here());
        }
    }
}
