//! Where samples of a script go (`--out`).

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::rc::Rc;

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_client::ProxyRules;
use plimsoll_k6::{CsvTime, SampleFile, SampleFormat, SampleOutput, SeriesOutput, SeriesValue};
use plimsoll_model::Clock as _;
use plimsoll_report::files;
use plimsoll_report::push::Point;
use plimsoll_wire::SystemClock;

use crate::commands::load::push::{Destination, Push};
use crate::problem::{Failed, Problem};
use crate::result_folder::ResultFolder;

/// The receiver of series, and the thread that sends them.
pub(super) type Sending = (SeriesOutput, Rc<RefCell<Push>>);

/// As of k6.
const PROMETHEUS: &str = "http://localhost:9090/api/v1/write";
const OTLP: &str = "http://localhost:4318";

/// Everything that `--out` names.
pub(super) struct Outputs {
    pub(super) files: Vec<SampleOutput>,
    /// The folder for result files.
    pub(super) folder: Option<ResultFolder>,
    destinations: Vec<Destination>,
    trend_stats: Vec<String>,
}

impl Outputs {
    /// Checks the addresses; files are opened once the script is valid.
    ///
    /// - `variable`: the value of a variable of the environment.
    pub(super) fn open(
        outputs: &[String],
        variable: impl Fn(&str) -> Option<String>,
        proxies: &ProxyRules,
    ) -> Result<Self, Problem> {
        let wrong = |message: String| Problem::with("--out", message);
        let mut files = Vec::new();
        let mut destinations = Vec::new();
        let mut folder = None;
        for output in outputs {
            let (name, target) = match output.split_once('=') {
                Some((name, target)) => (name, Some(target)),
                None => (output.as_str(), None),
            };
            let database = |is_otlp, names: [&str; 3], default: &str| {
                let [url, headers, headers_too] = names;
                let url = target.map(str::to_owned).or_else(|| variable(url));
                let url = url.unwrap_or_else(|| default.to_owned());
                let given = variable(headers).or_else(|| variable(headers_too));
                let headers = header_fields(headers, &given.unwrap_or_default())?;
                Destination::of_script(is_otlp, "--out", &url, headers, proxies.clone())
            };
            match name {
                "json" => files.push(file(SampleFormat::Json, target)),
                "csv" => {
                    let named = variable("K6_CSV_FILENAME");
                    let format = SampleFormat::Csv(csv_time(&variable)?);
                    files.push(file(format, target.or(named.as_deref())));
                }
                "prometheus-rw" | "experimental-prometheus-rw" => {
                    let names = [
                        "K6_PROMETHEUS_RW_SERVER_URL",
                        "K6_PROMETHEUS_RW_HTTP_HEADERS",
                        "K6_PROMETHEUS_RW_HEADERS",
                    ];
                    destinations.push(database(false, names, PROMETHEUS)?);
                }
                "otlp" | "opentelemetry" | "experimental-opentelemetry" => {
                    let names = [
                        "K6_OTEL_HTTP_EXPORTER_URL",
                        "K6_OTEL_HEADERS",
                        "OTEL_EXPORTER_OTLP_HEADERS",
                    ];
                    destinations.push(database(true, names, OTLP)?);
                }
                other if target.is_some() || is_output_of_k6(other) => {
                    return Err(wrong(format!(
                        "`{other}` is not supported; use json=FILE, csv=FILE, prometheus-rw=URL, otlp=URL, or DIR for result files"
                    )));
                }
                _ if folder.is_some() => {
                    return Err(wrong("names two folders for result files".to_owned()));
                }
                path => {
                    let mut names = files::NAMES.to_vec();
                    names.push(files::SCRIPT_JSON);
                    let prepared = ResultFolder::prepare(Path::new(path), &names);
                    folder = Some(prepared.map_err(Failed::into_first)?);
                }
            }
        }
        let stats = variable("K6_PROMETHEUS_RW_TREND_STATS");
        let stats = stats.unwrap_or_else(|| "p(99)".to_owned());
        Ok(Self {
            folder,
            files,
            destinations,
            trend_stats: stats.split(',').map(|it| it.trim().to_owned()).collect(),
        })
    }

    /// Starts sending to databases; nothing without any.
    pub(super) fn push(&mut self) -> Result<Option<Sending>, Problem> {
        if self.destinations.is_empty() {
            return Ok(None);
        }
        let destinations = std::mem::take(&mut self.destinations);
        let push = Push::start(destinations, "", "");
        let push = push.map_err(|error| Problem::with("--out", error.to_string()))?;
        let push = Rc::new(RefCell::new(push));
        let sending = Rc::clone(&push);
        let output = SeriesOutput {
            trend_stats: std::mem::take(&mut self.trend_stats),
            send: Box::new(move |values| sending.borrow_mut().add(&points(values))),
        };
        if let Some(stat) = output.unknown_stat() {
            let message = format!("`{stat}` is not one of avg, min, med, max, count and p(N)");
            return Err(Problem::with("K6_PROMETHEUS_RW_TREND_STATS", message));
        }
        Ok(Some((output, push)))
    }
}

/// The first output that gets single samples, or series of them: no folder.
#[cfg(feature = "fleet")]
pub(crate) fn of_samples(outputs: &[String]) -> Option<&str> {
    const NAMES: [&str; 7] = [
        "json",
        "csv",
        "prometheus-rw",
        "experimental-prometheus-rw",
        "otlp",
        "opentelemetry",
        "experimental-opentelemetry",
    ];

    let mut outputs = outputs.iter().map(String::as_str);
    outputs.find(|output| {
        let name = output.split('=').next().unwrap_or_default();
        output.contains('=') || NAMES.contains(&name) || is_output_of_k6(name)
    })
}

/// Outputs of k6 and of its extensions that are no folders, so that a run with one of them fails instead of writing to a folder of that name.
fn is_output_of_k6(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "amqp",
        "cloud",
        "dashboard",
        "datadog",
        "elasticsearch",
        "influxdb",
        "kafka",
        "loki",
        "newrelic",
        "output-prometheus-remote",
        "statsd",
        "timescaledb",
    ];
    NAMES.contains(
        &name
            .trim_start_matches("experimental-")
            .trim_start_matches("xk6-"),
    ) || NAMES.contains(&name)
}

fn points(values: Vec<SeriesValue>) -> Vec<Point> {
    let at = SystemClock.wall();
    let point = |value: SeriesValue| Point {
        prefix: "k6",
        name: value.name.into(),
        help: "",
        labels: value
            .labels
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect(),
        at,
        value: value.value,
    };
    values.into_iter().map(point).collect()
}

/// `name:value,other:value`, or with `=` as OpenTelemetry has it.
fn header_fields(variable: &str, text: &str) -> Result<Vec<(String, String)>, Problem> {
    let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    let fields = parts.map(|part| {
        let pair = part.split_once([':', '=']);
        let pair = pair.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
        pair.ok_or_else(|| Problem::with(variable, format!("`{part}` is not name:value")))
    });
    fields.collect()
}

/// The times in CSV, by their variable.
fn csv_time(variable: impl Fn(&str) -> Option<String>) -> Result<CsvTime, Problem> {
    const VARIABLE: &str = "K6_CSV_TIME_FORMAT";
    let Some(given) = variable(VARIABLE) else {
        return Ok(CsvTime::default());
    };
    let mut all = CsvTime::NAMES.iter();
    let found = all.find(|(name, _)| *name == given);
    found.map(|(_, time)| *time).ok_or_else(|| {
        let names = CsvTime::NAMES.map(|(name, _)| name).join(", ");
        Problem::with(VARIABLE, format!("`{given}` is not one of {names}"))
    })
}

fn file(format: SampleFormat, path: Option<&str>) -> SampleOutput {
    let path = path.unwrap_or(match format {
        SampleFormat::Json => "-",
        SampleFormat::Csv(_) => "file.csv",
    });
    let name = path.to_owned();
    SampleOutput {
        name: name.clone(),
        format,
        open: Box::new(move || open(&name)),
    }
}

fn open(path: &str) -> io::Result<Box<dyn SampleFile>> {
    if path == "-" {
        return Ok(Box::new(io::BufWriter::new(io::stdout())));
    }
    let extension = Path::new(path).extension();
    let is_compressed = extension.is_some_and(|it| it.eq_ignore_ascii_case("gz"));
    let file = io::BufWriter::new(fs::File::create(path)?);
    if is_compressed {
        let encoder = GzEncoder::new(file, Compression::fast());
        return Ok(Box::new(Compressed(encoder)));
    }
    Ok(Box::new(file))
}

/// A compressed file, which can be read from its beginning during the run.
struct Compressed(GzEncoder<io::BufWriter<fs::File>>);

impl io::Write for Compressed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl SampleFile for Compressed {
    fn finish(&mut self) -> io::Result<()> {
        self.0.try_finish()?;
        self.0.get_mut().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_variables_are_pairs() {
        let fields = header_fields("X", "a: b, c=d,").unwrap();
        let expected = [("a", "b"), ("c", "d")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(fields, expected);
        assert!(header_fields("X", "a").is_err());
    }
}
