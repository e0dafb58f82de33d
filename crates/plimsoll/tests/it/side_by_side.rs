//! The pages of those who come from another gateway: docs/from-nginx.md and its neighbours. Each of their configurations is run, and each of
//! their requests gets the response that the page says: of the other programs themselves as far as Debian has them, of plimsoll, and of what
//! the import makes of the other's configuration.

mod expectation;
mod page;
mod peer;
mod request;
mod servers;
mod surroundings;

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_testkit::eventually;
use plimsoll_testkit::http::{HttpResponse, talk};
use plimsoll_wire::process::Process;
use rustix::process::Signal;

use self::expectation::Expectation;
use self::page::{Page, Pair, Row, System, Task};
use self::peer::Peer;
use self::request::{Received, is_later, send, times};
use self::surroundings::{Ports, Surroundings, authority, ours};
use crate::docs::WORKSPACE;
use crate::pebble::Pebble;
use crate::plimsoll::plimsoll;
use crate::served::Served;
use crate::tutorials::Described;

/// Tasks that all pages have, in one order.
const SHARED: usize = 20;

#[test]
fn from_nginx() {
    check(Peer::Nginx);
}

#[test]
fn from_traefik() {
    check(Peer::Traefik);
}

#[test]
fn from_caddy() {
    check(Peer::Caddy);
}

#[test]
fn from_haproxy() {
    check(Peer::HaProxy);
}

#[test]
fn all_pages_have_the_same_tasks() {
    let peers = [Peer::Nginx, Peer::Traefik, Peer::Caddy, Peer::HaProxy];
    let names = peers.map(|peer| {
        let page = read(peer);
        for task in &page.tasks {
            let place = format!("{}: {}", page.file, task.name);
            assert!(
                task.import.is_some(),
                "{place}: nothing says whether the import carries it over"
            );
            for pair in &task.pairs {
                assert!(!pair.ours.is_empty(), "{place}: plimsoll has no block");
                assert!(!pair.rows.is_empty(), "{place}: there is no request");
            }
        }
        let names = page.tasks.iter().take(SHARED).map(|it| it.name.clone());
        names.collect::<Vec<_>>()
    });
    assert_eq!(names[0].len(), SHARED);
    for others in &names[1..] {
        assert_eq!(&names[0], others);
    }
}

fn read(peer: Peer) -> Page {
    let (name, peer, language, separator) = peer.page();
    let file = format!("docs/{name}.md");
    let text = fs::read_to_string(Path::new(WORKSPACE).join(&file)).unwrap();
    Page::read(&file, &text, peer, language, separator)
}

/// Runs all tasks of a page, and fails with everything that differs.
fn check(peer: Peer) {
    let page = read(peer);
    let around = Surroundings::new();
    let mut unmet = Vec::new();
    for task in &page.tasks {
        let run = TaskRun {
            page: &page,
            task,
            peer,
            around: &around,
        };
        run.check(&mut unmet);
    }
    assert!(unmet.is_empty(), "{}", unmet.join("\n"));
}

/// A task with what it runs in.
struct TaskRun<'r> {
    page: &'r Page,
    task: &'r Task,
    peer: Peer,
    around: &'r Surroundings,
}

impl TaskRun<'_> {
    fn check(&self, unmet: &mut Vec<String>) {
        for pair in &self.task.pairs {
            self.check_peer(pair, unmet);
            self.check_import(pair, unmet);
        }
        let [first, rest @ ..] = self.task.pairs.as_slice() else {
            unreachable!("a task has a pair");
        };
        self.check_ours(first, rest.first(), unmet);
    }

    fn check_peer(&self, pair: &Pair, unmet: &mut Vec<String>) {
        /// Another program may take one of its ports before it does.
        const STARTS: usize = 3;
        let mut reasons = String::new();
        for _ in 0..STARTS {
            let pebble = authority(&pair.ours);
            let _authority = pebble.as_ref().map(Pebble::start);
            let (pebble, ports) = (pebble.as_ref(), ports(pebble.as_ref()));
            self.around.clear();
            let text = self.around.adapt(&pair.peer);
            let mut process = match self.peer.start(&text, &ports, pebble, self.around) {
                Ok(Some(process)) => process,
                Ok(None) => return,
                Err(reason) => {
                    reasons.push_str(&reason);
                    continue;
                }
            };
            await_certificate(&text, pebble, &ports, self.around);
            let mut own = Vec::new();
            self.rows(&pair.rows, System::Peer, &ports, Some(&process), &mut own);
            if process.wait(Duration::ZERO).is_none() {
                unmet.extend(own);
                return;
            }
            reasons.push_str(&process.stderr_tail());
        }
        panic!("{}: {}: {reasons}", self.page.file, self.task.name);
    }

    /// Imports the configuration of the other program, and runs the result if the page says that it is the same.
    fn check_import(&self, pair: &Pair, unmet: &mut Vec<String>) {
        self.around.clear();
        let pebble = authority(&pair.ours);
        let _authority = pebble.as_ref().map(Pebble::start);
        let (pebble, ports) = (pebble.as_ref(), ports(pebble.as_ref()));
        let (from, to) = (
            self.around.folder().join(self.peer.imported()),
            self.around.folder().join("imported.toml"),
        );
        fs::remove_file(&to).ok();
        let text = self.around.adapt(&pair.peer);
        fs::write(&from, self.peer.for_import(&text, &ports)).unwrap();
        let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
        let output = plimsoll(&["gateway", "import", from, "-o", to]);
        let claim = self.task.import.as_deref().unwrap_or_default();
        if claim.starts_with("not carried over") {
            assert!(
                output.code != Some(0) || output.stderr.contains("note: "),
                "{}: {}: something is left out, and the import says nothing: {output}",
                self.page.file,
                self.task.name
            );
            return;
        }
        assert!(claim.starts_with("carried over"), "{claim}");
        let notes = output.exits(0);
        let toml = ours(&fs::read_to_string(to).unwrap(), &ports, pebble);
        let before = unmet.len();
        self.serve(&toml, System::Imported, pair, None, &ports, pebble, unmet);
        if unmet.len() > before {
            unmet.push(format!("{notes}\n{toml}"));
        }
    }

    fn check_ours(&self, pair: &Pair, next: Option<&Pair>, unmet: &mut Vec<String>) {
        self.around.clear();
        let pebble = authority(&pair.ours);
        let _authority = pebble.as_ref().map(Pebble::start);
        let (pebble, ports) = (pebble.as_ref(), ports(pebble.as_ref()));
        let text = |pair: &Pair| ours(&self.around.adapt(&pair.ours), &ports, pebble);
        let next = next.map(|it| (text(it), it));
        let next = next.as_ref().map(|(text, pair)| (text.as_str(), *pair));
        self.serve(&text(pair), System::Ours, pair, next, &ports, pebble, unmet);
    }

    /// - `next`: what is reloaded to, behind the rows of the first.
    #[expect(clippy::too_many_arguments, reason = "all of it differs by the system")]
    fn serve(
        &self,
        toml: &str,
        system: System,
        pair: &Pair,
        next: Option<(&str, &Pair)>,
        ports: &Ports,
        pebble: Option<&Pebble>,
        unmet: &mut Vec<String>,
    ) {
        let file = self.around.folder().join("plimsoll.toml");
        fs::write(&file, toml).unwrap();
        let path = file.to_str().unwrap();
        plimsoll(&["up", "--check", path]).exits(0);
        let served = Served::start(&["up", path]);
        await_certificate(toml, pebble, ports, self.around);
        self.rows(&pair.rows, system, ports, None, unmet);
        if let Some((toml, next)) = next {
            fs::write(&file, toml).unwrap();
            let lost = while_requests_come(ports, || {
                served.signal(Signal::HUP);
                eventually(|| {
                    let mut unmet = Vec::new();
                    self.rows(&next.rows, system, ports, None, &mut unmet);
                    unmet.is_empty()
                });
            });
            assert_eq!(
                lost, 0,
                "requests were lost while the file was loaded again"
            );
        }
    }

    fn rows(
        &self,
        rows: &[Row],
        system: System,
        ports: &Ports,
        process: Option<&Process>,
        unmet: &mut Vec<String>,
    ) {
        let jar = self.around.folder().join("cookies");
        fs::remove_file(&jar).ok();
        for row in rows {
            let Some(response) = row.response(system, &self.page.peer) else {
                continue;
            };
            let place = format!(
                "{}:{}: {system:?}: {}",
                self.page.file, row.line, row.request
            );
            let _described = Described(|| place.clone());
            let expectation = Expectation::from_cells(response, row.cell("the server gets"));
            let send = || send(&row.request, ports, self.around, &jar);
            let mut found = outcome(&row.request, &expectation, send);
            if found.is_err() && is_later(&row.request) {
                eventually(|| {
                    found = outcome(&row.request, &expectation, send);
                    found.is_ok()
                });
            }
            if let Err(why) = found {
                unmet.push(format!("{place}: {why}"));
            }
            for (text, _) in expectation::spans(row.cell("the log has")) {
                let log = || {
                    let written = fs::read_to_string(self.around.log()).unwrap_or_default();
                    written + &process.map(Process::stdout_tail).unwrap_or_default()
                };
                // The import has names of members of its own.
                if system != System::Imported {
                    eventually(|| log().contains(&text));
                }
            }
        }
    }
}

/// The ports that are listened at: those of the authority if there is one.
fn ports(pebble: Option<&Pebble>) -> Ports {
    pebble.map_or_else(Ports::free, Ports::for_authority)
}

/// Sends the request of a row as often as it says, and until all of the servers that it names have got it.
fn outcome(
    request: &str,
    expectation: &Expectation,
    send: impl Fn() -> Received,
) -> Result<(), String> {
    /// Of two servers that take turns each gets a request long before.
    const MOST: u32 = 200;
    /// So that chance does not decide, and several workers may take their turns by themselves.
    const FOR_SHARES: u32 = 90;
    let times = if expectation.is_twice {
        FOR_SHARES
    } else {
        times(request)
    };
    let mut seen = BTreeMap::<String, u32>::new();
    for sent in 1..=MOST {
        let received = send();
        if let Some(unmet) = expectation.unmet(&received) {
            return Err(format!("{unmet}: {received:?}"));
        }
        *seen.entry(received.server().to_owned()).or_default() += 1;
        if expectation.is_one_server && seen.len() > 1 {
            return Err(format!("several servers got it: {seen:?}"));
        }
        if sent >= times && seen.len() >= expectation.servers.len() {
            return if expectation.is_twice {
                shared_by_two(&seen, &expectation.servers)
            } else {
                Ok(())
            };
        }
    }
    Err(format!("only {seen:?} got it"))
}

/// Whether the first server got about twice as many requests as the second one.
fn shared_by_two(seen: &BTreeMap<String, u32>, servers: &[String]) -> Result<(), String> {
    let [first, second] = servers else {
        panic!("a share is that of two servers");
    };
    let share = f64::from(seen[first]) / f64::from(seen[second]);
    let is_near = (1.5..=2.7).contains(&share);
    is_near
        .then_some(())
        .ok_or_else(|| format!("the shares differ: {seen:?}"))
}

/// Waits for the certificate that a program orders of an authority.
fn await_certificate(text: &str, pebble: Option<&Pebble>, ports: &Ports, around: &Surroundings) {
    // nginx and HAProxy have theirs in files.
    if pebble.is_none() || text.contains("/ssl/shop") {
        return;
    }
    let jar = around.folder().join("cookies");
    eventually(|| {
        let request = "`GET https://shop.example.org/`";
        send(request, ports, around, &jar).status == 200
    });
}

/// Sends requests one after another while something is done; returns how many got no 200, or no response.
fn while_requests_come(ports: &Ports, act: impl FnOnce()) -> usize {
    let address = (Ipv4Addr::LOCALHOST, ports.port("80").unwrap());
    let (is_over, sent, lost) = (
        AtomicBool::new(false),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    std::thread::scope(|scope| {
        // Also if what is done fails.
        let end = OnDrop(|| is_over.store(true, Ordering::Relaxed));
        scope.spawn(|| {
            let request = b"GET / HTTP/1.1\r\nHost: shop.example.org\r\nConnection: close\r\n\r\n";
            while !is_over.load(Ordering::Relaxed) {
                let received = HttpResponse::parse(&talk(address, request));
                if received.is_none_or(|it| it.status != 200) {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
                sent.fetch_add(1, Ordering::Relaxed);
            }
        });
        eventually(|| sent.load(Ordering::Relaxed) > 10);
        act();
        let before = sent.load(Ordering::Relaxed);
        eventually(|| sent.load(Ordering::Relaxed) > before + 10);
        drop(end);
    });
    lost.into_inner()
}

/// Something that is done at the end.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
