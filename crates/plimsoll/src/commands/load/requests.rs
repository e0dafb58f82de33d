//! Where requests come from: the URL of the command line or a file of requests, with variables and
//! rows for their places.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use plimsoll_client::Endpoint;
use plimsoll_formats::{FileRequest, Format, MissingVariable, Place, Remark, Table, Template};
use plimsoll_load::{
    Feeder, FeederOrder, KeptValue, Pick, PlannedRequest, RequestTemplate, TemplateForm,
    TemplateProblem, ValueSources,
};

mod chain;
mod environment;
mod log;
mod missing;
mod reader;
mod selector;

use self::chain::SetVariables;
use self::environment::Environments;
pub(super) use self::log::Log;
use self::missing::MissingVariables;
use self::reader::Reader;
use self::selector::Selector;
use super::args::{self, RequestsArgs};
use crate::flags::{OnTheWay, Problems, RequestParts, Way};
use crate::problem::Problem;
use plimsoll_model::{RequestNames, masked_text};

/// Every request is held in memory.
const MOST_REQUEST_BYTES: u64 = (1 << 30) + (1 << 20);

/// Requests of a file that are wrong are reported up to this number.
const MOST_WRONG: usize = 5;

/// Parts that were left out are named up to this number, and counted beyond.
const MOST_NOTES: usize = 12;

/// The requests of a run, as far as they are known without the connections.
#[derive(Debug)]
pub(super) struct Described {
    requests: Vec<DescribedRequest>,
    pub(super) feeders: Vec<Feeder>,
    pub(super) pick: Pick,
    /// Parts of a file that its requests do not carry.
    pub(super) left_out: Vec<Problem>,
    /// Values of responses that later requests need, as they are written in templates.
    pub(super) kept: Vec<String>,
    /// Where the requests are those of a log.
    pub(super) log: Option<Log>,
    /// Values for places in flags, if there are any.
    places: Option<HashMap<String, Template>>,
}

/// A request, its variables filled in.
#[derive(Debug)]
struct DescribedRequest {
    /// The subject of problems with it.
    place: String,
    /// Its site, and its path if that is always the same.
    endpoint: Endpoint,
    /// Path and query, if they are not always the same.
    target: Option<Template>,
    /// Everything else that its file says.
    file: Option<FileRequest>,
    weight: u32,
    /// Whether it is the handshake of a WebSocket.
    is_websocket: bool,
    /// Variables that responses of its file give values to.
    set: SetVariables,
    /// What later requests need of its response.
    kept: Vec<KeptValue>,
}

impl Described {
    /// The URLs, for what depends on their schemes and hosts.
    pub(super) fn endpoints(&self) -> Vec<Endpoint> {
        let endpoints = self.requests.iter().map(|request| request.endpoint.clone());
        endpoints.collect()
    }

    /// Whether the URLs are those of WebSockets; all are of one kind.
    pub(super) fn is_websocket(&self) -> bool {
        self.requests.iter().any(|request| request.is_websocket)
    }

    /// Whether requests need values of responses to earlier ones.
    pub(super) fn is_chain(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Whether later requests need something of bodies.
    pub(super) fn keeps_bodies(&self) -> bool {
        let mut kept = self.requests.iter().flat_map(|request| &request.kept);
        kept.any(|kept| kept.extraction.needs_body())
    }

    /// Rows of the shortest feeder whose rows are used once.
    pub(super) fn rows_used_once(&self) -> Option<u64> {
        let feeders = self.feeders.iter();
        feeders
            .filter(|feeder| feeder.order == FeederOrder::Sequential)
            .map(|feeder| feeder.table.rows() as u64)
            .min()
    }

    /// Exchanges after which the rows of a feeder are used up, if that is known: each exchange needs a row. Of several
    /// requests some may need none.
    pub(super) fn most_exchanges(&self) -> Option<u64> {
        self.rows_used_once().filter(|_| self.requests.len() == 1)
    }

    /// Fills the places in the texts of flags, if anything is given for them.
    pub(super) fn fill(&self, parts: &mut RequestParts, problems: &mut Problems) {
        let Some(variables) = &self.places else {
            return;
        };
        let mut without_value = MissingVariables::default();
        parts.fill(&mut |flag, text| {
            let template = problems.value(flag, Template::parse(text))?;
            fill(&template, variables, &self.feeders, &[])
                .map_err(|missing| without_value.add(flag, missing))
                .ok()
        });
        without_value.report(&self.feeders, problems);
    }

    /// The names under which `planned`, which [`encode`](Self::encode) returned, are counted: those of their file, else
    /// methods and URLs with the places of their templates.
    pub(super) fn names(&self, planned: &[PlannedRequest]) -> RequestNames {
        // A virtual user of WebSockets stays with one request.
        if self.is_websocket() {
            return RequestNames::default();
        }
        let names = self
            .requests
            .iter()
            .zip(planned)
            .map(|(described, planned)| {
                let file = described.file.as_ref();
                if let Some(name) = file.and_then(|file| file.name.as_deref()) {
                    return name.trim().to_owned();
                }
                let site = &described.endpoint;
                let url = match &described.target {
                    Some(target) => {
                        format!("{}://{}{target}", site.scheme().name(), site.authority())
                    }
                    None => site.to_string(),
                };
                format!("{} {}", planned.request.method(), masked_text(&url))
            });
        RequestNames::new(names)
    }

    /// Encodes the requests; returns the sites with them.
    pub(super) fn encode(
        &self,
        way: Way<'_>,
        parts: &RequestParts,
        problems: &mut Problems,
    ) -> Option<(Vec<Endpoint>, Vec<PlannedRequest>)> {
        let before = problems.len();
        let mut sites: Vec<Endpoint> = Vec::new();
        let mut positions = HashMap::new();
        let mut planned = Vec::new();
        let mut bytes = 0;
        for described in &self.requests {
            let url = &described.endpoint;
            let site = (url.scheme(), url.authority().to_owned());
            let endpoint = *positions.entry(site).or_insert_with(|| {
                sites.push(url.clone());
                sites.len() - 1
            });
            let Some(request) = self.encode_one(described, endpoint, way, parts, problems) else {
                continue;
            };
            bytes += request.request.size() as u64;
            if bytes > MOST_REQUEST_BYTES {
                problems.add(
                    "--from",
                    "the requests, each with its body, take more than 1 GiB",
                );
                return None;
            }
            planned.push(request);
        }
        if problems.len() == before {
            self.check_feeders(&planned, problems);
        }
        (problems.len() == before).then_some((sites, planned))
    }

    fn encode_one(
        &self,
        described: &DescribedRequest,
        endpoint: usize,
        way: Way<'_>,
        parts: &RequestParts,
        problems: &mut Problems,
    ) -> Option<PlannedRequest> {
        let url = &described.endpoint;
        let content = parts.content(url, described.file.as_ref());
        let is_fixed = described.target.is_none()
            && content
                .headers
                .iter()
                .all(|(_, value)| value.as_text().is_some())
            && content
                .body
                .as_ref()
                .is_none_or(|body| body.as_text().is_some());
        let weight = described.weight;
        if is_fixed {
            let request = problems.value(&described.place, content.encode(url, way))?;
            return Some(PlannedRequest {
                weight,
                kept: described.kept.clone(),
                ..PlannedRequest::fixed(endpoint, request)
            });
        }
        let on_the_way = content.on_the_way(url, way);
        let OnTheWay { form, headers } = problems.value(&described.place, on_the_way)?;
        let mut target = Template::literal(form);
        target.push(
            described
                .target
                .clone()
                .unwrap_or_else(|| Template::literal(url.path_and_query())),
        );
        let compiled = RequestTemplate::compile(
            &content.method,
            &target,
            url.authority(),
            &headers,
            content.body.as_ref(),
            ValueSources {
                feeders: &self.feeders,
                kept: &self.kept,
            },
            TemplateForm {
                protocol: way.protocol,
                scheme: url.scheme().name(),
                coding: content.coding,
            },
        );
        match compiled {
            Ok((template, request)) => Some(PlannedRequest {
                endpoint,
                request,
                template: Some(Arc::new(template)),
                weight,
                kept: described.kept.clone(),
            }),
            Err(TemplateProblem::Variable(missing)) => {
                let mut without_value = MissingVariables::default();
                without_value.add(&described.place, vec![missing]);
                without_value.report(&self.feeders, problems);
                None
            }
            Err(error) => problems.value(&described.place, Err(error)),
        }
    }

    /// Rows that nothing asks for are a mistake in a name.
    fn check_feeders(&self, planned: &[PlannedRequest], problems: &mut Problems) {
        for (position, feeder) in self.feeders.iter().enumerate() {
            let is_used = planned
                .iter()
                .filter_map(|request| request.template.as_ref())
                .any(|template| template.uses(position));
            if !is_used {
                let columns: Vec<_> = feeder
                    .table
                    .columns()
                    .iter()
                    .map(|column| format!("`{{{{{column}}}}}`"))
                    .collect();
                problems.add(
                    "--feeder",
                    format!(
                        "no request has a place for a value of {}: {}",
                        feeder.name,
                        columns.join(", ")
                    ),
                );
            }
        }
    }
}

/// Puts variables in their places; columns of feeders and what responses give values to stay places.
///
/// - `set`: variables that responses give values to.
fn fill(
    template: &Template,
    variables: &HashMap<String, Template>,
    feeders: &[Feeder],
    set: &[String],
) -> Result<Template, Vec<MissingVariable>> {
    let stays = |name: &str| {
        let mut feeders = feeders.iter();
        set.iter().any(|known| known == name)
            || feeders.any(|feeder| feeder.table.column(name).is_some())
    };
    template.fill(&|name| variables.get(name).cloned(), &stays)
}

/// Reads what the flags name.
///
/// - `url`: that of the command line, or of the embedded origin.
pub(super) fn describe(
    args: &RequestsArgs,
    url: Option<&str>,
    problems: &mut Problems,
) -> Option<Described> {
    let before = problems.len();
    let feeders = feeders(args, problems);
    let variables = variables(args, problems);
    let only: Vec<Selector> = args
        .only
        .iter()
        .filter_map(|text| problems.value("--only", Selector::parse(text)))
        .collect();
    let has_places = !feeders.is_empty() || !args.var.is_empty();
    let places = has_places.then(|| variables.clone());
    let mut reader = Reader {
        flag: if args.urls.is_some() {
            "--urls"
        } else {
            "--from"
        },
        base: None,
        are_targets: false,
        set: SetVariables::default(),
        feeders: &feeders,
        variables,
        without_value: MissingVariables::default(),
        problems,
    };
    let mut left_out = Vec::new();
    let mut log = None;
    let mut has_weights = false;
    let path = args.from.as_ref().or(args.urls.as_ref());
    let mut requests = match path {
        None => reader.command_line(url?, has_places)?,
        Some(path) => {
            if let Some(url) = url {
                reader.base = Some(reader.problems.value("URL", Endpoint::parse(url))?);
            }
            let format = match args.urls {
                Some(_) => Some(Format::Urls),
                None => args.from_format,
            };
            let (mut file, format, appearance) = reader.file(path, format)?;
            left_out = notes(path, reader.flag, &file.left_out);
            if let (None, Some(base)) = (&reader.base, &file.base) {
                reader.offer(base);
            }
            let is_log = !file.arrivals.is_empty();
            if is_log {
                if reader.base.is_none() {
                    reader.problems.push(log::needs_url(&file, path));
                    return None;
                }
                reader.are_targets = true;
                let without_bodies = log::leave_out_bodies(&mut file, &only, path);
                if let (true, Some(problem)) = (
                    file.requests.iter().all(|it| it.weight == 0),
                    &without_bodies,
                ) {
                    reader.problems.push(problem.clone());
                    return None;
                }
                left_out.extend(without_bodies);
            }
            reader.learn(std::mem::take(&mut file.variables));
            let set = file.requests.iter().flat_map(|request| &request.sets);
            reader.set = set.map(|(name, _)| name.clone()).collect();
            let mut which_environment = None;
            if format == Format::Http {
                let found = Environments::find(path);
                let (values, note) = found.choose(args.env.as_deref(), reader.problems);
                reader.fall_back(values);
                which_environment = note;
            } else if args.env.is_some() {
                reader.problems.add("--env", "is for `.http` files");
            }
            let before_values = reader.problems.len();
            let (chosen, positions) = reader.choose(path, file.requests, &only, appearance);
            if let Some(problem) =
                which_environment.filter(|_| reader.problems.len() > before_values)
            {
                reader.problems.push(problem);
            }
            if is_log {
                let read = Log::new(&file.arrivals, &positions);
                left_out.push(read.note(path));
                log = Some(read);
            }
            has_weights = log.is_none() && chosen.iter().any(|request| request.weight != 1);
            chosen
        }
    };
    // Requests that are wrong would be missed by those that need values of them.
    let kept = if problems.len() == before {
        chain::link(&mut requests, problems)
    } else {
        Vec::new()
    };
    if !kept.is_empty() && args.pick.is_some_and(|pick| pick != args::Pick::Turn) {
        let message = "has no meaning where requests need values of one another";
        problems.add("--pick", message);
    }
    let websockets = requests.iter().filter(|request| request.is_websocket);
    if ![0, requests.len()].contains(&websockets.count()) {
        let flag = if args.urls.is_some() {
            "--urls"
        } else {
            "--from"
        };
        problems.add(
            flag,
            "has URLs of WebSockets and others; a run has one kind",
        );
    }
    if path.is_none() && !only.is_empty() {
        problems.add(
            "--only",
            "chooses from a file of requests; give one by --from",
        );
    }
    if requests.is_empty() && problems.len() == before {
        problems.add("--only", "no request of the file is chosen");
    }
    (problems.len() == before).then_some(Described {
        requests,
        feeders,
        pick: match (args.pick, &log) {
            _ if !kept.is_empty() => Pick::Sequence,
            (Some(args::Pick::Random), _) => Pick::Random,
            (Some(args::Pick::Weighted), _) => Pick::Weighted,
            (Some(args::Pick::Turn) | None, Some(log)) => Pick::Recorded(Arc::clone(&log.entries)),
            (None, None) if has_weights => Pick::Weighted,
            (Some(args::Pick::Turn) | None, None) => Pick::Turn,
        },
        left_out,
        kept,
        log,
        places,
    })
}

fn feeders(args: &RequestsArgs, problems: &mut Problems) -> Vec<Feeder> {
    let mut feeders = Vec::new();
    for path in &args.feeder {
        let Some(text) = text_of(path, "--feeder", problems) else {
            continue;
        };
        match Table::parse(&text) {
            Err(remarks) => report(&remarks, "--feeder", path, problems),
            Ok(table) => feeders.push(Feeder {
                name: path.display().to_string(),
                table: Arc::new(table),
                order: match args.feeder_order {
                    args::FeederOrder::Sequential => FeederOrder::Sequential,
                    args::FeederOrder::Cyclic => FeederOrder::Cyclic,
                    args::FeederOrder::Random => FeederOrder::Random,
                    args::FeederOrder::PerUser => FeederOrder::PerUser,
                },
            }),
        }
    }
    feeders
}

#[expect(clippy::disallowed_methods, reason = "this is the binary")]
fn variables(args: &RequestsArgs, problems: &mut Problems) -> HashMap<String, Template> {
    let mut variables = HashMap::new();
    for text in &args.var {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Ok(value.to_owned())),
            None => (text.as_str(), std::env::var(text)),
        };
        // Reported once here, it need not be reported again for each place.
        let value = value.unwrap_or_else(|_| {
            problems.push(
                Problem::with("--var", format!("the environment has no variable `{text}`")).hint(
                    format!("write `--var {text}=VALUE` to give the value itself"),
                ),
            );
            String::new()
        });
        variables.insert(name.trim().to_owned(), Template::literal(value));
    }
    variables
}

/// The content of a file, or of standard input for `-`.
fn text_of(path: &Path, flag: &str, problems: &mut Problems) -> Option<String> {
    let bytes = problems.file_or_stdin(flag, path)?;
    let text = String::from_utf8(bytes).ok();
    if text.is_none() {
        problems.push(not_utf8(flag, path));
    }
    text
}

fn not_utf8(flag: &str, path: &Path) -> Problem {
    Problem::with(flag, format!("{} is not UTF-8", path.display()))
}

fn report(remarks: &[Remark], flag: &str, path: &Path, problems: &mut Problems) {
    for remark in remarks {
        problems.push(of_remark(remark, flag, path));
    }
}

fn of_remark(remark: &Remark, flag: &str, path: &Path) -> Problem {
    let message = match &remark.place {
        Place::Whole => format!("{} {}", path.display(), remark.message),
        place => format!("{}{place}: {}", path.display(), remark.message),
    };
    let problem = Problem::with(flag, message);
    match &remark.hint {
        Some(hint) => problem.hint(hint.clone()),
        None => problem,
    }
}

fn notes(path: &Path, flag: &str, left_out: &[Remark]) -> Vec<Problem> {
    let note = |remark: &Remark| {
        let message = format!(
            "{}{}: left out {}",
            path.display(),
            remark.place,
            remark.message
        );
        let note = Problem::with(flag, message);
        match &remark.hint {
            Some(hint) => note.hint(hint.clone()),
            None => note,
        }
    };
    let mut notes: Vec<_> = left_out.iter().take(MOST_NOTES).map(note).collect();
    if left_out.len() > MOST_NOTES {
        let more = left_out.len() - MOST_NOTES;
        let message = format!("{}: left out {more} more", path.display());
        notes.push(Problem::with(flag, message));
    }
    notes
}
