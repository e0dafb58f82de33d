use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use plimsoll_server::{Counters, Engine, EnginePlan, ListenerPlan, Serves, WorkerContext};

use super::*;
use crate::files::changes::Changes;
use crate::files::directory::Directory;

/// A site of one large file.
struct Served {
    shared: Arc<SiteState>,
    engine: Engine,
    _root: tempfile::TempDir,
}

impl Served {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let text = "{\"key\": \"value\"},\n".repeat(20_000);
        fs::create_dir(root.path().join("deep")).unwrap();
        fs::write(root.path().join("deep/bigfile.json"), text).unwrap();
        let tree = Directory::new(root.path().to_owned(), Changes::none());
        let shared = Arc::new(SiteState::new(
            SitePlan::default(),
            Arc::new(tree),
            "",
            Arc::default(),
            None,
            None,
        ));
        let of_worker = Arc::clone(&shared);
        let action = move |_: &WorkerContext| {
            Rc::new(Files::new(Arc::clone(&of_worker), None)) as Rc<dyn Action>
        };
        let listener = ListenerPlan::new(
            "127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap(),
            Serves::clear(Arc::new(action)),
        );
        let engine = Engine::start(&EnginePlan::new(vec![listener]), Arc::<Counters>::default());
        Self {
            shared,
            engine: engine.unwrap(),
            _root: root,
        }
    }

    /// The head of the response.
    fn ask(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(self.engine.addresses()[0]).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: a\r\naccept-encoding: br\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut received = Vec::new();
        Read::by_ref(&mut stream)
            .take(1 << 24)
            .read_to_end(&mut received)
            .unwrap();
        let received = String::from_utf8_lossy(&received);
        received.split("\r\n\r\n").next().unwrap().to_owned()
    }
}

const SPELLINGS: [&str; 5] = [
    "/deep/bigfile.json",
    "/deep/%62igfile.json",
    "/deep/b%69gfile.json",
    "/%64eep/bigfile%2Ejson",
    "/deep/bigfile.json?x",
];

#[test]
fn a_file_is_compressed_once_however_its_path_is_spelled() {
    let served = Served::new();
    for path in SPELLINGS {
        let head = served.ask("GET", path);
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        assert!(head.contains("content-encoding: br"), "{path}: {head}");
    }
    assert_eq!(served.shared.compressor.started(), 1);
}

#[test]
fn nothing_is_compressed_for_head() {
    let served = Served::new();
    for path in SPELLINGS {
        let head = served.ask("HEAD", path);
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        assert!(head.contains("content-encoding: br"), "{path}: {head}");
        assert!(!head.contains("content-length"), "{path}: {head}");
    }
    assert_eq!(served.shared.compressor.started(), 0);
    let got = served.ask("GET", SPELLINGS[0]);
    let after = served.ask("HEAD", SPELLINGS[0]);
    let fields = |head: &str| {
        let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
        lines.retain(|line| !line.starts_with("date: "));
        lines
    };
    assert_eq!(fields(&got), fields(&after), "a made form has its length");
}
