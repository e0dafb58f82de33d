//! Containers as an engine lists them.
//!
//! Source: Docker's Engine API, "List containers", which podman serves too. Both write `null` where there is nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// A container of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Container {
    id: String,
    #[serde(default, deserialize_with = "or_nothing")]
    names: Vec<String>,
    /// Its labels.
    #[serde(default, deserialize_with = "or_nothing")]
    pub labels: BTreeMap<String, String>,
    /// Ports that its image names.
    #[serde(default, deserialize_with = "or_nothing")]
    pub ports: Vec<ContainerPort>,
    /// Such as `Up 2 minutes (unhealthy)`.
    #[serde(default, deserialize_with = "or_nothing")]
    pub status: String,
    #[serde(default, deserialize_with = "or_nothing")]
    network_settings: NetworkSettings,
}

/// A port of a container.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ContainerPort {
    /// Within the container.
    #[serde(default)]
    pub private_port: u16,
    /// `tcp`, `udp` or `sctp`.
    #[serde(default, rename = "Type")]
    pub protocol: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NetworkSettings {
    #[serde(default, deserialize_with = "or_nothing")]
    networks: BTreeMap<String, ContainerNetwork>,
}

/// A network that a container is in.
#[derive(Debug, Deserialize)]
pub struct ContainerNetwork {
    #[serde(default, rename = "IPAddress")]
    address: String,
    #[serde(default, rename = "GlobalIPv6Address")]
    address_v6: String,
}

impl Container {
    /// Its name, or its id if it has none.
    pub fn name(&self) -> &str {
        let name = self.names.first().unwrap_or(&self.id);
        name.trim_start_matches('/')
    }

    /// The networks that it is in, by name.
    pub fn networks(&self) -> &BTreeMap<String, ContainerNetwork> {
        &self.network_settings.networks
    }
}

impl ContainerNetwork {
    /// The container's address there, of IPv4 if it has one. None in the network of the host, and for one that has stopped.
    pub fn address(&self) -> Option<&str> {
        let both = [self.address.as_str(), &self.address_v6];
        both.into_iter().find(|address| !address.is_empty())
    }
}

/// `null` is as if the key were not there.
fn or_nothing<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(text: &str) -> Container {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn null_stands_for_nothing() {
        let keys = ["Names", "Labels", "Ports", "Status", "NetworkSettings"];
        let nulls = keys.map(|key| format!("\"{key}\": null")).join(", ");
        let nulls = format!(", {nulls}");
        for text in [
            "{\"Id\": \"abc\"}".to_owned(),
            format!("{{\"Id\": \"abc\"{nulls}}}"),
        ] {
            let container = container(&text);
            assert_eq!(container.name(), "abc");
            assert!(container.labels.is_empty() && container.ports.is_empty());
            assert!(container.networks().is_empty() && container.status.is_empty());
        }
        let inner = container("{\"Id\": \"abc\", \"NetworkSettings\": {\"Networks\": null}}");
        assert!(inner.networks().is_empty());
    }

    #[test]
    fn an_address_is_that_of_either_version() {
        let container = container(
            "{\"Id\": \"abc\", \"Names\": [\"/web\"], \"NetworkSettings\": {\"Networks\": {
                \"a\": {\"IPAddress\": \"10.0.0.2\", \"GlobalIPv6Address\": \"fd00::2\"},
                \"b\": {\"IPAddress\": \"\", \"GlobalIPv6Address\": \"fd00::3\"}, \"host\": {\"IPAddress\": \"\"}}}}",
        );
        assert_eq!(container.name(), "web");
        let networks = container.networks().values();
        let addresses: Vec<_> = networks.map(ContainerNetwork::address).collect();
        assert_eq!(addresses, [Some("10.0.0.2"), Some("fd00::3"), None]);
    }
}
