//! Running monitors with their APIs, called without sockets.

use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Method, Request, StatusCode};
use plimsoll_monitor::config::load;
use plimsoll_monitor::engine::Monitor;
use plimsoll_monitor::store::{SqliteOptions, SqlitePath, SqliteStore};
use plimsoll_monitor_web::action;
use plimsoll_testkit::eventually;
use serde_json::Value;
use tower_service::Service as _;

/// Calls routes.
pub(crate) struct Client {
    router: Router,
    runtime: tokio::runtime::Runtime,
}

/// A monitor whose file is in its own folder.
pub(crate) struct Running {
    pub(crate) monitor: Monitor,
    client: Client,
    /// The notices to the operator.
    pub(crate) notices: Arc<Mutex<Vec<String>>>,
}

impl Deref for Running {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// A process that runs the checks, or waits for another one to end.
pub(crate) struct Process {
    pub(crate) leased: action::LeasedMonitor,
    client: Client,
}

impl Deref for Process {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Process {
    /// Starts one for a configuration file.
    pub(crate) fn start(config: &Path) -> Self {
        let plan = match load(config, &|_| None) {
            Ok(plan) => plan,
            Err(error) => panic!("{error:?}"),
        };
        let leased = action::LeasedMonitor::start(plan, Arc::new(|_: &str| {})).unwrap();
        let client = Client::new(leased.router());
        Self { leased, client }
    }
}

impl Running {
    /// Monitors what a file of this name and text says, with its own store.
    pub(crate) fn new(directory: &Path, name: &str, text: &str) -> Self {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        let plan = match load(&path, &|_| None) {
            Ok(plan) => plan,
            Err(error) => panic!("{error:?}"),
        };
        let store = plan.open_store().unwrap();
        let notices = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&notices);
        let notice = move |message: &str| seen.lock().unwrap().push(message.to_owned());
        let monitor = plimsoll_monitor_web::start(plan, store, Arc::new(notice)).unwrap();
        Self {
            client: Client::new(plimsoll_monitor_web::router(monitor.handle().clone())),
            monitor,
            notices,
        }
    }
}

impl Client {
    pub(crate) fn new(router: Router) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Self { router, runtime }
    }

    /// The routes, for clients on other threads.
    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(crate) fn get(&self, path: &str) -> (StatusCode, String) {
        self.call(Method::GET, path, &[], "")
    }

    pub(crate) fn call(
        &self,
        method: Method,
        path: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> (StatusCode, String) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let mut router = self.router.clone();
        self.runtime.block_on(async move {
            let response = router.call(request).await.unwrap();
            let status = response.status();
            let content = to_bytes(response.into_body(), 10_000_000).await.unwrap();
            (status, String::from_utf8(content.to_vec()).unwrap())
        })
    }

    /// A whole response, so that its fields can be looked at.
    pub(crate) fn response(
        &self,
        method: Method,
        path: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> http::Response<String> {
        self.response_from(None, method, path, fields, body)
    }

    /// The same to a client at an address.
    pub(crate) fn response_from(
        &self,
        client: Option<IpAddr>,
        method: Method,
        path: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> http::Response<String> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(client) = client {
            request = request.extension(SocketAddr::new(client, 50_000));
        }
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let mut router = self.router.clone();
        self.runtime.block_on(async move {
            let (parts, body) = router.call(request).await.unwrap().into_parts();
            let content = to_bytes(body, 10_000_000).await.unwrap();
            let content = String::from_utf8_lossy(&content).into_owned();
            http::Response::from_parts(parts, content)
        })
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let (status, text) = self.get(path);
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The same with a field.
    pub(crate) fn json_as(&self, field: (&str, &str), path: &str) -> Value {
        let (status, text) = self.call(Method::GET, path, &[field], "");
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Waits until a monitor is in that health.
    #[track_caller]
    pub(crate) fn wait_for(&self, key: &str, health: &str) {
        let path = format!("/api/v1/monitors/{key}");
        eventually(|| self.json(&path)["health"] == health);
    }
}

/// A store in a file.
pub(crate) fn sqlite(path: &Path) -> SqliteStore {
    SqliteStore::open(&SqlitePath::File(path.to_owned()), SqliteOptions::default()).unwrap()
}
