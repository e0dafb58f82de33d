//! A query of Prometheus, or of servers with its API: the samples of an instant.
//!
//! Source: the HTTP API of Prometheus, "Instant queries".

use std::sync::Arc;

use plimsoll_model::{Failure, FailureKind, Phase};
use serde_json::{Value, json};
use url::Url;

use crate::probe::context::{ProbeContext, Reach};
use crate::probe::http::{HttpOptions, HttpProbe, HttpProbeError};
use crate::probe::reading::Reading;
use crate::probe::{Probe, ProbeFuture};

/// Samples that are kept for conditions.
const MOST_SAMPLES: usize = 1_000;

/// Queries Prometheus.
#[derive(Debug)]
pub struct PrometheusProbe {
    http: HttpProbe,
}

impl PrometheusProbe {
    /// - `options`: a request whose URL is that of the server, perhaps with a path before `/api`.
    pub fn new(
        mut options: HttpOptions,
        query: &str,
        reach: Reach,
    ) -> Result<Self, HttpProbeError> {
        let base = options.url.trim_end_matches('/');
        let mut url = Url::parse(&format!("{base}/api/v1/query"))?;
        url.query_pairs_mut().append_pair("query", query);
        options.url = url.into();
        options.keeps_body = true;
        Ok(Self {
            http: HttpProbe::new(options, reach)?,
        })
    }
}

/// Turns the answer of the API into the body that conditions see, or into the reason why there is none.
fn judge(reading: &mut Reading) {
    if reading.failure.is_some() {
        return;
    }
    let answer: Option<Value> = serde_json::from_slice(&reading.body).ok();
    let answer = answer.filter(|answer| answer["status"].is_string());
    let Some(answer) = answer else {
        let status = reading.code.unwrap_or_default();
        let cause = format!("the answer is not one of Prometheus's API (status {status})");
        reading.failure = Some(Failure::new(Phase::Receive, FailureKind::Protocol).because(cause));
        return;
    };
    reading.body = Vec::new();
    if answer["status"] != "success" {
        let why = answer["error"].as_str().unwrap_or("no reason is given");
        reading.unmet = Some(format!("the query fails: {why}"));
        return;
    }
    let Some(samples) = samples(&answer["data"]) else {
        let kind = answer["data"]["resultType"].as_str().unwrap_or_default();
        reading.unmet = Some(format!(
            "the query has a result of the type `{kind}`; it needs samples of one instant"
        ));
        return;
    };
    let first = samples.first().map(|sample| sample["value"].clone());
    let body = json!({ "count": samples.len(), "value": first, "samples": samples });
    reading.body = body.to_string().into_bytes();
}

/// The samples of a vector or a scalar.
fn samples(data: &Value) -> Option<Vec<Value>> {
    let sample = |labels: &Value, pair: &Value| {
        let text = pair.get(1)?.as_str()?;
        // `NaN`, `+Inf` and `-Inf` are no numbers of JSON.
        let value: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite());
        let value = value.map_or_else(|| json!(text), |number| json!(number));
        Some(json!({ "labels": labels, "value": value }))
    };
    let result = &data["result"];
    match data["resultType"].as_str()? {
        "vector" => {
            let all = result.as_array()?.iter().take(MOST_SAMPLES);
            all.map(|one| sample(&one["metric"], &one["value"]))
                .collect()
        }
        "scalar" => Some(vec![sample(&json!({}), result)?]),
        _ => None,
    }
}

impl Probe for PrometheusProbe {
    fn kind(&self) -> &'static str {
        "prometheus"
    }

    fn target(&self) -> String {
        self.http.target()
    }

    fn host(&self) -> Option<Arc<str>> {
        self.http.host()
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(async {
            let mut reading = self.http.check(context).await;
            judge(&mut reading);
            reading
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(body: &str) -> Reading {
        let mut reading = Reading {
            code: Some(200),
            body: body.as_bytes().to_vec(),
            ..Reading::default()
        };
        judge(&mut reading);
        reading
    }

    #[test]
    fn samples_are_numbers_with_labels() {
        for (data, expected) in [
            (
                r#"{"resultType":"vector","result":[{"metric":{"job":"a"},"value":[1,"0.5"]},{"metric":{},"value":[1,"NaN"]}]}"#,
                r#"{"count":2,"samples":[{"labels":{"job":"a"},"value":0.5},{"labels":{},"value":"NaN"}],"value":0.5}"#,
            ),
            (
                r#"{"resultType":"scalar","result":[1,"7"]}"#,
                r#"{"count":1,"samples":[{"labels":{},"value":7.0}],"value":7.0}"#,
            ),
            (
                r#"{"resultType":"vector","result":[]}"#,
                r#"{"count":0,"samples":[],"value":null}"#,
            ),
        ] {
            let reading = judged(&format!(r#"{{"status":"success","data":{data}}}"#));
            assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
            let body: Value = serde_json::from_slice(&reading.body).unwrap();
            assert_eq!(body, serde_json::from_str::<Value>(expected).unwrap());
        }
    }

    #[test]
    fn other_answers_are_refused() {
        let matrix = judged(r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#);
        assert!(matrix.unmet.unwrap().contains("the type `matrix`"));
        let error = judged(r#"{"status":"error","error":"parse error"}"#);
        assert_eq!(error.unmet.as_deref(), Some("the query fails: parse error"));
        for other in ["<html>", "{}", "[]", ""] {
            assert!(judged(other).failure.is_some(), "{other}");
        }
    }
}
