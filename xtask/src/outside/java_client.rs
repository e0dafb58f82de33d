//! WireMock's own tests, of the release whose client is used, against `plimsoll up` with a mock in the place of the server
//! that they start within the test.
//!
//! The checkout is WireMock's repository at that release. `java/` has what stands for the base of its tests: the server is
//! another process, reached by the client library alone. Tests of Java's extensions are left out.

use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use super::{Bench, Results};
use crate::{Failure, Outcome};

/// Tests that reach the server by HTTP alone.
const TESTS: [&str; 27] = [
    "AdminApiTest",
    "BasicAuthAcceptanceTest",
    "CookieMatchingAcceptanceTest",
    "DateHeaderAcceptanceTest",
    "EditMappingAcceptanceTest",
    "EditStubMappingAcceptanceTest",
    "FaultsAcceptanceTest",
    "GlobalSettingsAcceptanceTest",
    "HeaderMatchingAcceptanceTest",
    "JsonSchemaMatchingAcceptanceTest",
    "MappingsAcceptanceTest",
    "MultipartBodyMatchingAcceptanceTest",
    "NearMissesAcceptanceTest",
    "RecordApiAcceptanceTest",
    "RecordingDslAcceptanceTest",
    "RemoveStubMappingAcceptanceTest",
    "SavingMappingsAcceptanceTest",
    "ScenarioAcceptanceTest",
    "ServeEventLogAcceptanceTest",
    "SnapshotDslAcceptanceTest",
    "StubImportAcceptanceTest",
    "StubMetadataAcceptanceTest",
    "StubbingAcceptanceTest",
    "SubServeEventsAcceptanceTest",
    "UrlMatchingAcceptanceTest",
    "UrlPathTemplateMatchingTest",
    "VerificationAcceptanceTest",
];

/// Further files of the tests that these use.
const HELPERS: [&str; 4] = [
    "junit5/EnabledIfJettyVersion",
    "junit5/EnabledIfJettyVersionCondition",
    "matching/MockMultipart",
    "matching/MockRequest",
];

/// What is another type where the server is another process.
const REPLACEMENTS: [(&str, &str); 5] = [
    (r"\bWireMockServer\b", "RemoteServer"),
    (r"\bStubbing dsl\b", "RemoteServer dsl"),
    (
        r"\badmin = wireMockServer;",
        "admin = wireMockServer.admin();",
    ),
    (r"import [\w.]+\.RemoteServer;", ""),
    // Names of fields are compared letter by letter.
    (
        r"builder\.put\(header\.getName\(\), ",
        "builder.put(com.github.tomakehurst.wiremock.AcceptanceTestBase.capitals(header.getName()), ",
    ),
];

const PACKAGE: &str = "java/com/github/tomakehurst/wiremock";

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let project = bench.scratch.join("wiremock");
    let sources = project.join("src/test").join(PACKAGE);
    let tests = bench.checkout.join("src/test");
    let fixtures = bench.checkout.join("src/testFixtures").join(PACKAGE);
    copy(&fixtures, &sources, &|_| true)?;
    copy(&tests.join(PACKAGE), &sources, &|name| {
        let name = name.strip_suffix(".java").unwrap_or(name);
        TESTS.contains(&name) || HELPERS.contains(&name)
    })?;
    copy(
        &tests.join("resources"),
        &project.join("src/test/resources"),
        &|_| true,
    )?;
    for (name, text) in [
        (
            "AcceptanceTestBase.java",
            include_str!("java/AcceptanceTestBase.java"),
        ),
        ("RemoteServer.java", include_str!("java/RemoteServer.java")),
    ] {
        write(&sources.join(name), text.as_bytes())?;
    }
    write(&project.join("pom.xml"), include_bytes!("java/pom.xml"))?;
    let mut mvn = Command::new("mvn");
    mvn.args(["-q", "-B", "test", "-Dmaven.test.failure.ignore=true"])
        .arg(format!("-DargLine=-Dplimsoll={}", bench.plimsoll.display()))
        .current_dir(&project);
    let output = mvn.output().map_err(|error| format!("mvn: {error}"))?;
    let mut results = Results::default();
    read_reports(&project.join("target/surefire-reports"), &mut results).map_err(|error| {
        let printed = String::from_utf8_lossy(&output.stdout);
        let first = printed.lines().find(|line| line.contains("ERROR"));
        format!("{}: {}", error.0, first.unwrap_or_default())
    })?;
    Ok(results)
}

/// Copies the files of a folder whose paths below it are wanted; sources with their replacements.
fn copy(from: &Path, to: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Outcome {
    let mut folders = vec![from.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|it| format!("{}: {it}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|it| it.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let below = path.strip_prefix(from).map_err(|it| it.to_string())?;
            if !is_wanted(&below.to_string_lossy()) {
                continue;
            }
            let bytes = fs::read(&path).map_err(|it| it.to_string())?;
            let is_source = path.extension().is_some_and(|it| it == "java");
            match String::from_utf8(bytes) {
                Ok(text) if is_source => write(&to.join(below), replaced(text).as_bytes())?,
                Ok(text) => write(&to.join(below), text.as_bytes())?,
                Err(error) => write(&to.join(below), error.as_bytes())?,
            }
        }
    }
    Ok(())
}

fn replaced(mut text: String) -> String {
    for (old, new) in REPLACEMENTS {
        let old = Regex::new(old).expect("it is a pattern");
        text = old.replace_all(&text, new).into_owned();
    }
    text
}

fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|it| format!("{}: {it}", path.display()).into())
}

/// Each test is a case, with the first line of why it failed.
fn read_reports(folder: &Path, results: &mut Results) -> Outcome {
    let case =
        Regex::new(r"(?s)<testcase ([^>]*?)(?:/>|>(.*?)</testcase>)").expect("it is a pattern");
    let attribute = |name: &str| Regex::new(&format!(r#"\b{name}="([^"]*)""#));
    let [name, class] = ["name", "classname"].map(|it| attribute(it).expect("it is a pattern"));
    let reason =
        Regex::new(r"(?s)<(?:failure|error)\b[^>]*>(?:<!\[CDATA\[)?(.*?)(?:\n\s*at |\]\]>|</)")
            .expect("it is a pattern");
    let mut files: Vec<_> = fs::read_dir(folder)
        .map_err(|it| format!("{}: {it}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "xml"))
        .collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|it| it.to_string())?;
        for found in case.captures_iter(&text) {
            let attributes = &found[1];
            let value = |of: &Regex| of.captures(attributes).map(|it| it[1].to_owned());
            let class = value(&class).unwrap_or_default();
            let class = class.rsplit('.').next().unwrap_or_default();
            let shown = format!("{class} {}", value(&name).unwrap_or_default());
            let content = found.get(2).map_or("", |it| it.as_str());
            if content.contains("<skipped") {
                results.skip("a test that WireMock leaves out");
            } else if let Some(reason) = reason.captures(content) {
                let words: Vec<_> = reason[1].split_whitespace().take(40).collect();
                results.add_result(shown, Err(words.join(" ")));
            } else {
                results.add_result(shown, Ok(()));
            }
        }
    }
    Ok(())
}
