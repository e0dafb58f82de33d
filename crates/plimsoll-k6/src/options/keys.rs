//! The options of k6, in its order, with where each is shown.

/// Where an option is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// By `k6 inspect`, in archives and in `exec.test.options`.
    Everywhere,
    /// By `k6 inspect` and in archives.
    Inspected,
    /// In `exec.test.options`.
    InTest,
}

const OPTIONS: [(&str, Shown); 43] = [
    ("paused", Shown::Everywhere),
    ("vus", Shown::Inspected),
    ("duration", Shown::Inspected),
    ("iterations", Shown::Inspected),
    ("stages", Shown::Inspected),
    ("scenarios", Shown::Everywhere),
    ("executionSegment", Shown::Everywhere),
    ("executionSegmentSequence", Shown::Everywhere),
    ("noSetup", Shown::Everywhere),
    ("setupTimeout", Shown::Everywhere),
    ("noTeardown", Shown::Everywhere),
    ("teardownTimeout", Shown::Everywhere),
    ("handleSummaryTimeout", Shown::Everywhere),
    ("rps", Shown::Everywhere),
    ("dns", Shown::Everywhere),
    ("maxRedirects", Shown::Everywhere),
    ("userAgent", Shown::Everywhere),
    ("batch", Shown::Everywhere),
    ("batchPerHost", Shown::Everywhere),
    ("httpDebug", Shown::Everywhere),
    ("insecureSkipTLSVerify", Shown::Everywhere),
    ("tlsCipherSuites", Shown::Everywhere),
    ("tlsVersion", Shown::Everywhere),
    ("tlsAuth", Shown::Everywhere),
    ("throw", Shown::Everywhere),
    ("thresholds", Shown::Everywhere),
    ("blacklistIPs", Shown::Everywhere),
    ("blockHostnames", Shown::Everywhere),
    ("hosts", Shown::Everywhere),
    ("noConnectionReuse", Shown::Everywhere),
    ("noVUConnectionReuse", Shown::Everywhere),
    ("minIterationDuration", Shown::Everywhere),
    ("ext", Shown::Everywhere),
    ("summaryTrendStats", Shown::Everywhere),
    ("summaryTimeUnit", Shown::Everywhere),
    ("systemTags", Shown::Everywhere),
    ("tags", Shown::Everywhere),
    ("metricSamplesBufferSize", Shown::Everywhere),
    ("noCookiesReset", Shown::Everywhere),
    ("discardResponseBodies", Shown::Everywhere),
    ("consoleOutput", Shown::InTest),
    ("localIPs", Shown::InTest),
    ("features", Shown::Everywhere),
];

/// Those that `k6 inspect` prints.
pub(super) fn inspected_keys() -> impl Iterator<Item = &'static str> {
    keys(Shown::Inspected)
}

/// All of them.
pub(super) fn all_keys() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().map(|(key, _)| *key)
}

/// Those of `exec.test.options`.
pub(super) fn test_keys() -> impl Iterator<Item = &'static str> {
    keys(Shown::InTest)
}

fn keys(place: Shown) -> impl Iterator<Item = &'static str> {
    let shown = OPTIONS
        .iter()
        .filter(move |(_, shown)| *shown == Shown::Everywhere || *shown == place);
    shown.map(|(key, _)| *key)
}
