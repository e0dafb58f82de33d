//! The image: an OCI image layout, for each processor of one layer with the program, roots of certificates, and a user without rights.
//!
//! Source: OCI image format 1.1, `image-layout.md`, `manifest.md`, `config.md`, `layer.md`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};

use super::archive::Tarball;
use super::program::Programs;
use super::sums::hex;
use super::{Made, Release, cannot};
use crate::{Failure, Outcome};

/// The user of the image, `nonroot` as in distroless images.
const USER: u32 = 65532;

/// Where Debian's package `ca-certificates` has the roots, and where programs look for them.
const ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Writes `plimsoll-VERSION.oci.tar`, as `podman pull oci-archive:FILE` and `skopeo copy --all` read it: one image whose
/// index has a manifest for each processor.
pub(super) fn write(out: &Path, made: &[Made]) -> Result<PathBuf, Failure> {
    let first = &made.first().ok_or("no programs were made")?.release;
    let archive = out.join(name(first));
    let mut blobs = Blobs::default();
    let mut manifests = Vec::new();
    for Made { release, programs } in made {
        let layer = layer(release, programs)?;
        let layer_descriptor = blobs.add(LAYER, layer.compressed);
        let config = config(release, &layer.digest)?;
        let config_descriptor = blobs.add(CONFIG, text(&config)?);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config_descriptor,
            "layers": [layer_descriptor],
            "annotations": labels(release),
        });
        let mut descriptor = blobs.add(MANIFEST, text(&manifest)?);
        descriptor["platform"] = platform(release);
        manifests.push(descriptor);
    }
    let index = |manifests: &[Value]| {
        text(&json!({
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": manifests,
        }))
    };
    let mut image = blobs.add(INDEX, index(&manifests)?);
    image["annotations"] =
        json!({"org.opencontainers.image.ref.name": format!("plimsoll:{}", first.version)});
    let mut tar = Tarball::new(Vec::new(), first.epoch);
    tar.content(
        br#"{"imageLayoutVersion":"1.0.0"}"#,
        Path::new("oci-layout"),
        0o644,
    )?;
    tar.content(&index(&[image])?, Path::new("index.json"), 0o644)?;
    blobs.write(&mut tar)?;
    fs::write(&archive, tar.finish()?).map_err(|error| cannot("write", &archive, &error))?;
    Ok(archive)
}

/// `plimsoll-1.2.3.oci.tar`
pub(super) fn name(release: &Release) -> String {
    format!("plimsoll-{}.oci.tar", release.version)
}

/// The contents of an image, by their sums.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Its descriptor.
    fn add(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let digest = hex(&content);
        let descriptor = json!({
            "mediaType": media_type,
            "digest": format!("sha256:{digest}"),
            "size": content.len(),
        });
        self.0.insert(digest, content);
        descriptor
    }

    fn write(&self, tar: &mut Tarball<Vec<u8>>) -> Outcome {
        for folder in ["blobs", "blobs/sha256"] {
            tar.folder(Path::new(folder), 0o755)?;
        }
        for (digest, content) in &self.0 {
            tar.content(content, &Path::new("blobs/sha256").join(digest), 0o644)?;
        }
        Ok(())
    }
}

struct Layer {
    compressed: Vec<u8>,
    /// Of the tar file before it is compressed.
    digest: String,
}

fn layer(release: &Release, programs: &Programs) -> Result<Layer, Failure> {
    let mut tar = Tarball::new(Vec::new(), release.epoch);
    for (folder, mode) in [
        ("etc", 0o755),
        ("etc/ssl", 0o755),
        ("etc/ssl/certs", 0o755),
        ("tmp", 0o1777),
        ("usr", 0o755),
        ("usr/bin", 0o755),
    ] {
        tar.folder(Path::new(folder), mode)?;
    }
    let entry = |name: &str, place: &str| format!("{name}:x:{USER}:{USER}:{name}:{place}\n");
    let users = format!(
        "root:x:0:0:root:/:/sbin/nologin\n{}",
        entry("nonroot", "/:/sbin/nologin")
    );
    let groups = format!("root:x:0:\nnonroot:x:{USER}:\n");
    tar.content(users.as_bytes(), Path::new("etc/passwd"), 0o644)?;
    tar.content(groups.as_bytes(), Path::new("etc/group"), 0o644)?;
    roots(&mut tar)?;
    tar.file(&programs.plimsoll, Path::new("usr/bin/plimsoll"))?;
    let tar = tar.finish()?;
    let digest = hex(&tar);
    let mut compressed = GzBuilder::new().write(Vec::new(), Compression::best());
    let compressed = compressed
        .write_all(&tar)
        .and_then(|()| compressed.finish())
        .map_err(|error| format!("cannot compress the layer: {error}"))?;
    Ok(Layer { compressed, digest })
}

fn roots(tar: &mut Tarball<Vec<u8>>) -> Outcome {
    let file = Path::new(ROOTS);
    let content = fs::read(file).map_err(|error| {
        let Failure(message) = cannot("read", file, &error);
        format!("{message}: install the package `ca-certificates`")
    })?;
    tar.content(&content, Path::new(ROOTS.trim_start_matches('/')), 0o644)
}

/// - `layer`: the digest of the layer before it is compressed.
fn config(release: &Release, layer: &str) -> Result<Value, Failure> {
    let created = jiff::Timestamp::from_second(release.epoch.try_into().unwrap_or_default())
        .map_err(|error| error.to_string())?;
    let mut config = platform(release);
    config["created"] = created.to_string().into();
    config["config"] = json!({
        "User": format!("{USER}:{USER}"),
        "Entrypoint": ["/usr/bin/plimsoll"],
        "Env": ["PATH=/usr/bin", "PLIMSOLL_SANDBOX=1"],
        "WorkingDir": "/",
        "Labels": labels(release),
    });
    config["rootfs"] = json!({"type": "layers", "diff_ids": [format!("sha256:{layer}")]});
    config["history"] = json!([{
        "created": created.to_string(),
        "created_by": "cargo xtask package",
    }]);
    Ok(config)
}

fn platform(release: &Release) -> Value {
    json!({"architecture": release.target.architecture(), "os": "linux"})
}

fn labels(release: &Release) -> Value {
    json!({
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.revision": release.revision,
        "org.opencontainers.image.source": release.repository,
        "org.opencontainers.image.title": "plimsoll",
        "org.opencontainers.image.version": release.version,
    })
}

fn text(value: &Value) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(value).map_err(|error| error.to_string().into())
}
