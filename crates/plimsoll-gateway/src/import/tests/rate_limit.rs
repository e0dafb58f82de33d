//! `limit_req`, `limit_conn`, their zones, and `limit_rate`.

use super::check;

#[test]
fn limits_on_rates_are_layers_of_their_routes() {
    check(
        r"
        http {
            limit_req_zone $binary_remote_addr zone=login:10m rate=30r/m;
            limit_req_zone $http_x_api_key zone=api:10m rate=10r/s;
            limit_req_zone $server_name zone=whole:1m rate=500r/s;
            limit_req_zone $request_length zone=cookie:1m rate=1r/s;
            server {
                listen 80;
                limit_req zone=whole;
                limit_req_status 429;
                location /api/ {
                    limit_req zone=api burst=20 nodelay;
                    limit_req zone=login;
                    proxy_pass http://127.0.0.1:1;
                }
                location /cookie/ { limit_req zone=cookie; proxy_pass http://127.0.0.1:2; }
                location /login/ { limit_req zone=login burst=5; proxy_pass http://127.0.0.1:2; }
                location /gone/ { limit_req zone=login; return 410; }
                location /lost/ { limit_req zone=nowhere; proxy_pass http://127.0.0.1:2; }
                location / { root /srv/www; }
            }
        }
        ",
        &[
            "prefix = \"/cookie/\"",
            "prefix = \"/login/\"\nproxy",
            "rate_limit = { requests = 30, per = \"1m\", burst = 6, at_once = 1, status = 429 }",
            "prefix = \"/gone/\"\nrespond = { status = 410, body = \"\" }\n\n",
            "prefix = \"/api/\"\nproxy",
            "rate_limit = [{ requests = 10, per = \"1s\", burst = 21, key = \"{header:x-api-key}\", status = 429 }, { requests = 30, per = \"1m\", burst = 1, status = 429 }]",
            "prefix = \"/\"\nfiles = { root = \"/srv/www\" }\nrate_limit = { requests = 500, per = \"1s\", burst = 1, key = \"all\", status = 429 }",
        ],
        &[
            "limit_req: left out: `$request_length` has no counterpart as a key",
            "limit_req: left out: there is no zone `nowhere`",
            "nginx.conf:13: limit_req: each location counts by itself; nginx would count all of the zone `login` together",
            "nginx.conf:17: limit_req: each location counts by itself",
        ],
    );
}

#[test]
fn limits_of_connections_and_bandwidth_are_layers_too() {
    check(
        r"
        http {
            limit_conn_zone $binary_remote_addr zone=addr:10m;
            limit_conn_zone $server_name zone=whole:10m;
            limit_req_zone $binary_remote_addr zone=z:1m rate=5r/s;
            server {
                listen 80;
                root /srv;
                location /files/ {
                    limit_conn addr 2;
                    limit_conn whole 100;
                    limit_rate 100k;
                    limit_rate_after 1m;
                }
                location /app/ { limit_req zone=z burst=10 delay=3; proxy_pass http://127.0.0.1:1; }
                location /try/ { limit_conn addr 1; limit_conn_dry_run on; limit_rate $slow; }
            }
        }
        ",
        &[
            "in_flight_limit = [{ requests = 2, status = 503 }, { requests = 100, key = \"all\", status = 503 }]\nbandwidth = { rate = \"100KiB\", after = \"1MiB\" }",
            "rate_limit = { requests = 5, per = \"1s\", burst = 11, at_once = 4, status = 503 }",
        ],
        &[
            "limit_conn: each location counts by itself; nginx would count all of the zone `addr` together",
            "limit_conn_dry_run: nothing is limited",
            "limit_rate: left out: the rate cannot depend on the request",
        ],
    );
}

#[test]
fn a_zone_that_one_place_counts_in_has_no_note() {
    let imported = |inner: &str| {
        let zones = "limit_req_zone $binary_remote_addr zone=z:1m rate=5r/s; limit_conn_zone $binary_remote_addr zone=c:1m;";
        super::imported(&format!("http {{ {zones} {inner} }}"))
    };
    for (inner, notes) in [
        ("server { limit_req zone=z; location / { root /a; } }", 0),
        (
            "server { limit_req zone=z; location / { root /a; } location /b { return 404; } }",
            0,
        ),
        (
            "server { limit_req zone=z; location / { root /a; } location /b { limit_req zone=y; root /b; } }",
            0,
        ),
        (
            "limit_conn c 1; server { location / { root /a; } } server { listen 81; location / { root /b; } }",
            1,
        ),
        (
            "server { location / { limit_conn c 1; root /a; } location /b { limit_conn c 1; root /b; } }",
            1,
        ),
        (
            "server { limit_req zone=z; location / { root /a; } location /b { root /b; } }",
            1,
        ),
        (
            "server { location /a/ { limit_req zone=z; root /a; location /a/b/ { root /b; } } }",
            1,
        ),
    ] {
        let found = imported(inner);
        let said: Vec<_> = found.notes.iter().map(|it| &it.message).collect();
        let count = said
            .iter()
            .filter(|it| it.contains("each location counts by itself"))
            .count();
        assert_eq!(count, notes, "{inner}\n{said:#?}");
    }
}
