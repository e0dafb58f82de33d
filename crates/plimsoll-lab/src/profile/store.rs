//! Profiles as stores of profiles take them: `parca.profilestore.v1alpha1`, the service of Parca.

use prost::Message;

/// The method that takes what [`write_raw`] makes.
pub const METHOD: &str = "parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw";

/// The default name of a series of profiles.
pub const NAME: &str = "process_cpu";

/// The label that names a series.
const NAME_LABEL: &str = "__name__";

/// A request that hands over one profile.
///
/// - `labels`: what distinguishes its series from others, by name and value; [`NAME`] is added unless
///   `__name__` is among them.
/// - `pprof`: the profile in the format of pprof, as [`pprof::encode`](super::pprof::encode) makes it.
pub fn write_raw(labels: &[(String, String)], pprof: Vec<u8>) -> Vec<u8> {
    let mut labels: Vec<Label> = labels
        .iter()
        .map(|(name, value)| Label {
            name: name.clone(),
            value: value.clone(),
        })
        .collect();
    if labels.iter().all(|label| label.name != NAME_LABEL) {
        labels.push(Label {
            name: NAME_LABEL.to_owned(),
            value: NAME.to_owned(),
        });
    }
    // Stores compare label sets in this order.
    labels.sort_by(|one, other| one.name.cmp(&other.name));
    let request = WriteRawRequest {
        series: vec![RawProfileSeries {
            labels: Some(LabelSet { labels }),
            samples: vec![RawSample { raw_profile: pprof }],
        }],
    };
    request.encode_to_vec()
}

#[derive(Clone, PartialEq, Message)]
struct WriteRawRequest {
    #[prost(message, repeated, tag = "2")]
    series: Vec<RawProfileSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct RawProfileSeries {
    #[prost(message, optional, tag = "1")]
    labels: Option<LabelSet>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RawSample>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelSet {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_a_series_has_a_name() {
        let labels = |given: &[(&str, &str)]| {
            let given: Vec<_> = given
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let request = WriteRawRequest::decode(&*write_raw(&given, b"pprof".to_vec())).unwrap();
            assert_eq!(request.series[0].samples[0].raw_profile, b"pprof");
            let labels = request.series[0].labels.clone().unwrap().labels;
            labels
                .into_iter()
                .map(|label| format!("{}={}", label.name, label.value))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(labels(&[("job", "x")]), "__name__=process_cpu job=x");
        assert_eq!(
            labels(&[("b", "1"), ("__name__", "n"), ("a", "2")]),
            "__name__=n a=2 b=1"
        );
    }
}
