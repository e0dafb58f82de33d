//! Programs that tests and benchmarks need, and the Debian packages that hold them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step;
use crate::{Failure, Outcome};

/// A program and the package that brings it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Package {
    /// A program, or the path of another file, that is there once it is installed.
    pub(crate) program: &'static str,
    /// Its name, or those of several.
    pub(crate) name: &'static str,
}

pub(crate) const NGINX: Package = Package {
    program: "nginx",
    name: "nginx-light",
};

/// Forwards TCP and UDP.
pub(crate) const NGINX_STREAM: Package = Package {
    program: "/usr/lib/nginx/modules/ngx_stream_module.so",
    name: "libnginx-mod-stream",
};

pub(crate) const CHROMIUM: Package = Package {
    program: "chromium",
    name: "chromium",
};

pub(crate) const WRK: Package = Package {
    program: "wrk",
    name: "wrk",
};

pub(crate) const H2LOAD: Package = Package {
    program: "h2load",
    name: "nghttp2-client",
};

pub(crate) const OPENSSL: Package = Package {
    program: "openssl",
    name: "openssl",
};

pub(crate) const NGHTTPD: Package = Package {
    program: "nghttpd",
    name: "nghttp2-server",
};

pub(crate) const CADDY: Package = Package {
    program: "caddy",
    name: "caddy",
};

pub(crate) const APACHE: Package = Package {
    program: "apache2",
    name: "apache2-bin",
};

pub(crate) const PEBBLE: Package = Package {
    program: "pebble",
    name: "pebble",
};

pub(crate) const NGTCP2: Package = Package {
    program: "gtlsclient",
    name: "ngtcp2-client",
};

pub(crate) const HAPROXY: Package = Package {
    program: "haproxy",
    name: "haproxy",
};

pub(crate) const GIT: Package = Package {
    program: "git",
    name: "git",
};

pub(crate) const PGREP: Package = Package {
    program: "pgrep",
    name: "procps",
};

pub(crate) const CURL: Package = Package {
    program: "curl",
    name: "curl",
};

pub(crate) const STRACE: Package = Package {
    program: "strace",
    name: "strace",
};

/// Tests at another time of the day or the year.
pub(crate) const FAKETIME: Package = Package {
    program: "faketime",
    name: "faketime",
};

pub(crate) const PYTHON: Package = Package {
    program: "python3",
    name: "python3-minimal",
};

/// What fuzzing found is packed by it.
pub(crate) const ZSTD: Package = Package {
    program: "zstd",
    name: "zstd",
};

pub(crate) const NPM: Package = Package {
    program: "npm",
    name: "npm",
};

/// Prometheus and promtool.
pub(crate) const PROMETHEUS: Package = Package {
    program: "prometheus",
    name: "prometheus",
};

/// `systemd-analyze`.
pub(crate) const SYSTEMD: Package = Package {
    program: "systemd-analyze",
    name: "systemd",
};

/// PHP behind FastCGI.
pub(crate) const PHP: Package = Package {
    program: "php-cgi",
    name: "php-cgi",
};

/// Python behind uwsgi.
pub(crate) const UWSGI: Package = Package {
    program: "uwsgi-core",
    name: "uwsgi-core uwsgi-plugin-python3",
};

/// Counts instructions.
pub(crate) const VALGRIND: Package = Package {
    program: "valgrind",
    name: "valgrind",
};

/// Installs the packages whose programs are missing; does nothing if all are there.
pub(crate) fn install(root: &Path, packages: &[Package]) -> Outcome {
    let missing: Vec<Package> = packages
        .iter()
        .filter(|package| find(package.program, &[]).is_none())
        .copied()
        .collect();
    install_always(root, &missing)
}

/// Installs packages, whether or not their programs are there.
pub(crate) fn install_always(root: &Path, packages: &[Package]) -> Outcome {
    let names = packages.iter().flat_map(|it| it.name.split_whitespace());
    let missing: Vec<&str> = names.collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("missing: {}", missing.join(", "));
    if !is_root(root)? || find("apt-get", &[]).is_none() {
        return Err(format!(
            "install these packages, or run this as root on Debian or Ubuntu: {}",
            missing.join(" ")
        )
        .into());
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    step::run(root, &mut apt(&["update", "-q"]))?;
    let mut install = apt(&["install", "-q", "-y", "--no-install-recommends"]);
    step::run(root, install.args(missing))
}

/// Where `program` lies: in one of `first`, on the search path, or among the system's own.
pub(crate) fn find(program: &str, first: &[PathBuf]) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path);
    // nginx and haproxy are there, and users who are not root often lack it.
    let system = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    first
        .iter()
        .cloned()
        .chain(on_path)
        .chain(system)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

fn is_root(root: &Path) -> Result<bool, Failure> {
    Ok(step::output(root, Command::new("id").arg("-u"))?.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(find("sh", &[]).is_some());
        assert!(find("/bin/sh", &[]).is_some());
        assert!(find("no-such-program-4711", &[]).is_none());
    }
}
