//! Options of scripts that flags and variables of the environment set.

use serde_json::{Map, Value, json};

use super::flags::boolean;

/// Flags that set an option of the script.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct OptionFlags {
    /// Wait until a client of the REST API of `--address` starts the run
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = boolean)]
    paused: Option<bool>,

    /// Do not run `setup()`
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = boolean)]
    no_setup: Option<bool>,

    /// Do not run `teardown()`
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = boolean)]
    no_teardown: Option<bool>,

    /// Accept any certificate
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = boolean)]
    insecure_skip_tls_verify: Option<bool>,

    /// Throw an exception when a request fails
    #[arg(short = 'w', long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = boolean)]
    throw: Option<bool>,

    /// Follow this many redirects at most [default: 10]
    #[arg(long, value_name = "N")]
    max_redirects: Option<u32>,

    /// Make this many requests of a batch at a time [default: 20]
    #[arg(long, value_name = "N")]
    batch: Option<u32>,

    /// Make this many requests of a batch to one host at a time [default: 6]
    #[arg(long, value_name = "N")]
    batch_per_host: Option<u32>,

    /// Limit requests per second, over all virtual users
    #[arg(long, value_name = "N")]
    rps: Option<u32>,

    /// Open a connection for each request
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = boolean)]
    no_connection_reuse: Option<bool>,

    /// Close connections at the end of each iteration
    #[arg(long = "no-vu-connection-reuse", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = boolean)]
    no_user_connection_reuse: Option<bool>,

    /// Wait at the end of shorter iterations
    #[arg(long, value_name = "TIME")]
    min_iteration_duration: Option<String>,

    /// Reject connections to an address or a network, repeatable
    #[arg(long = "blacklist-ip", value_name = "NETWORK", value_delimiter = ',')]
    blacklist_ips: Vec<String>,

    /// Reject connections to a host name, repeatable; `*.example.com` stands for all names that end so
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    block_hostnames: Vec<String>,

    /// Add only these system tags to samples
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    system_tags: Option<Vec<String>>,

    /// Run a part of the test, `FROM:TO`, such as `1/4:1/2`; other machines run the others
    #[arg(long, value_name = "SEGMENT")]
    execution_segment: Option<String>,

    /// Bounds of the parts of all machines: `0,1/4,1/2,1`
    #[arg(long, value_name = "BOUNDS")]
    execution_segment_sequence: Option<String>,

    /// Log the heads of requests and responses; `full` logs bodies too
    #[arg(long, value_name = "full", num_args = 0..=1, require_equals = true, default_missing_value = "headers")]
    http_debug: Option<String>,

    /// Connect from these addresses, in turns: addresses, ranges `10.0.0.1-10.0.0.9`, networks
    #[arg(long, value_name = "LIST")]
    local_ips: Option<String>,

    /// Resolve names by these rules: `policy=onlyIPv4`
    #[arg(long, value_name = "RULES")]
    dns: Option<String>,

    /// Read bodies of responses without keeping them
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = boolean)]
    discard_response_bodies: Option<bool>,
}

impl OptionFlags {
    /// As a script would write them.
    pub(crate) fn options(&self) -> Map<String, Value> {
        let mut options = Map::new();
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                options.insert(key.to_owned(), value);
            }
        };
        let on = |flag: Option<bool>| flag.map(|is_on| json!(is_on));
        let list = |list: &[String]| (!list.is_empty()).then(|| json!(list));
        set("paused", on(self.paused));
        set("noSetup", on(self.no_setup));
        set("noTeardown", on(self.no_teardown));
        set("insecureSkipTLSVerify", on(self.insecure_skip_tls_verify));
        set("throw", on(self.throw));
        set("maxRedirects", self.max_redirects.map(|it| json!(it)));
        set("batch", self.batch.map(|it| json!(it)));
        set("batchPerHost", self.batch_per_host.map(|it| json!(it)));
        set("rps", self.rps.map(|it| json!(it)));
        set("noConnectionReuse", on(self.no_connection_reuse));
        set("noVUConnectionReuse", on(self.no_user_connection_reuse));
        let least = self.min_iteration_duration.as_ref();
        set("minIterationDuration", least.map(|it| json!(it)));
        set("blacklistIPs", list(&self.blacklist_ips));
        set("blockHostnames", list(&self.block_hostnames));
        set("systemTags", self.system_tags.as_ref().map(|it| json!(it)));
        set("discardResponseBodies", on(self.discard_response_bodies));
        let text = |text: &Option<String>| text.as_ref().map(|it| json!(it));
        set("executionSegment", text(&self.execution_segment));
        let sequence = text(&self.execution_segment_sequence);
        set("executionSegmentSequence", sequence);
        set("httpDebug", text(&self.http_debug));
        set("localIPs", text(&self.local_ips));
        set("dns", self.dns.as_deref().map(dns));
        options
    }
}

/// `ttl=5m,select=random,policy=onlyIPv4` as a script would write it.
fn dns(rules: &str) -> Value {
    let pairs = rules.split(',').map(|rule| {
        let (key, value) = rule.split_once('=').unwrap_or((rule, ""));
        (key.trim().to_owned(), json!(value.trim()))
    });
    Value::Object(pairs.collect())
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Number,
    Switch,
    Text,
    List,
    /// Those of `--dns`.
    Rules,
}

/// Variables of the environment with the options that they set.
const VARIABLES: [(&str, &str, Form); 26] = [
    ("K6_BATCH", "batch", Form::Number),
    ("K6_BATCH_PER_HOST", "batchPerHost", Form::Number),
    ("K6_BLACKLIST_IPS", "blacklistIPs", Form::List),
    ("K6_BLOCK_HOSTNAMES", "blockHostnames", Form::List),
    (
        "K6_DISCARD_RESPONSE_BODIES",
        "discardResponseBodies",
        Form::Switch,
    ),
    (
        "K6_HANDLE_SUMMARY_TIMEOUT",
        "handleSummaryTimeout",
        Form::Text,
    ),
    (
        "K6_INSECURE_SKIP_TLS_VERIFY",
        "insecureSkipTLSVerify",
        Form::Switch,
    ),
    ("K6_MAX_REDIRECTS", "maxRedirects", Form::Number),
    (
        "K6_MIN_ITERATION_DURATION",
        "minIterationDuration",
        Form::Text,
    ),
    ("K6_NO_CONNECTION_REUSE", "noConnectionReuse", Form::Switch),
    ("K6_NO_COOKIES_RESET", "noCookiesReset", Form::Switch),
    ("K6_NO_SETUP", "noSetup", Form::Switch),
    ("K6_NO_TEARDOWN", "noTeardown", Form::Switch),
    (
        "K6_NO_VU_CONNECTION_REUSE",
        "noVUConnectionReuse",
        Form::Switch,
    ),
    ("K6_PAUSED", "paused", Form::Switch),
    ("K6_HTTP_DEBUG", "httpDebug", Form::Text),
    ("K6_LOCAL_IPS", "localIPs", Form::Text),
    ("K6_DNS", "dns", Form::Rules),
    ("K6_RPS", "rps", Form::Number),
    ("K6_SETUP_TIMEOUT", "setupTimeout", Form::Text),
    ("K6_SUMMARY_TIME_UNIT", "summaryTimeUnit", Form::Text),
    ("K6_SUMMARY_TREND_STATS", "summaryTrendStats", Form::List),
    ("K6_SYSTEM_TAGS", "systemTags", Form::List),
    ("K6_TEARDOWN_TIMEOUT", "teardownTimeout", Form::Text),
    ("K6_THROW", "throw", Form::Switch),
    ("K6_USER_AGENT", "userAgent", Form::Text),
];

/// The truth values that k6 accepts in variables.
pub(super) fn switch(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "t" | "TRUE" | "True" => Some(true),
        "false" | "0" | "f" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// The file of options, as `--config`.
pub(super) const CONFIG: &str = "K6_CONFIG";

/// Variables that take the place of all that a script says about when iterations start.
pub(super) const VUS: &str = "K6_VUS";
pub(super) const ITERATIONS: &str = "K6_ITERATIONS";
pub(super) const DURATION: &str = "K6_DURATION";
pub(super) const STAGES: &str = "K6_STAGES";

/// The options that variables set, as a script would write them; those about when iterations start are left out.
///
/// - `variable`: the value of a variable.
pub(super) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Map<String, Value> {
    let mut options = Map::new();
    for (name, key, form) in VARIABLES {
        let Some(text) = variable(name).filter(|text| !text.is_empty()) else {
            continue;
        };
        // What is malformed is a text, which the option then rejects.
        let value = match form {
            Form::Number => serde_json::from_str(&text).unwrap_or(json!(text)),
            Form::Switch => switch(&text).map_or(json!(text), |is_on| json!(is_on)),
            Form::Text => json!(text),
            Form::Rules => dns(&text),
            Form::List => json!(text.split(',').map(str::trim).collect::<Vec<_>>()),
        };
        options.insert(key.to_owned(), value);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_the_form_of_their_options() {
        let options = of_environment(|name| {
            let value = match name {
                "K6_RPS" => "7",
                "K6_BATCH" => "many",
                "K6_THROW" => "true",
                "K6_SYSTEM_TAGS" => "url, name",
                "K6_VUS" => "3",
                "K6_USER_AGENT" => "",
                _ => return None,
            };
            Some(value.to_owned())
        });
        let expected =
            json!({ "batch": "many", "rps": 7, "systemTags": ["url", "name"], "throw": true });
        assert_eq!(Value::Object(options), expected);
    }
}
