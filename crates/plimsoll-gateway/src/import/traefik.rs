//! Traefik, versions 2 and 3: files of its dynamic configuration and labels of compose files, translated.
//!
//! Source: Traefik's documentation, "Routing & Load Balancing", "Middlewares", "Docker", "File".

mod access_log;

mod conditions;

mod environment;

mod errors;

mod fields;

mod labels;

mod listeners;

mod middlewares;

mod model;

mod paths;

mod routers;

mod rule;

mod services;

mod streams;

mod values;

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use plimsoll_formats::yaml::{Node, documents};
use plimsoll_model::document::toml_string;

use self::listeners::{Listener, Named, listeners};
use self::middlewares::Surroundings;
use self::model::{Model, merge};
use self::routers::{Router, routers, routes};
use self::services::Services;
use self::streams::streams;
use super::loads::loading;
use super::nginx::Directive;
use super::rows::maps::Maps;
use super::rows::value_maps::ValueMaps;
use super::servers::Translation;
use super::{ImportError, Imported, Notes};

const NO_ROUTER: &str = "no router of HTTP or TCP can be translated; give the file that has `http.routers`, or a compose file with labels";

/// Whether a file is one of Traefik, by its lines: a dynamic or static configuration in YAML, or a compose file with labels.
pub fn is_traefik(text: &str) -> bool {
    let has_line = |wanted: &[&str]| text.lines().any(|it| wanted.contains(&it.trim_end()));
    let has_within = |wanted: &[&str]| text.lines().any(|it| wanted.contains(&it.trim()));
    let is_dynamic = has_line(&["http:", "tcp:", "udp:"])
        && has_within(&[
            "routers:",
            "middlewares:",
            "services:",
            "serversTransports:",
        ]);
    is_dynamic
        || has_line(&["entryPoints:"])
        || has_line(&["services:"]) && text.contains("traefik.")
}

/// Translates a file of Traefik. What has no counterpart is reported.
///
/// - `file`: its name, for the report.
pub fn import_traefik(file: &str, text: &str) -> Result<Imported, ImportError> {
    let mut notes = Notes::default();
    let model = model(file, text, &mut notes)?;
    let mut maps = ValueMaps::default();
    let routers = routers(&model, &mut maps, &mut notes);
    let is_http = |entry_point: &str| {
        let mut routers = routers.iter();
        routers.any(|it| it.has_entry_point(entry_point))
    };
    let streams = streams(&model, is_http, &mut notes);
    let places = routers.iter().map(|it| &it.place);
    let Some(first) = places.chain(&streams.first).next().cloned() else {
        return Err(ImportError {
            file: file.to_owned(),
            line: 1,
            reason: NO_ROUTER.to_owned(),
        });
    };
    report_others(&model, &mut notes);
    let mut listeners = if routers.is_empty() {
        Vec::new()
    } else {
        let named = named(&routers, &model);
        listeners(&model, &named, &streams.entry_points, &first, &mut notes)
    };
    order(&routers, &mut listeners, &model, &mut notes);
    let (mut services, mut clients) = (Services::default(), Maps::default());
    let mut reached = BTreeSet::new();
    let mut all = Vec::new();
    for listener in listeners.iter().filter(|it| !it.is_redirect()) {
        let mut around = Surroundings {
            model: &model,
            is_tls: listener.is_tls,
            maps: &mut maps,
            notes: &mut notes,
        };
        all.extend(routes(
            &routers,
            listener,
            &mut services,
            &mut clients,
            &mut around,
            &mut reached,
        ));
    }
    for router in &routers {
        let place = &router.place;
        if !reached.contains(&(place.line, place.name.clone())) {
            notes.add(place, "left out: no request gets to it");
        }
    }
    let mut head = String::new();
    let files = certificates(&model);
    for listener in &listeners {
        listener.write(&model, &files, &mut head);
    }
    head.push_str(&streams.listeners);
    access_log::write(&model, &mut head, &mut notes);
    clients.write(&mut head);
    maps.write(&mut head);
    let mut upstreams = services.upstreams;
    upstreams.extend(streams.upstreams);
    let parts = Translation {
        source: "a configuration of Traefik",
        head,
        at: (Rc::from(file), first.line),
        routes: all,
        upstreams,
    };
    let directory = Path::new(file).parent().unwrap_or(Path::new(""));
    let text = loading(parts, directory, &mut notes);
    if !text.lines().any(|it| it == "[[listen]]") {
        let mut reasons = notes.0.iter().filter(|it| it.message.contains("listen"));
        let reason = reasons.next_back().map(|it| it.message.clone());
        return Err(ImportError {
            file: file.to_owned(),
            line: first.line,
            reason: format!(
                "no entry point can be listened on: {}",
                reason.unwrap_or_default()
            ),
        });
    }
    Ok(Imported::new(text, notes))
}

fn model(file: &str, text: &str, notes: &mut Notes) -> Result<Model, ImportError> {
    let name: Rc<str> = Rc::from(file);
    let mut dynamic = Node::default();
    let mut fixed = Node::default();
    let mut providers: &[&str] = &["file"];
    let text = environment::with_stand_ins(text, |line, variable, stand_in| {
        let place = Directive::place(&name, line, "env");
        let message =
            format!("`{stand_in}` stands for `{variable}`, whose value is not in the file");
        notes.add(&place, message);
    });
    for document in documents(&text).map_err(|it| ImportError::of_yaml(file, &it))? {
        let is_compose = document.get("services").is_there() && !document.get("http").is_there();
        if is_compose {
            let labelled = labels::labelled(&name, &document, notes);
            merge(&mut dynamic, &labelled.dynamic);
            merge(&mut fixed, &labelled.fixed);
            providers = &["docker", "swarm"];
        } else {
            merge(&mut dynamic, &document);
            merge(&mut fixed, &document);
        }
    }
    Ok(Model {
        file: name,
        providers,
        dynamic,
        fixed,
    })
}

/// The entry points that routers name.
fn named(routers: &[Router], model: &Model) -> Vec<Named> {
    let mut all: Vec<Named> = Vec::new();
    for router in routers {
        for name in &router.entry_points {
            let known = all.iter().position(|it| it.name.eq_ignore_ascii_case(name));
            let at = known.unwrap_or_else(|| {
                all.push(Named {
                    name: name.clone(),
                    ..Named::default()
                });
                all.len() - 1
            });
            if let Some(named) = all.get_mut(at) {
                named.has_tls |= router.is_tls;
                named.has_clear |= !router.is_tls;
            }
        }
    }
    // A router for all entry points needs one of its kind.
    let has_fixed = !model.fixed.get("entryPoints").entries().is_empty();
    let for_all = routers
        .iter()
        .filter(|it| it.entry_points.is_empty() && !has_fixed);
    for router in for_all {
        let (name, is_tls) = if router.is_tls {
            ("websecure", true)
        } else {
            ("web", false)
        };
        if !all.iter().any(|it| it.has_tls == is_tls || it.name == name) {
            all.push(Named {
                name: name.to_owned(),
                has_tls: is_tls,
                has_clear: !is_tls,
            });
        }
    }
    all
}

/// Has listeners order the certificates of their routers.
fn order(routers: &[Router], listeners: &mut [Listener], model: &Model, notes: &mut Notes) {
    let mut has_terms = false;
    for listener in listeners.iter_mut().filter(|it| it.is_tls) {
        let own: Vec<&Router> = routers.iter().filter(|it| it.is_at(listener)).collect();
        for router in own {
            let place = &router.place;
            if !router.is_tls {
                notes.add(
                    place,
                    format!(
                        "it is taken to have TLS, as its entry point `{}` has",
                        listener.name
                    ),
                );
            }
            let Some((resolver, names)) = router.certificates() else {
                continue;
            };
            for name in names {
                listener.order(name, resolver, place, notes);
            }
            let acme = model
                .fixed
                .get("certificatesResolvers")
                .get(resolver)
                .get("acme");
            if acme.get("dnsChallenge").is_there() {
                notes.add(place, format!("certificates of `{resolver}` are ordered by `tls-alpn-01`, as there are no challenges by DNS"));
            }
            if !has_terms {
                has_terms = true;
                notes.add(place, "`accept_terms = true` says that you agree to the terms of the authority, as Traefik does for those who run it");
            }
        }
    }
}

/// Certificates with their keys in files.
fn certificates(model: &Model) -> Vec<String> {
    let all = model.dynamic.at("tls.certificates").items().iter();
    let stores = model.dynamic.at("tls.stores.default.defaultCertificate");
    let pairs = all.chain([stores]).filter_map(|it| {
        let (certificate, key) = (it.text_at("certFile")?, it.text_at("keyFile")?);
        let (certificate, key) = (toml_string(certificate), toml_string(key));
        Some(format!("{{ cert = {certificate}, key = {key} }}"))
    });
    let mut made = Vec::new();
    for pair in pairs {
        if !made.contains(&pair) {
            made.push(pair);
        }
    }
    made
}

/// Reports what is neither HTTP nor a certificate.
fn report_others(model: &Model, notes: &mut Notes) {
    for (name, node) in model.dynamic.at("udp.routers").entries() {
        let place = model.place(node, &format!("udp.routers.{name}"));
        notes.add(&place, "left out: write `udp` of a `[[listen]]`");
    }
    for (key, node) in model.dynamic.entries() {
        let known = [
            "http",
            "tcp",
            "udp",
            "tls",
            "entrypoints",
            "certificatesresolvers",
            "services",
            "accesslog",
        ];
        // What is written down about requests, and where configurations come from.
        let silent = ["log", "global", "providers", "version"];
        let name = key.to_ascii_lowercase();
        if !known.contains(&name.as_str())
            && !silent.contains(&name.as_str())
            && !name.starts_with("x-")
        {
            notes.add(&model.place(node, key), "left out");
        }
    }
    for (name, node) in model.dynamic.at("tls.options").entries() {
        let place = model.place(node, &format!("tls.options.{name}"));
        notes.add(&place, "left out: versions and ciphers are those of rustls");
    }
}

#[cfg(test)]
mod tests;
