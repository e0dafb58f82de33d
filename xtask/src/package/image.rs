//! The image: an OCI image layout of one layer with the program, roots of certificates, and a user without rights.
//!
//! Source: OCI image format 1.1, `image-layout.md`, `manifest.md`, `config.md`, `layer.md`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};

use super::archive::Tarball;
use super::program::Programs;
use super::sums::hex;
use super::{Release, cannot};
use crate::{Failure, Outcome};

/// The user of the image, `nonroot` as in distroless images.
const USER: u32 = 65532;

/// Where Debian's package `ca-certificates` has the roots, and where programs look for them.
const ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An image, as a folder and in one file.
pub(super) struct Image {
    /// The image layout, as `podman pull oci-archive:FILE` and `skopeo copy` read it.
    pub(super) archive: PathBuf,
}

/// Writes `NAME.oci.tar`.
pub(super) fn write(out: &Path, release: &Release, programs: &Programs) -> Result<Image, Failure> {
    let archive = out.join(format!("{}.oci.tar", release.name()));
    let layer = layer(release, programs)?;
    let mut blobs = Vec::new();
    let mut blob = |media_type: &str, content: Vec<u8>| {
        let digest = hex(&content);
        let descriptor = json!({
            "mediaType": media_type,
            "digest": format!("sha256:{digest}"),
            "size": content.len(),
        });
        blobs.push((digest, content));
        descriptor
    };
    let layer_descriptor = blob(LAYER, layer.compressed);
    let config = config(release, &layer.digest)?;
    let config_descriptor = blob(CONFIG, text(&config)?);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config_descriptor,
        "layers": [layer_descriptor],
        "annotations": labels(release),
    });
    let mut manifest_descriptor = blob(MANIFEST, text(&manifest)?);
    manifest_descriptor["platform"] = platform(release)?;
    manifest_descriptor["annotations"] =
        json!({"org.opencontainers.image.ref.name": format!("plimsoll:{}", release.version)});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [manifest_descriptor],
    });
    let mut tar = Tarball::new(Vec::new(), release.epoch);
    tar.content(
        br#"{"imageLayoutVersion":"1.0.0"}"#,
        Path::new("oci-layout"),
        0o644,
    )?;
    tar.content(&text(&index)?, Path::new("index.json"), 0o644)?;
    for folder in ["blobs", "blobs/sha256"] {
        tar.folder(Path::new(folder), 0o755)?;
    }
    blobs.sort();
    for (digest, content) in &blobs {
        tar.content(content, &Path::new("blobs/sha256").join(digest), 0o644)?;
    }
    fs::write(&archive, tar.finish()?).map_err(|error| cannot("write", &archive, &error))?;
    Ok(Image { archive })
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
    let mut config = platform(release)?;
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

fn platform(release: &Release) -> Result<Value, Failure> {
    Ok(json!({"architecture": release.architecture()?, "os": "linux"}))
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
