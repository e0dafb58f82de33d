//! The options of curl: what each of them means for a request.

/// The effect of an option on the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Method,
    Header,
    Data,
    DataRaw,
    DataBinary,
    DataUrlencode,
    Json,
    Form,
    FormString,
    User,
    Bearer,
    UserAgent,
    Referer,
    Cookie,
    Head,
    Get,
    Url,
    UrlQuery,
    Upload,
    Compressed,
    NoGlob,
    /// Begins another request.
    Next,
    /// Only about what curl prints, which has no place here.
    Silent,
    /// A setting that a request cannot carry; the text says what to do instead.
    LeftOut(&'static str),
}

/// An option of curl.
#[derive(Debug, Clone, Copy)]
pub(super) struct CurlOption {
    pub(super) short: Option<char>,
    pub(super) long: &'static str,
    /// True if the next word is its value.
    pub(super) takes_value: bool,
    pub(super) effect: Effect,
}

const fn with(short: Option<char>, long: &'static str, effect: Effect) -> CurlOption {
    CurlOption {
        short,
        long,
        takes_value: true,
        effect,
    }
}

const fn flag(short: Option<char>, long: &'static str, effect: Effect) -> CurlOption {
    CurlOption {
        short,
        long,
        takes_value: false,
        effect,
    }
}

const OWN_PROTOCOL: Effect = Effect::LeftOut("the protocol is chosen by plimsoll's own flags");
const REDIRECTS: Effect = Effect::LeftOut("redirects are not followed");
const RETRIES: Effect = Effect::LeftOut("nothing is tried again");
const TLS: Effect = Effect::LeftOut("there is no such setting here");
const JAR: Effect =
    Effect::LeftOut("give `--cookies` to plimsoll, and each user keeps those of earlier answers");

/// The options that are known; what curl prints and where to is [`Effect::Silent`].
pub(super) const OPTIONS: &[CurlOption] = &[
    with(Some('X'), "request", Effect::Method),
    with(Some('H'), "header", Effect::Header),
    with(Some('d'), "data", Effect::Data),
    with(None, "data-ascii", Effect::Data),
    with(None, "data-raw", Effect::DataRaw),
    with(None, "data-binary", Effect::DataBinary),
    with(None, "data-urlencode", Effect::DataUrlencode),
    with(None, "json", Effect::Json),
    with(Some('F'), "form", Effect::Form),
    with(None, "form-string", Effect::FormString),
    with(Some('u'), "user", Effect::User),
    with(None, "oauth2-bearer", Effect::Bearer),
    with(Some('A'), "user-agent", Effect::UserAgent),
    with(Some('e'), "referer", Effect::Referer),
    with(Some('b'), "cookie", Effect::Cookie),
    flag(Some('I'), "head", Effect::Head),
    flag(Some('G'), "get", Effect::Get),
    with(None, "url", Effect::Url),
    with(None, "url-query", Effect::UrlQuery),
    with(Some('T'), "upload-file", Effect::Upload),
    flag(None, "compressed", Effect::Compressed),
    flag(Some('g'), "globoff", Effect::NoGlob),
    flag(Some(':'), "next", Effect::Next),
    flag(
        Some('k'),
        "insecure",
        Effect::LeftOut("give `-k` to plimsoll"),
    ),
    flag(Some('L'), "location", REDIRECTS),
    flag(None, "location-trusted", REDIRECTS),
    with(None, "max-redirs", REDIRECTS),
    with(Some('x'), "proxy", Effect::LeftOut("give `-x` to plimsoll")),
    with(
        Some('U'),
        "proxy-user",
        Effect::LeftOut("write user and password into the URL of `-x`"),
    ),
    with(
        None,
        "noproxy",
        Effect::LeftOut("set the variable `no_proxy`"),
    ),
    with(
        None,
        "socks5",
        Effect::LeftOut("give `-x socks5://…` to plimsoll"),
    ),
    with(
        None,
        "socks5-hostname",
        Effect::LeftOut("give `-x socks5h://…` to plimsoll"),
    ),
    with(
        Some('m'),
        "max-time",
        Effect::LeftOut("give `--timeout` to plimsoll"),
    ),
    with(
        None,
        "connect-timeout",
        Effect::LeftOut("give `--timeout` to plimsoll"),
    ),
    flag(None, "http1.0", OWN_PROTOCOL),
    flag(Some('0'), "http1.1", OWN_PROTOCOL),
    flag(None, "http2", OWN_PROTOCOL),
    flag(None, "http2-prior-knowledge", OWN_PROTOCOL),
    flag(None, "http3", OWN_PROTOCOL),
    flag(None, "http3-only", OWN_PROTOCOL),
    with(
        None,
        "cacert",
        Effect::LeftOut("give `--cacert` to plimsoll"),
    ),
    with(
        Some('E'),
        "cert",
        Effect::LeftOut("give `--cert` to plimsoll"),
    ),
    with(None, "key", Effect::LeftOut("give `--key` to plimsoll")),
    with(
        None,
        "resolve",
        Effect::LeftOut("give `--resolve` to plimsoll"),
    ),
    with(
        None,
        "connect-to",
        Effect::LeftOut("give `--resolve` to plimsoll"),
    ),
    with(
        None,
        "interface",
        Effect::LeftOut("give `--source` to plimsoll"),
    ),
    with(
        None,
        "unix-socket",
        Effect::LeftOut("give `--unix-socket` to plimsoll"),
    ),
    flag(Some('4'), "ipv4", Effect::LeftOut("give `-4` to plimsoll")),
    flag(Some('6'), "ipv6", Effect::LeftOut("give `-6` to plimsoll")),
    with(Some('c'), "cookie-jar", JAR),
    flag(
        Some('j'),
        "junk-session-cookies",
        Effect::LeftOut("no cookies are read from files"),
    ),
    flag(
        None,
        "digest",
        Effect::LeftOut("give `--digest user:password` to plimsoll"),
    ),
    flag(
        None,
        "ntlm",
        Effect::LeftOut("only basic authentication is carried over"),
    ),
    flag(
        None,
        "negotiate",
        Effect::LeftOut("only basic authentication is carried over"),
    ),
    flag(
        None,
        "anyauth",
        Effect::LeftOut("only basic authentication is carried over"),
    ),
    flag(None, "basic", Effect::Silent),
    with(
        None,
        "aws-sigv4",
        Effect::LeftOut("requests are not signed"),
    ),
    with(
        None,
        "limit-rate",
        Effect::LeftOut("responses are read as fast as they come"),
    ),
    with(
        Some('r'),
        "range",
        Effect::LeftOut("write `-H 'range: bytes=…'`"),
    ),
    with(None, "retry", RETRIES),
    with(None, "retry-delay", RETRIES),
    with(None, "retry-max-time", RETRIES),
    flag(None, "retry-all-errors", RETRIES),
    flag(None, "retry-connrefused", RETRIES),
    with(None, "ciphers", TLS),
    with(None, "tls13-ciphers", TLS),
    with(None, "tls-max", TLS),
    flag(None, "tlsv1.0", TLS),
    flag(None, "tlsv1.1", TLS),
    flag(Some('1'), "tlsv1", TLS),
    flag(None, "tlsv1.2", TLS),
    flag(None, "tlsv1.3", TLS),
    with(None, "rate", Effect::LeftOut("give `-q` to plimsoll")),
    flag(
        None,
        "path-as-is",
        Effect::LeftOut("`..` and `.` are taken out of paths"),
    ),
    flag(None, "no-keepalive", Effect::Silent),
    with(None, "keepalive-time", Effect::Silent),
    flag(None, "tcp-nodelay", Effect::Silent),
    flag(Some('s'), "silent", Effect::Silent),
    flag(Some('S'), "show-error", Effect::Silent),
    flag(Some('v'), "verbose", Effect::Silent),
    flag(Some('i'), "include", Effect::Silent),
    flag(None, "show-headers", Effect::Silent),
    flag(Some('f'), "fail", Effect::Silent),
    flag(None, "fail-with-body", Effect::Silent),
    flag(None, "fail-early", Effect::Silent),
    flag(Some('#'), "progress-bar", Effect::Silent),
    flag(None, "no-progress-meter", Effect::Silent),
    flag(Some('N'), "no-buffer", Effect::Silent),
    flag(Some('O'), "remote-name", Effect::Silent),
    flag(Some('J'), "remote-header-name", Effect::Silent),
    flag(None, "remote-name-all", Effect::Silent),
    flag(None, "create-dirs", Effect::Silent),
    flag(Some('Z'), "parallel", Effect::Silent),
    flag(Some('q'), "disable", Effect::Silent),
    flag(Some('R'), "remote-time", Effect::Silent),
    with(Some('o'), "output", Effect::Silent),
    with(None, "output-dir", Effect::Silent),
    with(Some('w'), "write-out", Effect::Silent),
    with(Some('D'), "dump-header", Effect::Silent),
    with(None, "trace", Effect::Silent),
    with(None, "trace-ascii", Effect::Silent),
    with(None, "stderr", Effect::Silent),
];

/// The option of that long name, without its dashes.
pub(super) fn long(name: &str) -> Option<&'static CurlOption> {
    OPTIONS.iter().find(|option| option.long == name)
}

/// The option of that letter.
pub(super) fn short(letter: char) -> Option<&'static CurlOption> {
    OPTIONS.iter().find(|option| option.short == Some(letter))
}

/// The option whose name is closest to one that there is not.
pub(super) fn suggestion(name: &str) -> Option<&'static str> {
    let names = OPTIONS.iter().map(|option| option.long);
    names
        .map(|known| (strsim::damerau_levenshtein(known, name), known))
        .min()
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, known)| known)
}
