//! `cargo xtask smuggling`: how our server and others answer requests that two readers could understand
//! differently, side by side.

mod recorder;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench::{free_ports, target_directory};
use crate::packages::{self, APACHE, NGINX};
use crate::server::Server;
use crate::smuggling::recorder::Recorder;
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

const NGINX_CONF: &str = include_str!("smuggling/nginx.conf");
const NODE: &str = include_str!("smuggling/server.js");
const GO: &str = include_str!("smuggling/server.go");
const APACHE_CONF: &str = include_str!("smuggling/apache.conf");
const PLIMSOLL: &str = "threads = 1\n[[listen]]\naddress = \"127.0.0.1:{port}\"\n[[route]]\nrespond = { body = \"ok\\n\" }\n";

/// One server: how it is called, and its answers by case.
type Column = (String, BTreeMap<String, String>);

/// What stands between the odd requests and the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Through {
    /// `plimsoll gateway`: every response must be safe, and what reaches each server must be the same requests, each of
    /// which has one meaning
    Gateway,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Send the requests through this, to nginx, Apache, and Node and Go where they are installed
    #[arg(long)]
    through: Option<Through>,
}

const GATEWAY: &str = "threads = 1\n[[listen]]\naddress = \"127.0.0.1:{port}\"\n[[route]]\nproxy = \"http://127.0.0.1:{behind}\"\n";

/// Runs the task; servers that are not installed are left out.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    packages::install(root, &[NGINX, APACHE])?;
    step::run(root, &mut cargo(&["build", "--locked"]))?;
    let target = target_directory(root)?;
    let directory = target.join(format!("smuggling-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let plimsoll = target.join("debug/plimsoll");
    let is_through = arguments.through.is_some();
    let columns = columns(root, &plimsoll, &directory, is_through);
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    let columns = columns?;
    println!("\n{}", table(&columns));
    if !is_through {
        return Ok(());
    }
    let unsafe_cells = columns.iter().flat_map(|(server, answers)| {
        let marked = answers.iter().filter(|(_, cell)| cell.starts_with("**"));
        marked.map(move |(case, cell)| format!("{server}: {case}: {cell}"))
    });
    let unsafe_cells: Vec<_> = unsafe_cells.collect();
    if unsafe_cells.is_empty() {
        return Ok(());
    }
    Err(format!("not safe through the gateway: {}", unsafe_cells.join("; ")).into())
}

/// - `is_through`: the requests go through the gateway.
fn columns(
    root: &Path,
    plimsoll: &Path,
    directory: &Path,
    is_through: bool,
) -> Result<Vec<Column>, Failure> {
    let mut columns: Vec<Column> = Vec::new();
    let mut reached: Option<(String, Vec<String>)> = None;
    let mut add = |name: String, command: &mut Command, port: u16| {
        let _server = Server::start(command.stdout(Stdio::null()))?;
        if !is_through {
            columns.push((name, answers(plimsoll, port)?));
            return Ok::<_, Failure>(());
        }
        let recorder = Recorder::start(port)?;
        let [front] = free_ports()?;
        let text = GATEWAY
            .replace("{port}", &front.to_string())
            .replace("{behind}", &recorder.port().to_string());
        let file = directory.join("gateway.toml");
        fs::write(&file, text).map_err(|error| error.to_string())?;
        let mut gateway = Command::new(plimsoll);
        let _gateway = Server::start(gateway.arg("up").arg(&file).stdout(Stdio::null()))?;
        // Until the server is there the gateway responds with 502, which would look like one that is safe.
        recorder.wait_for_server()?;
        columns.push((name.clone(), answers(plimsoll, front)?));
        let requests = recorder.requests(front)?;
        println!("{name} received {} requests", requests.len());
        match &reached {
            None => reached = Some((name, requests)),
            Some((first, expected)) if *expected != requests => {
                let differing = expected.iter().zip(&requests).find(|(a, b)| a != b);
                return Err(format!(
                    "{first} and {name} received different requests: {} and {}, first {differing:?}",
                    expected.len(),
                    requests.len()
                )
                .into());
            }
            Some(_) => {}
        }
        Ok(())
    };
    let write = |name: &str, text: &str, port: u16| {
        let file = directory.join(name);
        let text = text
            .replace("{port}", &port.to_string())
            .replace("{dir}", &directory.to_string_lossy());
        fs::write(&file, text).map_err(|error| error.to_string())?;
        Ok::<_, Failure>(file)
    };
    if !is_through {
        let [port] = free_ports()?;
        let file = write("plimsoll.toml", PLIMSOLL, port)?;
        add(
            "plimsoll".to_owned(),
            Command::new(plimsoll).arg("up").arg(file),
            port,
        )?;
    }
    if let Some(program) = packages::find("nginx", &[]) {
        let [port] = free_ports()?;
        let file = write("nginx.conf", NGINX_CONF, port)?;
        let mut command = Command::new(program);
        add("nginx".to_owned(), command.arg("-c").arg(file), port)?;
    }
    if is_through && let Some(program) = packages::find("apache2", &[]) {
        let [port] = free_ports()?;
        let file = write("apache.conf", APACHE_CONF, port)?;
        let mut command = Command::new(program);
        command.args(["-X", "-f"]).arg(file);
        add("Apache".to_owned(), &mut command, port)?;
    }
    if let Some(program) = packages::find("node", &[]) {
        let [port] = free_ports()?;
        let file = write("server.js", NODE, port)?;
        let version = step::output(root, Command::new(&program).arg("--version"))?;
        let mut command = Command::new(program);
        let name = format!("Node {}", version.trim());
        add(name, command.arg(file).arg(port.to_string()), port)?;
    }
    if let Some(program) = packages::find("go", &[PathBuf::from("/usr/local/go/bin")]) {
        let [port] = free_ports()?;
        let file = write("server.go", GO, port)?;
        let version = step::output(root, Command::new(&program).args(["env", "GOVERSION"]))?;
        let built = directory.join("server");
        let mut compile = Command::new(program);
        step::run(root, compile.arg("build").arg("-o").arg(&built).arg(file))?;
        let name = format!("Go {}", version.trim().trim_start_matches("go"));
        add(name, Command::new(built).arg(port.to_string()), port)?;
    }
    Ok(columns)
}

/// Asks until the server is there, and then for all cases.
fn answers(plimsoll: &Path, port: u16) -> Result<BTreeMap<String, String>, Failure> {
    let url = format!("http://127.0.0.1:{port}/");
    for _ in 0..100 {
        let arguments = ["chaos", "smuggling", &url, "--json", "--max-p99", "10s"];
        let output = Command::new(plimsoll).args(arguments).output();
        let output = output.map_err(|error| error.to_string())?;
        if let Ok(document) = serde_json::from_slice::<Value>(&output.stdout) {
            let cases = document["cases"].as_array().cloned().unwrap_or_default();
            return Ok(cases.iter().map(cell).collect());
        }
    }
    Err(format!("{url} is not served").into())
}

/// The name of a case, and its answer; marked if that is not safe.
fn cell(case: &Value) -> (String, String) {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let answer = match text("answer") {
        "refused" => "",
        "accepted as one" => "one ",
        "accepted as one, then ended" => "one, end ",
        "accepted as two" => "two ",
        "waits for more" => "waits ",
        other => other,
    };
    let status = case["status"].as_u64().map(|status| status.to_string());
    let cell = format!("{answer}{}", status.unwrap_or_default());
    let cell = cell.trim().to_owned();
    let is_safe = case["safe"].as_bool().unwrap_or_default();
    let cell = if is_safe { cell } else { format!("**{cell}**") };
    (text("name").to_owned(), cell)
}

/// As Markdown, for docs/chaos.md.
fn table(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut lines = vec![
        format!("| case | {} |", names.join(" | ")),
        format!("|---|{}", "---|".repeat(names.len())),
    ];
    let first = columns.first().map(|(_, answers)| answers.keys());
    for case in first.into_iter().flatten() {
        let cells = columns.iter().map(|(_, answers)| {
            let cell = answers.get(case);
            cell.map_or("-", String::as_str)
        });
        let cells: Vec<&str> = cells.collect();
        lines.push(format!("| {case} | {} |", cells.join(" | ")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_safe_stands_out() {
        let case =
            json!({ "name": "a", "answer": "accepted as two", "status": 200, "safe": false });
        assert_eq!(cell(&case), ("a".to_owned(), "**two 200**".to_owned()));
        let case = json!({ "name": "b", "answer": "refused", "status": 400, "safe": true });
        let (name, answer) = cell(&case);
        let columns = vec![
            ("x".to_owned(), BTreeMap::from([(name, answer)])),
            ("y".to_owned(), BTreeMap::new()),
        ];
        assert_eq!(
            table(&columns),
            "| case | x | y |\n|---|---|---|\n| b | 400 | - |"
        );
    }
}
