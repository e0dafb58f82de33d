//! Error pages of services, and routers of TCP.

use super::check;

#[test]
fn errors_lead_to_pages_of_a_service() {
    let services = "  services:\n    shop: { loadBalancer: { servers: [ { url: 'http://10.0.0.1:80' } ] } }\n    pages: { loadBalancer: { servers: [ { url: 'http://10.0.0.2:80' } ] } }\n";
    let text = |status: &str, query: &str| {
        format!(
            "entryPoints: {{ web: {{ address: ':80' }} }}\nhttp:\n  routers:\n    shop: {{ entryPoints: [web], rule: Host(`a.test`), service: shop, middlewares: [sorry] }}\n  middlewares:\n    sorry: {{ errors: {{ status: {status}, service: pages, query: '{query}' }} }}\n{services}"
        )
    };
    check(
        &text("['500-599', '404']", "/sorry?a=$1"),
        &[
            "proxy = { to = \"http://10.0.0.1:80\", intercept_errors = true }\non_status = { 5xx = \"/.errors/sorry\", 404 = \"/.errors/sorry\" }\n",
            "internal = true\nlisten = \"web\"\nhost = \"a.test\"\npath = \"/.errors/sorry\"\nproxy = { to = \"http://10.0.0.2:80\", rewrite = { from = \"^.*$\", to = \"/sorry?a=$$1\" } }\n",
        ],
        &[],
    );
    check(
        &text("['501-502']", "/{status}.html"),
        &[
            "on_status = { 501 = \"/.errors/sorry/501\", 502 = \"/.errors/sorry/502\" }\n",
            "path = \"/.errors/sorry/501\"\n",
            "to = \"/501.html\"",
            "path = \"/.errors/sorry/502\"\n",
        ],
        &[],
    );
    for (status, query, note) in [
        ("['500-599']", "/{status}.html", "left out: `query`"),
        ("['500-599']", "/{url}", "left out: `query`"),
        ("['200-299']", "/", "left out: `status`"),
        ("['505-599']", "/", "left out: `status`"),
    ] {
        let lines = ["proxy = \"http://10.0.0.1:80\"\n"];
        check(&text(status, query), &lines, &[note]);
    }
}

#[test]
fn routers_of_tcp_are_listeners_of_layer_4() {
    check(
        "entryPoints:\n  db: { address: ':5432' }\n  tls: { address: ':8443/tcp', proxyProtocol: { trustedIPs: [10.0.0.0/8] } }\n  web: { address: ':80' }\n\
        http:\n  routers:\n    shop: { entryPoints: [web], rule: Host(`a.test`), service: shop }\n  services:\n    shop: { loadBalancer: { servers: [ { url: 'http://10.0.0.1:80' } ] } }\n\
        tcp:\n  routers:\n    db: { entryPoints: [db], rule: HostSNI(`*`), service: db, middlewares: [inside] }\n    a: { entryPoints: [tls], rule: 'HostSNI(`a.test`) || HostSNI(`b.test`)', service: a, tls: { passthrough: true } }\n    \
        b: { entryPoints: [tls], rule: HostSNI(`*`), service: db, tls: { passthrough: true } }\n    c: { entryPoints: [tls], rule: HostSNI(`c.test`), service: a, tls: {} }\n    \
        d: { entryPoints: [web], rule: HostSNI(`*`), service: a }\n    e: { entryPoints: [db], rule: HostSNI(`*`), service: a, middlewares: [limited] }\n    f: { entryPoints: [db], rule: ClientIP(`10.0.0.0/8`), service: a }\n    g: { entryPoints: [db], rule: HostSNI(`*`), service: a }\n  \
        middlewares:\n    inside: { ipAllowList: { sourceRange: [10.0.0.0/8] } }\n    limited: { inFlightConn: { amount: 1 } }\n  \
        services:\n    db: { loadBalancer: { servers: [ { address: '10.0.0.2:5432' } ] } }\n    a: { loadBalancer: { servers: [ { address: '10.0.0.3:443' }, { address: '10.0.0.4:443' } ] } }\n",
        &[
            "[[listen]]\naddress = \":80\"\nname = \"web\"\n",
            "[[listen]]\naddress = \":5432\"\nname = \"db\"\ntcp = { to = \"tcp://10.0.0.2:5432\", addresses = { allow = [\"10.0.0.0/8\"] } }\n",
            "[[listen]]\naddress = \":8443\"\nname = \"tls\"\nproxied_by = [\"10.0.0.0/8\"]\ntcp = { to = \"tcp://10.0.0.2:5432\", routes = [{ sni = [\"a.test\", \"b.test\"], to = \"a-tcp\" }] }\n",
            "[upstream.a-tcp]\nservers = [\"tcp://10.0.0.3:443\", \"tcp://10.0.0.4:443\"]\n",
        ],
        &[
            "tcp.routers.c: left out: TLS that ends here",
            "tcp.routers.d: left out: entry point `web` has routers of HTTP too",
            "tcp.routers.e: left out: the middleware `limited` may keep clients out",
            "tcp.routers.f: left out: `ClientIP(`10.0.0.0/8`)` is no rule",
            "tcp.routers.g: left out: another router of its entry point has other addresses",
        ],
    );
    check(
        "entryPoints:\n  db: { address: '127.0.0.1:5432' }\ntcp:\n  routers:\n    db: { entryPoints: [db], rule: HostSNI(`*`), service: db }\n  services:\n    db: { loadBalancer: { proxyProtocol: { version: 1 }, servers: [ { address: '10.0.0.2:5432' } ] } }\n",
        &[
            "[[listen]]\naddress = \"127.0.0.1:5432\"\nname = \"db\"\ntcp = { to = \"tcp://10.0.0.2:5432\", proxy_protocol = \"v1\" }\n",
        ],
        &[],
    );
}
