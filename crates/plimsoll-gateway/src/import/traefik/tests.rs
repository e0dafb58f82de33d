use super::*;

fn imported(text: &str) -> Imported {
    let imported = import_traefik("traefik.yml", text).unwrap();
    // What is written loads.
    let problems = crate::import::loads::problems(&imported.toml, Path::new(""));
    assert!(problems.is_empty(), "{problems:?}\n{}", imported.toml);
    imported
}

/// The translation has these lines in this order, and its notes are these.
#[track_caller]
fn check(text: &str, lines: &[&str], notes: &[&str]) {
    assert!(is_traefik(text));
    let imported = imported(text);
    let mut rest = imported.toml.as_str();
    for line in lines {
        let Some((_, after)) = rest.split_once(line) else {
            panic!(
                "`{line}` is missing, or not in this order:\n{}",
                imported.toml
            );
        };
        rest = after;
    }
    let shown: Vec<_> = imported.notes.iter().map(ToString::to_string).collect();
    for note in notes {
        assert!(
            shown.iter().any(|it| it.contains(note)),
            "{note}\n{shown:#?}"
        );
    }
    assert!(notes.len() >= shown.len(), "{shown:#?}\n{}", imported.toml);
}

const COMPOSE: &str = r#"services:
  traefik:
    image: traefik:v3.1
    command:
      - --entrypoints.web.address=:80
      - --entrypoints.web.http.redirections.entrypoint.to=websecure
      - --entrypoints.websecure.address=:443
      - --certificatesresolvers.le.acme.email=${MAIL:-ops@example.org}
      - --certificatesresolvers.le.acme.tlschallenge=true
  whoami:
    image: traefik/whoami
    labels:
      - "traefik.enable=true"
      - "traefik.http.routers.whoami.rule=Host(`whoami.example.org`) && PathPrefix(`/api`)"
      - "traefik.http.routers.whoami.entrypoints=websecure"
      - "traefik.http.routers.whoami.tls.certresolver=le"
      - "traefik.http.routers.whoami.middlewares=auth,strip"
      - "traefik.http.middlewares.auth.basicauth.users=bob:$$2y$$10$$Vr8PO5cFzaJGNbVQSsFpE.jZ4s5aFQv4K2DhaQ4RRmLL8CmIBf0Ge"
      - "traefik.http.middlewares.strip.stripprefix.prefixes=/api"
      - "traefik.http.services.whoami.loadbalancer.server.port=8000"
  other:
    labels:
      traefik.http.routers.other.rule: "Host(`other.example.org`)"
      traefik.http.routers.other.entrypoints: websecure
      traefik.http.routers.other.middlewares: nowhere@file
    expose: [ 3000, "9000/tcp" ]
"#;

#[test]
fn labels_of_a_compose_file() {
    check(
        COMPOSE,
        &[
            "[[listen]]\naddress = \":80\"\nname = \"web\"\nredirect_https = true\n",
            "[[listen]]\naddress = \":443\"\nname = \"websecure\"\ntls = { acme = { names = [\"whoami.example.org\"], contact = \"ops@example.org\", accept_terms = true } }\n",
            "host = \"other.example.org\"\nprefix = \"/\"\nrespond = { status = 501",
            "host = \"whoami.example.org\"\nregex = \"(?-i:/api.*)\"\nproxy = { to = \"http://whoami:8000\", rewrite = { from = \"^/api/*\", to = \"/\" } }\nbasic_auth = { users = { bob = \"$2y$10$",
            "host = \"whoami.example.org\"\nregex = \"/.*\"\nrespond = { status = 404",
        ],
        &[
            "accept_terms",
            "it is taken to have TLS",
            "the middleware `nowhere@file` is not in this file",
        ],
    );
}
