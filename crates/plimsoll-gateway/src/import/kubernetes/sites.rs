//! Listeners, and what responds at each of them for a host.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::iter;

use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::route::Route;
use super::super::rows::Rows;
use super::super::rows::actions::Action;
use super::super::rows::maps::Maps;
use super::super::rows::matcher::Matcher;
use super::super::rows::steps::{Block, Step};
use super::super::rows::value_maps::ValueMaps;

/// All listeners and hosts so far.
#[derive(Default)]
pub(super) struct Sites {
    listeners: Vec<Listener>,
    /// By listener and host, which is empty for all hosts that are not named.
    hosts: BTreeMap<(ListenerId, String), Site>,
    /// Of conditions on values.
    pub(super) values: ValueMaps,
}

/// A listener, by its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListenerId(usize);

struct Listener {
    /// What requests to it go through in the cluster: others do not see its hosts.
    owner: String,
    /// That of the cluster.
    port: u16,
    /// That of the file.
    own_port: u16,
    /// Host names of the certificates, with TLS; an empty set stands for the name that the client sends.
    names: Option<BTreeSet<String>>,
}

/// What responds for a host.
struct Site {
    place: Directive,
    /// In the order in which they are tried.
    actions: Vec<Action>,
    /// What none of them is for may be for less exact hosts.
    leads_on: bool,
}

impl Sites {
    /// Adds a listener; one whose port another owner has gets another port.
    ///
    /// - `names`: those that certificates are for; `None` without TLS.
    pub(super) fn listen(
        &mut self,
        owner: &str,
        port: u16,
        names: Option<BTreeSet<String>>,
        place: &Directive,
        notes: &mut Notes,
    ) -> ListenerId {
        let mut all = self.listeners.iter();
        let at = all.position(|it| it.owner == owner && it.port == port);
        let at = at.unwrap_or_else(|| {
            let own_port = self.free_port(port);
            if own_port != port {
                let message = format!(
                    "port {own_port} stands for its port {port}, which another one has: write the address of each into `[[listen]]`"
                );
                notes.add(place, message);
            }
            self.listeners.push(Listener {
                owner: owner.to_owned(),
                port,
                own_port,
                names: None,
            });
            self.listeners.len() - 1
        });
        if let (Some(names), Some(listener)) = (names, self.listeners.get_mut(at)) {
            listener.names.get_or_insert_default().extend(names);
        }
        ListenerId(at)
    }

    fn free_port(&self, port: u16) -> u16 {
        let is_free = |port: &u16| self.listeners.iter().all(|it| it.own_port != *port);
        let further = (1..=u16::MAX).map(|by| {
            let by = if by < 6 { by * 10_000 } else { by };
            port.wrapping_add(by).max(1)
        });
        let mut all = iter::once(port).chain(further);
        all.find(is_free).unwrap_or(port)
    }

    /// Adds what responds for a host, behind which other hosts are not asked.
    pub(super) fn add(
        &mut self,
        listener: ListenerId,
        host: &str,
        place: &Directive,
        actions: impl IntoIterator<Item = Action>,
    ) {
        let site = self.site(listener, host, place);
        site.leads_on = false;
        site.actions.extend(actions);
    }

    /// Adds what responds for a host; `*.` hosts that it belongs to may respond to the rest.
    pub(super) fn add_leading_on(
        &mut self,
        listener: ListenerId,
        host: &str,
        place: &Directive,
        actions: impl IntoIterator<Item = Action>,
    ) {
        self.site(listener, host, place).actions.extend(actions);
    }

    fn site(&mut self, listener: ListenerId, host: &str, place: &Directive) -> &mut Site {
        let key = (listener, host.to_owned());
        self.hosts.entry(key).or_insert_with(|| Site {
            place: place.clone(),
            actions: Vec::new(),
            leads_on: true,
        })
    }

    /// The tables of listeners and maps, and the routes.
    pub(super) fn write(self, notes: &mut Notes) -> (String, Vec<Route>) {
        let mut head = String::new();
        if self.listeners.is_empty() {
            // No request is for anything.
            head.push_str("\n[[listen]]\naddress = \":80\"\n");
        }
        for listener in &self.listeners {
            let (port, name) = (listener.own_port, toml_string(&listener.name()));
            write!(head, "\n[[listen]]\naddress = \":{port}\"\nname = {name}\n").ok();
            if let Some(names) = &listener.names {
                let names: Vec<_> = names.iter().map(|it| toml_string(it)).collect();
                let names = if names.is_empty() {
                    "true".to_owned()
                } else {
                    format!("[{}]", names.join(", "))
                };
                writeln!(head, "tls = {{ self_signed = {names} }}").ok();
            }
        }
        let mut routes = Vec::new();
        let mut clients = Maps::default();
        for ((ListenerId(at), host), site) in &self.hosts {
            let name = self.listeners.get(*at).map(Listener::name);
            let name = name.unwrap_or_default();
            routes.extend(site.routes(&name, host, &mut clients, notes));
        }
        clients.write(&mut head);
        self.values.write(&mut head);
        (head, routes)
    }
}

impl Listener {
    /// What it is called in routes.
    fn name(&self) -> String {
        match self.own_port {
            80 => "web".to_owned(),
            443 => "websecure".to_owned(),
            port => format!("port-{port}"),
        }
    }
}

impl Site {
    fn routes(
        &self,
        listener: &str,
        host: &str,
        clients: &mut Maps,
        notes: &mut Notes,
    ) -> Vec<Route> {
        let steps = self.actions.iter().map(|action| Step::Actions {
            matcher: action.matcher.clone(),
            actions: vec![Action {
                matcher: Matcher::default(),
                ..action.clone()
            }],
        });
        let block = Block(steps.collect());
        let mut rows = Rows::of_site(&block, &self.place, self.leads_on, notes);
        rows.in_order();
        let host = Some(host).filter(|it| !it.is_empty());
        let mut made = Vec::new();
        for action in &rows.0 {
            for keys in action.routes(host, listener, clients) {
                made.push(Route::new(&keys, &action.directive));
            }
        }
        made
    }
}
