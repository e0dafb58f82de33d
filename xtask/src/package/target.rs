//! What programs are made for: the compiler, linker and emulator of each target.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cannot;
use crate::packages::{self, Package};
use crate::step;
use crate::{Failure, Outcome};

/// In all of them the C library is inside the programs. Of each processor the preferred one is first.
const ALL: [Target; 4] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        processor: X86_64,
    },
    Target {
        triple: "x86_64-unknown-linux-gnu",
        processor: X86_64,
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        processor: AARCH64,
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        processor: AARCH64,
    },
];

const X86_64: Processor = Processor {
    name: "x86_64",
    architecture: "amd64",
    binutils: "x86_64-linux-gnu-",
    compiler: Package {
        program: "x86_64-linux-gnu-gcc",
        name: "gcc-x86-64-linux-gnu libc6-dev-amd64-cross",
    },
    emulator: Package {
        program: "qemu-x86_64-static",
        name: "qemu-user-static",
    },
    musl_flags: &[],
};

const AARCH64: Processor = Processor {
    name: "aarch64",
    architecture: "arm64",
    binutils: "aarch64-linux-gnu-",
    compiler: Package {
        program: "aarch64-linux-gnu-gcc",
        name: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    },
    emulator: Package {
        program: "qemu-aarch64-static",
        name: "qemu-user-static",
    },
    // What picks them when a program starts calls glibc.
    musl_flags: &["-mno-outline-atomics"],
};

/// `strip` for this machine's processor.
const BINUTILS: Package = Package {
    program: "strip",
    name: "binutils",
};

/// Compiles C for musl, for the machine's own processor only.
const MUSL: Package = Package {
    program: "musl-gcc",
    name: "musl-tools",
};

/// A target that packages are made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) triple: &'static str,
    processor: Processor,
}

#[derive(Debug, Clone, Copy)]
struct Processor {
    /// As the kernel and Rust call it.
    name: &'static str,
    /// As Debian and the Open Container Initiative call it.
    architecture: &'static str,
    /// Of the names of its binary utilities on another machine.
    binutils: &'static str,
    /// Compiles C for it on another machine, with glibc's headers unless others are named.
    compiler: Package,
    /// Runs its programs on another machine.
    emulator: Package,
    /// What that compiler needs beside musl's headers.
    musl_flags: &'static [&'static str],
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
        let target = ALL.into_iter().find(|target| target.triple == triple);
        target
            .ok_or_else(|| format!("no packages are made for `{triple}`, but for `{known}`").into())
    }

    /// For each other target, how to have its packages made.
    pub(super) fn others() -> Vec<String> {
        let here = Self::here().map(|target| target.triple).ok();
        let triples = ALL.map(|target| target.triple).into_iter();
        triples
            .filter(|triple| Some(*triple) != here)
            .map(|triple| format!("{triple}: only with `--target {triple}`"))
            .collect()
    }

    /// The processor as Debian and the Open Container Initiative call it.
    pub(super) fn architecture(self) -> &'static str {
        self.processor.architecture
    }

    pub(super) fn is_here(self) -> bool {
        self.processor.name == std::env::consts::ARCH
    }

    pub(super) fn is_musl(self) -> bool {
        self.triple.ends_with("-musl")
    }

    /// Installs what makes and runs its programs.
    pub(super) fn prepare(self, root: &Path) -> Outcome {
        if !has_library(root, self.triple)? {
            let mut add = Command::new("rustup");
            step::run(root, add.args(["target", "add", self.triple]))?;
        }
        let Processor {
            compiler, emulator, ..
        } = self.processor;
        let needed = match (self.is_here(), self.is_musl()) {
            (true, true) => [BINUTILS, MUSL].to_vec(),
            (true, false) => [BINUTILS].to_vec(),
            (false, _) => [compiler, emulator].to_vec(),
        };
        packages::install(root, &needed)
    }

    /// How C is compiled where the usual compiler has the headers of another C library: with musl's of this processor, which
    /// lie in a package for it. The package is unpacked into `folder` and not installed.
    pub(super) fn c_compiler(
        self,
        root: &Path,
        folder: &Path,
    ) -> Result<Option<CrossCompiler>, Failure> {
        if self.is_here() || !self.is_musl() {
            return Ok(None);
        }
        let unpacked = folder.join(format!("musl-{}", self.architecture()));
        let headers = format!("usr/include/{}-linux-musl", self.processor.name);
        let headers = unpacked.join(headers);
        if !headers.is_dir() {
            fs::create_dir_all(&unpacked).map_err(|error| cannot("make", &unpacked, &error))?;
            self.unpack_musl(root, &unpacked).map_err(|Failure(message)| {
                let processor = self.processor.name;
                format!("{message}: musl's headers for {processor} cannot be had, but `--target {processor}-unknown-linux-gnu` needs none")
            })?;
        }
        let compiler = self.processor.compiler.program;
        let mut own = Command::new(compiler);
        let own = step::output(root, own.arg("-print-file-name=include"))?;
        let flags = ["-nostdinc", "-isystem", &headers.to_string_lossy()]
            .into_iter()
            .chain(["-isystem", own.trim()])
            .chain(self.processor.musl_flags.iter().copied())
            .map(str::to_owned)
            .collect();
        Ok(Some(CrossCompiler {
            compiler,
            archiver: format!("{}ar", self.processor.binutils),
            flags,
        }))
    }

    /// Unpacks the package with musl's headers.
    fn unpack_musl(self, root: &Path, unpacked: &Path) -> Outcome {
        let mut own = Command::new("dpkg");
        let own = step::output(root, own.arg("--print-architecture"))?;
        let apt = |words: &[&str]| {
            let mut apt = Command::new("apt-get");
            for architecture in [own.trim(), self.architecture()] {
                apt.args(["-o", &format!("APT::Architectures::={architecture}")]);
            }
            apt.args(words);
            apt
        };
        step::run(unpacked, &mut apt(&["update", "-q"]))?;
        let package = format!("musl-dev:{}", self.architecture());
        step::run(unpacked, &mut apt(&["download", "-q", &package]))?;
        let files = fs::read_dir(unpacked).map_err(|error| cannot("read", unpacked, &error))?;
        let package = files
            .filter_map(|file| Some(file.ok()?.path()))
            .find(|path| path.extension().is_some_and(|it| it == "deb"))
            .ok_or("apt-get has downloaded no package")?;
        let mut unpack = Command::new("dpkg-deb");
        step::run(unpacked, unpack.arg("-x").arg(package).arg(unpacked))
    }

    /// The linker, where it is not the usual one.
    pub(super) fn linker(self) -> Option<&'static str> {
        (!self.is_here()).then_some(self.processor.compiler.program)
    }

    /// What has rustc's own linker link: for this machine's processor with glibc, rustc uses it by itself.
    pub(super) fn linker_flags(self, root: &Path) -> Result<Vec<String>, Failure> {
        if self.is_here() && !self.is_musl() {
            return Ok(Vec::new());
        }
        let mut sysroot = Command::new("rustc");
        let sysroot = step::output(root, sysroot.args(["--print", "sysroot"]))?;
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let linker = Path::new(sysroot.trim())
            .join("lib/rustlib")
            .join(host)
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
            self.processor.binutils
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
        let name = self.processor.emulator.program;
        (!self.is_here()).then(|| packages::find(name, &[]).unwrap_or_else(|| name.into()))
    }
}

/// A compiler of C for another processor and another C library than it is made for.
#[derive(Debug)]
pub(super) struct CrossCompiler {
    pub(super) compiler: &'static str,
    pub(super) archiver: String,
    pub(super) flags: Vec<String>,
}

/// The targets of these names, each for another processor: packages of Debian and the image are named by it.
pub(super) fn for_each_processor(triples: &[String]) -> Result<Vec<Target>, Failure> {
    let mut targets: Vec<Target> = Vec::new();
    for triple in triples {
        let target = Target::named(triple)?;
        let architecture = target.architecture();
        if let Some(other) = targets.iter().find(|it| it.architecture() == architecture) {
            let other = other.triple;
            return Err(format!(
                "`{other}` and `{triple}` are for one processor: make their packages one after the other, with an --out of its own for each"
            )
            .into());
        }
        targets.push(target);
    }
    Ok(targets)
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
    fn packages_have_musl_inside_unless_another_target_is_named() {
        let here = Target::here().expect("packages are made for this processor");
        assert!(here.is_musl() && here.is_here(), "{here:?}");
        let others = Target::others();
        for target in ALL {
            let is_other = target.triple != here.triple;
            let line = format!("{0}: only with `--target {0}`", target.triple);
            assert_eq!(others.contains(&line), is_other, "{others:?}");
        }
    }

    #[test]
    fn two_targets_of_one_processor_are_refused() {
        let named = |triples: &[String]| for_each_processor(triples).map(|it| it.len());
        let both = [ALL[0].triple, ALL[2].triple].map(str::to_owned);
        assert_eq!(named(&both).ok(), Some(2));
        let processor = std::env::consts::ARCH;
        let twice = ["musl", "gnu"].map(|library| format!("{processor}-unknown-linux-{library}"));
        let Err(Failure(message)) = named(&twice) else {
            panic!("both are made");
        };
        assert!(message.contains("--out"), "{message}");
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
