//! The flags of `plimsoll load --fleet` about manifests for Kubernetes.

use plimsoll_model::{ByteSize, parse_byte_size};

use crate::flags::number;

/// Larger numbers are taken for typing errors.
const MOST_PODS: u64 = 1000;
const MOST_CORES: u64 = 256;

/// Letters of the name of a Job: its pods have longer ones, which are host names of 63 letters at most.
const MOST_NAME: usize = 40;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fleet on Kubernetes")]
pub(crate) struct KubernetesArgs {
    /// Print manifests for `kubectl apply -f -` instead of running: a Job of N agents and one of the coordinator
    #[arg(long, value_name = "N", requires = "fleet", conflicts_with_all = ["agents", "attach", "sign"],
          value_parser = number::count::<usize>(MOST_PODS))]
    pub(crate) kubernetes: Option<usize>,

    /// Name of the Jobs, and the group of the agents
    #[arg(long, value_name = "NAME", default_value = "plimsoll-load", requires = "kubernetes", value_parser = name)]
    pub(crate) kubernetes_name: String,

    /// Image of the pods, with this version of plimsoll
    #[arg(long, value_name = "IMAGE", requires = "kubernetes",
          default_value = concat!("ghcr.io/plimsoll-rs/plimsoll:", env!("CARGO_PKG_VERSION")))]
    pub(crate) kubernetes_image: String,

    /// The image has the files of the command in this folder, under their own names
    #[arg(long, value_name = "PATH", requires = "kubernetes_image")]
    pub(crate) kubernetes_folder: Option<String>,

    /// Cores of each agent
    #[arg(long, value_name = "N", default_value = "1", requires = "kubernetes", value_parser = number::count::<usize>(MOST_CORES))]
    pub(crate) kubernetes_cpu: usize,

    /// Memory of each pod
    #[arg(long, value_name = "SIZE", default_value = "512MiB", requires = "kubernetes", value_parser = memory)]
    pub(crate) kubernetes_memory: ByteSize,

    /// Secret with `key.pem`, `trust.pem`, the broker's URL as `nats` if it has a password, its files (`--fleet-creds` and the like) as `broker.creds`, `broker-ca.pem`, `broker-cert.pem` and `broker-key.pem`, and values of `--var NAME`
    #[arg(long, value_name = "NAME", default_value = "plimsoll-fleet", requires = "kubernetes", value_parser = name)]
    pub(crate) kubernetes_secret: String,

    /// Hosts that agents may load, repeatable [default: those of the load; scripts need it]
    #[arg(long, value_name = "HOST", requires = "kubernetes")]
    pub(crate) kubernetes_allow: Vec<String>,

    /// Label of all resources, repeatable: `team=shop`
    #[arg(long, value_name = "KEY=VALUE", requires = "kubernetes", value_parser = label)]
    pub(crate) kubernetes_label: Vec<(String, String)>,

    /// Annotation of all resources, repeatable
    #[arg(long, value_name = "KEY=VALUE", requires = "kubernetes", value_parser = pair)]
    pub(crate) kubernetes_annotation: Vec<(String, String)>,
}

/// A name of a resource. Source: RFC 1123, as Kubernetes reads it.
fn name(text: &str) -> Result<String, String> {
    let is_letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let bytes = text.as_bytes();
    let is_name = bytes.len() <= MOST_NAME
        && bytes.first().copied().is_some_and(is_letter)
        && bytes.last().copied().is_some_and(is_letter)
        && bytes.iter().all(|it| is_letter(*it) || *it == b'-');
    if is_name {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "`{text}` is not a name of lower-case letters, digits and `-`, of {MOST_NAME} at most"
        ))
    }
}

fn memory(text: &str) -> Result<ByteSize, String> {
    let size = parse_byte_size(text).map_err(|error| error.to_string())?;
    if size.0 < 32 << 20 {
        return Err("must be at least 32MiB".to_owned());
    }
    Ok(size)
}

/// A key, perhaps behind a domain and `/`, and a value.
fn pair(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("`{text}` is not KEY=VALUE");
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let (domain, word) = key.rsplit_once('/').unwrap_or(("a", key));
    let is_part = |text: &str, most: usize| {
        let bytes = text.as_bytes();
        (1..=most).contains(&bytes.len())
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes
                .iter()
                .all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(it))
    };
    if is_part(word, 63) && is_part(domain, 253) {
        Ok((key.to_owned(), value.to_owned()))
    } else {
        Err(wrong())
    }
}

/// Values of labels are words, or empty.
fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = pair(text)?;
    if value.is_empty() || pair(&format!("{value}=")).is_ok_and(|(word, _)| !word.contains('/')) {
        Ok((key, value))
    } else {
        Err(format!(
            "`{value}` is not a value of a label: letters, digits, `-`, `_` and `.`, 63 at most"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_those_that_a_cluster_takes() {
        assert!(name("shop-1").is_ok() && name("Shop").is_err() && name("-a").is_err());
        assert!(name("").is_err() && name(&"a".repeat(41)).is_err());
        assert!(label("team=shop").is_ok() && label("example.org/team=a.b").is_ok());
        assert!(label("team=").is_ok() && label("team").is_err());
        assert!(label("team=a b").is_err() && label("a b=c").is_err() && label("=c").is_err());
        assert!(pair("note=a b").is_ok());
    }
}
