//! What fuzzing has found: a folder of inputs for each target, and the archive from which another machine begins.
//!
//! The inputs of all targets together are tens of thousands of small files. Git would keep each by itself, so the repository has one
//! archive per target, `fuzz/corpus/TARGET.tar.zst`, and ignores the folders beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{self, ZSTD};
use crate::step;
use crate::{Failure, Outcome};

/// The same inputs make the same archive, byte by byte: nothing of the machine or of the time is in it.
const REPRODUCIBLE: [&str; 7] = [
    "--sort=name",
    "--mtime=@0",
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    "--mode=u=rw,go=r",
    "--format=ustar",
];

/// Inputs resemble each other across the whole archive, so a window of 128 MiB and the highest level halve what gzip leaves.
const COMPRESS: &str = "--use-compress-program=zstd -19 --long=27";
const DECOMPRESS: &str = "--use-compress-program=zstd --long=27";

/// The folder of a target's inputs.
pub(super) fn folder(fuzz: &Path, target: &str) -> PathBuf {
    fuzz.join("corpus").join(target)
}

fn archive(fuzz: &Path, target: &str) -> PathBuf {
    fuzz.join("corpus").join(format!("{target}.tar.zst"))
}

/// Installs what archives need.
pub(super) fn install(root: &Path) -> Outcome {
    packages::install(root, &[ZSTD])
}

/// Fills the folder of a target from its archive, unless the folder has inputs already: those are younger.
pub(super) fn unpack(fuzz: &Path, target: &str) -> Outcome {
    let (folder, archive) = (folder(fuzz, target), archive(fuzz, target));
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let filled = fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    if filled || !archive.is_file() {
        return Ok(());
    }
    // Beside it first: a part of the inputs would pass for all of them.
    let partial = folder.with_extension("unpacked");
    fs::remove_dir_all(&partial).ok();
    fs::create_dir_all(&partial).map_err(|error| error.to_string())?;
    let mut tar = Command::new("tar");
    tar.arg(DECOMPRESS).arg("--extract");
    tar.arg("--file").arg(&archive);
    tar.arg("--directory").arg(&partial);
    step::output(fuzz, &mut tar)?;
    fs::rename(&partial, &folder).map_err(|error| format!("{}: {error}", folder.display()).into())
}

/// Puts `minimised` in the place of the target's folder, and packs it.
pub(super) fn replace(fuzz: &Path, target: &str, minimised: &Path) -> Outcome {
    let folder = folder(fuzz, target);
    let failed = |error: std::io::Error| Failure(format!("{}: {error}", folder.display()));
    let old = minimised.with_extension("old");
    fs::rename(&folder, &old).map_err(failed)?;
    fs::rename(minimised, &folder).map_err(failed)?;
    fs::remove_dir_all(&old).map_err(failed)?;
    pack(fuzz, target)
}

fn pack(fuzz: &Path, target: &str) -> Outcome {
    let archive = archive(fuzz, target);
    // Beside it first: a pack that is interrupted leaves the old one whole.
    let partial = archive.with_extension("partial");
    let mut tar = Command::new("tar");
    tar.args(REPRODUCIBLE).arg(COMPRESS).arg("--create");
    tar.arg("--file").arg(&partial);
    tar.arg("--directory").arg(folder(fuzz, target)).arg(".");
    step::output(fuzz, &mut tar)?;
    fs::rename(&partial, &archive).map_err(|error| format!("{}: {error}", archive.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let mut inputs: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read(entry.path()).unwrap())
            })
            .collect();
        inputs.sort();
        inputs
    }

    #[test]
    fn what_was_packed_is_unpacked_elsewhere_and_kept_where_inputs_are() {
        let made = tempfile::tempdir().unwrap();
        let (here, there) = (made.path().join("here"), made.path().join("there"));
        let minimised = made.path().join("here/minimised");
        fs::create_dir_all(&minimised).unwrap();
        fs::create_dir_all(folder(&here, "texts")).unwrap();
        fs::write(folder(&here, "texts").join("old"), "covers nothing").unwrap();
        fs::write(minimised.join("a"), [0, 255]).unwrap();
        fs::write(minimised.join("b"), "").unwrap();
        replace(&here, "texts", &minimised).unwrap();
        let expected = [("a".to_owned(), vec![0, 255]), ("b".to_owned(), vec![])];
        assert_eq!(inputs(&folder(&here, "texts")), expected);

        fs::create_dir_all(there.join("corpus")).unwrap();
        fs::copy(archive(&here, "texts"), archive(&there, "texts")).unwrap();
        unpack(&there, "texts").unwrap();
        assert_eq!(inputs(&folder(&there, "texts")), expected);

        fs::write(folder(&there, "texts").join("a"), "younger").unwrap();
        unpack(&there, "texts").unwrap();
        assert_eq!(inputs(&folder(&there, "texts"))[0].1, b"younger");

        let first = fs::read(archive(&here, "texts")).unwrap();
        pack(&here, "texts").unwrap();
        assert_eq!(fs::read(archive(&here, "texts")).unwrap(), first);
    }
}
