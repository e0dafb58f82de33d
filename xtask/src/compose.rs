//! `packaging/compose/compose.yaml`: its services that run plimsoll, on free ports of the loopback instead of a network of
//! containers. `deploy` starts them as processes, `package --check` as containers of the image.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::{Captures, Regex};
use serde::Deserialize;

use crate::packages::{self, CURL};
use crate::server::wait_for;
use crate::step;
use crate::{Failure, Outcome};

/// Where the file and what it mounts lie, below the root of the repository.
const FOLDER: &str = "packaging/compose";

/// How many ports the services may have: a few for each of four.
const MOST_PORTS: usize = 16;

/// The file, as far as services of this program need it.
#[derive(Debug, Deserialize)]
struct File {
    services: BTreeMap<String, Described>,
}

#[derive(Debug, Deserialize)]
struct Described {
    image: String,
    user: Option<String>,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    cap_drop: Vec<String>,
    #[serde(default)]
    security_opt: Vec<String>,
    #[serde(default)]
    profiles: Vec<String>,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    volumes: Vec<String>,
}

/// A service that runs plimsoll.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: String,
    /// The command that follows the program.
    pub(crate) command: Vec<String>,
    /// Files and folders of this machine, and where the service finds them.
    pub(crate) mounts: Vec<Mount>,
    /// Where it takes requests, on the loopback.
    pub(crate) port: u16,
}

/// Something of this machine in a container, to be read.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) source: PathBuf,
    pub(crate) target: String,
}

impl Service {
    /// The command outside of a container: mounted files are where they lie.
    pub(crate) fn local_command(&self) -> Vec<String> {
        let local = |word: &String| {
            let mount = self.mounts.iter().find(|mount| mount.target == *word);
            mount.map_or_else(|| word.clone(), |mount| mount.source.display().to_string())
        };
        self.command.iter().map(local).collect()
    }
}

/// What the file describes.
#[derive(Debug)]
pub(crate) struct Composition {
    /// Servers that start without a profile, by name: `gateway`, `mock`, `monitor`, `site`.
    pub(crate) servers: Vec<Service>,
    /// The command of the profile `loadtest`.
    pub(crate) load_test: Vec<String>,
}

/// Reads the file, and writes what it mounts into `directory`, with other addresses.
///
/// # Errors
///
/// If a service of this program lacks a restriction that all of them have, names another version than this one, mounts what is not
/// there, or listens nowhere.
pub(crate) fn read(root: &Path, directory: &Path) -> Result<Composition, Failure> {
    let folder = root.join(FOLDER);
    let described = described(&folder.join("compose.yaml"))?;
    for (name, service) in &described {
        if let Some(missing) = missing(service) {
            return Err(format!("compose.yaml: the service `{name}` {missing}").into());
        }
    }
    let (profiled, servers): (Vec<_>, Vec<_>) = described
        .into_iter()
        .partition(|(_, service)| !service.profiles.is_empty());
    let load_test = profiled
        .into_iter()
        .find(|(name, _)| name == "loadtest")
        .map(|(_, service)| service.command)
        .ok_or("compose.yaml has no service `loadtest`")?;
    let mut addresses = Addresses::new(servers.iter().map(|(name, _)| name.as_str()))?;
    let mut placed = Vec::new();
    for (name, service) in servers {
        placed.push(place(&folder, directory, name, &service, &mut addresses)?);
    }
    Ok(Composition {
        servers: placed,
        load_test,
    })
}

/// Services of this program's image.
fn described(path: &Path) -> Result<Vec<(String, Described)>, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let file: File =
        serde_saphyr::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let ours = file.services.into_iter();
    let ours = ours.filter(|(_, service)| service.image.contains("/plimsoll:"));
    Ok(ours.collect())
}

/// What `service` lacks of that which docs/install.md says of all.
fn missing(service: &Described) -> Option<String> {
    let version = env!("CARGO_PKG_VERSION");
    if !service.image.ends_with(&format!(":{version}}}")) {
        Some(format!(
            "has the image {}, and this version is {version}",
            service.image
        ))
    } else if service.user.as_deref() != Some("65532:65532") {
        Some("does not run as user 65532".to_owned())
    } else if !service.read_only {
        Some("has a root that can be written".to_owned())
    } else if service.cap_drop != ["ALL"] {
        Some("keeps capabilities".to_owned())
    } else if service.security_opt != ["no-new-privileges:true"] {
        Some("may gain privileges".to_owned())
    } else {
        None
    }
}

/// The service with mounts from `directory` and addresses of the loopback.
fn place(
    folder: &Path,
    directory: &Path,
    name: String,
    described: &Described,
    addresses: &mut Addresses,
) -> Result<Service, Failure> {
    let mut port = None;
    let mut replaced = |text: &str, addresses: &mut Addresses| {
        let (text, first) = addresses.replace(&name, text)?;
        port = port.or(first);
        Ok::<_, Failure>(text)
    };
    let mut command = Vec::new();
    for word in &described.command {
        command.push(replaced(word, addresses)?);
    }
    let mut mounts = Vec::new();
    for volume in &described.volumes {
        let parts: Vec<&str> = volume.split(':').collect();
        let [source, target, "ro"] = parts[..] else {
            return Err(
                format!("compose.yaml: `{volume}` of `{name}` is not SOURCE:TARGET:ro").into(),
            );
        };
        let mut source = folder.join(source);
        if source.is_file() {
            let text = fs::read_to_string(&source)
                .map_err(|error| format!("cannot read {}: {error}", source.display()))?;
            let file = directory.join(format!("compose-{name}.toml"));
            fs::write(&file, replaced(&text, addresses)?)
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
            source = file;
        } else if !source.is_dir() {
            return Err(
                format!("compose.yaml: `{name}` mounts {volume}, and that is not there").into(),
            );
        }
        let target = target.to_owned();
        mounts.push(Mount { source, target });
    }
    let port = port.ok_or_else(|| format!("compose.yaml: `{name}` listens nowhere"))?;
    Ok(Service {
        name,
        command,
        mounts,
        port,
    })
}

/// Ports of this machine in the place of those in containers.
#[derive(Debug)]
struct Addresses {
    /// `0.0.0.0` or the name of a service, and a port.
    written: Regex,
    /// By service and port.
    given: BTreeMap<(String, String), u16>,
    free: Vec<u16>,
}

impl Addresses {
    fn new<'a>(services: impl Iterator<Item = &'a str>) -> Result<Self, Failure> {
        let names: Vec<&str> = services.collect();
        let written = format!(r"\b(0\.0\.0\.0|{}):([0-9]+)\b", names.join("|"));
        Ok(Self {
            written: Regex::new(&written).map_err(|error| error.to_string())?,
            given: BTreeMap::new(),
            free: crate::bench::free_ports::<MOST_PORTS>()?.to_vec(),
        })
    }

    /// `text` of `service` with other addresses, and the first port that it listens on.
    fn replace(&mut self, service: &str, text: &str) -> Result<(String, Option<u16>), Failure> {
        let mut first = None;
        let mut short = false;
        let written = self.written.clone();
        let text = written.replace_all(text, |found: &Captures<'_>| {
            let (host, port) = (&found[1], &found[2]);
            let listens = host == "0.0.0.0";
            let host = if listens { service } else { host };
            let known = self.given.entry((host.to_owned(), port.to_owned()));
            let port = *known.or_insert_with(|| {
                let free = self.free.pop();
                short |= free.is_none();
                free.unwrap_or_default()
            });
            if listens {
                first = first.or(Some(port));
            }
            format!("127.0.0.1:{port}")
        });
        if short {
            return Err(format!("compose.yaml: there are more than {MOST_PORTS} ports").into());
        }
        Ok((text.into_owned(), first))
    }
}

/// Waits until all servers listen, and requests what the file promises: the site and the mock through the gateway, and the
/// monitor's page of them.
pub(crate) fn expect_answers(root: &Path, composition: &Composition) -> Outcome {
    const EXPECTED: [(&str, &str, &str); 3] = [
        ("gateway", "/", "<title>plimsoll</title>"),
        ("gateway", "/api/hello", "\"hello\""),
        ("monitor", "/status/status", "gateway"),
    ];

    packages::install(root, &[CURL])?;
    for service in &composition.servers {
        wait_for(service.port).map_err(|Failure(error)| format!("{}: {error}", service.name))?;
    }
    for (service, path, expected) in EXPECTED {
        let port = composition
            .servers
            .iter()
            .find(|known| known.name == service)
            .map(|service| service.port)
            .ok_or_else(|| format!("compose.yaml has no service `{service}`"))?;
        let mut curl = std::process::Command::new("curl");
        curl.args(["-sSL", "--fail", "--retry", "5", "--retry-all-errors"]);
        let url = format!("http://127.0.0.1:{port}{path}");
        let content = step::output(root, curl.arg(url))?;
        if !content.contains(expected) {
            return Err(
                format!("compose: {path} of {service} has no {expected}: {content}").into(),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_ports_of_its_own_and_is_found_by_others() {
        let mut addresses = Addresses::new(["site", "mock"].into_iter()).unwrap();
        let (site, first) = addresses
            .replace("site", "0.0.0.0:8080 0.0.0.0:9090")
            .unwrap();
        let (mock, _) = addresses.replace("mock", "0.0.0.0:8080").unwrap();
        let (gateway, listens) = addresses
            .replace("gateway", "http://site:8080/ http://mock:8080 website:80")
            .unwrap();
        let ports: Vec<&str> = site.split(' ').collect();
        assert_eq!(ports[0], format!("127.0.0.1:{}", first.unwrap()));
        assert_ne!(ports[0], ports[1]);
        assert_ne!(ports[0], mock);
        assert_eq!(
            gateway,
            format!("http://{}/ http://{mock} website:80", ports[0])
        );
        assert_eq!(listens, None);
    }

    #[test]
    fn the_file_is_as_the_documentation_says() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let composition = read(root, directory.path()).unwrap();
        let names: Vec<&str> = composition
            .servers
            .iter()
            .map(|service| service.name.as_str())
            .collect();
        assert_eq!(names, ["gateway", "mock", "monitor", "site"]);
        assert_eq!(composition.load_test[0], "loadtest");
        let gateway = &composition.servers[0];
        let file = fs::read_to_string(&gateway.mounts[0].source).unwrap();
        assert!(
            !file.contains("site:8080") && file.contains("127.0.0.1:"),
            "{file}"
        );
        assert_eq!(
            gateway.local_command()[1],
            gateway.mounts[0].source.display().to_string()
        );
    }
}
