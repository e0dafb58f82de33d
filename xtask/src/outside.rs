//! `cargo xtask outside --from DIR`: suites that other projects wrote, run as they are against `plimsoll`.
//!
//! DIR holds checkouts under their repositories' names (`prism`, `stubr`, …); suites that are not there are left out. Those of
//! applications of Debian need none, and run where they are named (`--only wordpress`).
//! Nothing of them is committed: cases of our own cover the same ground in the normal tests. A case that fails although
//! we are right has its reason in `differences.toml`.

mod applications;

mod cache_tests;

mod contracts;

mod differential;

mod documents;

mod examples;

mod exchange;

mod gateway_api;

mod go;

mod http11probe;

mod java_client;

mod json_server;

mod jsonpath;

mod mockoon;

mod nginx;

mod nginx_tests;

mod node_files;

mod prism;

mod redirects;

mod sdks;

mod stubr;

mod wiremock;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::bench::target_directory;
use crate::packages::{self, CURL};
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

/// What is run
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Directory of the checkouts, each under the name of its repository
    #[arg(long, value_name = "DIR", required_unless_present = "only")]
    from: Option<PathBuf>,

    /// Run only these suites [default: all with a checkout; `wordpress` and `django` need none]
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Test this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// Write the counts into docs/conformance.md
    #[arg(long)]
    write: bool,

    /// Print every case that failed, the explained ones too
    #[arg(long)]
    verbose: bool,
}

/// A suite and how it is run.
#[derive(Clone, Copy)]
struct Suite {
    /// The repository's name and that of the folder.
    name: &'static str,
    /// What its cases test.
    about: &'static str,
    run: fn(&Bench<'_>) -> Result<Results, Failure>,
}

const SUITES: [Suite; 26] = [
    Suite {
        name: "jsonpath-compliance-test-suite",
        about: "JSON paths (RFC 9535) in conditions of rules",
        run: jsonpath::run,
    },
    Suite {
        name: "Http11Probe",
        about: "hostile and unusual HTTP/1.1 requests to `plimsoll up`",
        run: http11probe::run,
    },
    Suite {
        name: "cache-tests",
        about: "the response cache of the gateway (RFC 9111)",
        run: cache_tests::run,
    },
    Suite {
        name: "prism",
        about: "OpenAPI documents served by `plimsoll mock`",
        run: prism::run,
    },
    Suite {
        name: "discord-api-spec",
        about: "contents made by `plimsoll mock` for Discord's OpenAPI document",
        run: documents::run,
    },
    Suite {
        name: "openapi",
        about: "contents made for DigitalOcean's, of more than 1,000 files",
        run: documents::run,
    },
    Suite {
        name: "octokit-openapi",
        about: "contents made for GitHub's",
        run: documents::run,
    },
    Suite {
        name: "spotify-web-api",
        about: "contents made for Spotify's",
        run: documents::run,
    },
    Suite {
        name: "sdks",
        about: "calls of the clients of Stripe, OpenAI, Twilio, Docker and Kubernetes, to mocks of their documents",
        run: sdks::run,
    },
    Suite {
        name: "stubr",
        about: "stubs in WireMock's format, with requests to them",
        run: stubr::run,
    },
    Suite {
        name: "wiremock-mappings",
        about: "mappings of public repositories, beside WireMock itself: the request that each describes, and a mutated one",
        run: wiremock::run,
    },
    Suite {
        name: "wiremock",
        about: "WireMock's own tests of its Java client, with `plimsoll` as the server",
        run: java_client::run,
    },
    Suite {
        name: "mockoon-environments",
        about: "environments of public repositories, beside Mockoon itself: the requests that responses describe, and mutated ones",
        run: mockoon::run,
    },
    Suite {
        name: "json-server-files",
        about: "files of public repositories, beside json-server itself: requests to each list, reading and writing",
        run: json_server::run,
    },
    Suite {
        name: "redirect-files",
        about: "`_redirects` of public repositories, by Netlify's parser: the path of each rule, and a mutated one",
        run: redirects::files,
    },
    Suite {
        name: "spring-cloud-contract",
        about: "WireMock mappings that have to load",
        run: contracts::run,
    },
    Suite {
        name: "wiremock.org",
        about: "mappings in WireMock's documentation that have to be carried over whole",
        run: examples::wiremock_org,
    },
    Suite {
        name: "mock-samples",
        about: "Mockoon's sample environments that have to be carried over whole",
        run: examples::mock_samples,
    },
    Suite {
        name: "har-to-k6",
        about: "HAR files that have to be read whole",
        run: examples::har_to_k6,
    },
    Suite {
        name: "send",
        about: "requests for static files to `plimsoll serve`",
        run: node_files::send,
    },
    Suite {
        name: "serve-static",
        about: "requests for static files to `plimsoll serve`",
        run: node_files::serve_static,
    },
    Suite {
        name: "workers-sdk",
        about: "Cloudflare's `_redirects`, served",
        run: redirects::cloudflare,
    },
    Suite {
        name: "build",
        about: "Netlify's `_redirects`, served",
        run: redirects::netlify,
    },
    Suite {
        name: "gateway-api",
        about: "HTTP routes of the Gateway API's conformance tests, imported: their requests",
        run: gateway_api::run,
    },
    Suite {
        name: "nginx-tests",
        about: "nginx's own tests, their configurations imported: those cases that nginx passes here",
        run: nginx_tests::run,
    },
    Suite {
        name: "go",
        about: "requests that Go's net/http accepts or rejects",
        run: go::run,
    },
];

/// Suites that need packages of Debian in place of a checkout.
const APPLICATIONS: [Suite; 2] = [
    Suite {
        name: "wordpress",
        about: "WordPress behind php-fpm with Debian's configuration of nginx, imported: requests of a visitor and an author compared with nginx",
        run: applications::wordpress::run,
    },
    Suite {
        name: "django",
        about: "Django's administration behind uWSGI, in the same way",
        run: applications::django::run,
    },
];

/// All suites, in the order of their rows.
fn suites() -> impl Iterator<Item = Suite> {
    let suites = SUITES.into_iter().chain(nginx::suites());
    suites.chain(APPLICATIONS)
}

/// What a suite has to run with.
struct Bench<'a> {
    /// The suite's checkout.
    checkout: &'a Path,
    /// The program under test.
    plimsoll: PathBuf,
    /// A directory for files that are made on the way.
    scratch: PathBuf,
    /// Where programs that are built once are kept.
    target: PathBuf,
}

/// What the cases of a suite came to.
#[derive(Debug, Default)]
struct Results {
    passed: usize,
    /// Names of cases and what was seen instead.
    failed: Vec<(String, String)>,
    /// Cases that this runner cannot express, by reason.
    skipped: BTreeMap<&'static str, usize>,
}

impl Results {
    /// Notes the result of one case: nothing, or what was seen instead.
    fn add_result(&mut self, case: impl Into<String>, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(seen) => self.failed.push((case.into(), seen)),
        }
    }

    fn skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }
}

/// Reasons by suite and the beginning of a case's name, or with a `$` at the end the whole of it.
type Differences = BTreeMap<String, BTreeMap<String, String>>;

/// Whether a reason of that name is for a case.
fn is_for(name: &str, case: &str) -> bool {
    match name.strip_suffix('$') {
        Some(whole) => case == whole,
        None => case.starts_with(name),
    }
}

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    packages::install(root, &[CURL])?;
    let target = target_directory(root)?;
    let plimsoll = if let Some(program) = &arguments.program {
        fs::canonicalize(program)
            .map_err(|error| format!("cannot open {}: {error}", program.display()))?
    } else {
        step::run(root, &mut cargo(&["build", "--locked"]))?;
        target.join("debug/plimsoll")
    };
    let from = arguments.from.as_ref().map(|from| {
        fs::canonicalize(from).map_err(|error| format!("cannot open {}: {error}", from.display()))
    });
    let from = from.transpose()?;
    let differences: Differences = toml::from_str(include_str!("outside/differences.toml"))
        .map_err(|error| format!("xtask/src/outside/differences.toml: {error}"))?;
    let mut rows = Vec::new();
    let mut unexplained = 0;
    for suite in suites() {
        let scratch = target.join(format!("outside-{}", std::process::id()));
        let is_named = arguments.only.iter().any(|it| it == suite.name);
        let checkout = if APPLICATIONS.iter().any(|it| it.name == suite.name) {
            Some(scratch.clone()).filter(|_| is_named)
        } else {
            let is_wanted = arguments.only.is_empty() || is_named;
            let checkout = from.as_ref().map(|from| from.join(suite.name));
            checkout.filter(|it| is_wanted && it.is_dir())
        };
        let Some(checkout) = checkout else {
            continue;
        };
        println!("\n== {}", suite.name);
        fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
        let results = (suite.run)(&Bench {
            checkout: &checkout,
            plimsoll: plimsoll.clone(),
            scratch: scratch.clone(),
            target: target.clone(),
        });
        // A leftover lies in the target directory.
        fs::remove_dir_all(&scratch).ok();
        let results = results?;
        let explained = differences.get(suite.name);
        let reason = |case: &str| {
            let reasons = explained?.iter().find(|(name, _)| is_for(name, case));
            reasons.map(|(_, reason)| reason.as_str())
        };
        for (case, seen) in &results.failed {
            match reason(case) {
                None => println!("FAILED     {case}: {seen}"),
                Some(reason) if arguments.verbose => {
                    println!("different  {case}: {seen} ({reason})");
                }
                Some(_) => {}
            }
        }
        let failed = results.failed.iter();
        let failed = failed.filter(|(case, _)| reason(case).is_none()).count();
        unexplained += failed;
        let different = results.failed.len() - failed;
        println!(
            "{} passed, {failed} failed, {different} different for a reason",
            results.passed
        );
        // Files that are not there have their reasons too, so this is no failure.
        let is_used = |name: &str| results.failed.iter().any(|(case, _)| is_for(name, case));
        for (name, reason) in explained.into_iter().flatten() {
            if !is_used(name) {
                println!("no case differs by `{name}`: {reason}");
            }
        }
        for (reason, count) in &results.skipped {
            println!("{count} skipped: {reason}");
        }
        rows.push(row(&suite, &results, failed, different));
    }
    if rows.is_empty() {
        return Err(format!(
            "{} holds none of: {}",
            from.map_or_else(String::new, |it| it.display().to_string()),
            suites().map(|it| it.name).collect::<Vec<_>>().join(", ")
        )
        .into());
    }
    if arguments.write {
        write(root, &rows, &differences)?;
    }
    match unexplained {
        0 => Ok(()),
        count => Err(format!("{count} cases failed without a reason in differences.toml").into()),
    }
}

fn row(suite: &Suite, results: &Results, failed: usize, different: usize) -> String {
    let skipped: usize = results.skipped.values().sum();
    format!(
        "| {} | {} | {} | {failed} | {different} | {skipped} |",
        suite.name, suite.about, results.passed
    )
}

/// The table and the reasons stand between two marks of the page, whose other text stays; so do the rows of suites that
/// did not run.
fn write(root: &Path, rows: &[String], differences: &Differences) -> Outcome {
    const BEGIN: &str = "<!-- outside: begin -->\n";
    const END: &str = "<!-- outside: end -->";
    let path = root.join("docs/conformance.md");
    let page = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let (before, rest) = page
        .split_once(BEGIN)
        .ok_or("docs/conformance.md lacks the mark of the table's beginning")?;
    let (table, after) = rest
        .split_once(END)
        .ok_or("docs/conformance.md lacks the mark of the table's end")?;
    let rows = suites().filter_map(|suite| {
        let beginning = format!("| {} |", suite.name);
        let is_it = |row: &&str| row.starts_with(&beginning);
        let mut new = rows.iter().map(String::as_str);
        new.find(is_it).or_else(|| table.lines().find(is_it))
    });
    let rows: Vec<_> = rows.collect();
    let mut text = format!(
        "{before}{BEGIN}| suite | cases | passed | failed | different | skipped |\n|---|---|---|---|---|---|\n{}\n",
        rows.join("\n")
    );
    for (suite, reasons) in differences {
        text.extend(["\n**", suite, "**, where plimsoll differs on purpose:\n\n"]);
        for (case, reason) in reasons {
            let case = case.strip_suffix('$').unwrap_or(case);
            text.extend(["- `", case, "`: ", reason, "\n"]);
        }
    }
    text.push_str(END);
    text.push_str(after);
    fs::write(&path, text).map_err(|error| error.to_string().into())
}
