//! `map`, `geo` and `split_clients`.

use super::check;

#[test]
fn maps_have_hosts_expressions_and_other_maps() {
    check(
        r#"
        http {
            map $host $site { hostnames; default none; a.test one; *.b.test two; .c.test three; d.* four; \default five; }
            map $site:$arg_v $full { ~^one:(?<v>.*)$ "v=$v"; ~*TWO "$1"; volatile; }
            map $http_upgrade $connection_upgrade { default upgrade; "" close; }
            map $request_length $other { default 1; }
            server { listen 127.0.0.1:8080; location / { proxy_pass http://10.0.0.1; proxy_set_header X-Full $full; } }
        }
        "#,
        &[
            "[map.site]\nkey = \"{host}\"\nignore_case = true\n",
            "exact = { \"a.test\" = \"one\", \"c.test\" = \"three\", default = \"five\" }\n",
            "prefix = { \"d.\" = \"four\" }\n",
            "suffix = { \".b.test\" = \"two\", \".c.test\" = \"three\" }\ndefault = \"none\"\n",
            "[map.full]\nkey = \"{map:site}:{query:v}\"\n",
            "regex = [{ match = \"^one:(?<v>.*)$\", value = \"v={v}\" }, { match = \"(?i)TWO\", value = \"\" }]\n",
            "X-Full = \"{map:full}\"",
        ],
        &["map: left out: `$request_length` has a variable without a counterpart"],
    );
}

#[test]
fn networks_and_shares() {
    check(
        r#"
        http {
            geo $near { ranges; default no; 10.0.0.0-10.0.1.255 yes; 192.0.2.1-192.0.2.2 test; delete 192.0.2.1-192.0.2.2; }
            geo $proxied { default 0; proxy 10.0.0.0/8; }
            split_clients "${remote_addr}x" $variant { 0.5% .one; 10% .two; * ""; }
            server { listen 127.0.0.1:8080; location / { proxy_pass http://10.0.0.1; proxy_set_header X-Near "$near$variant"; } }
        }
        "#,
        &[
            "[map.near]\nkey = \"{client}\"\nignore_case = true\nnetworks = { \"10.0.0.0/23\" = \"yes\" }\ndefault = \"no\"\n",
            "[map.variant]\nkey = \"{client}x\"\nignore_case = true\nshares = [{ percent = 0.5, value = \".one\" }, { percent = 10.0, value = \".two\" }]\n",
            "X-Near = \"{map:near}{map:variant}\"",
        ],
        &["geo: left out: `proxy`"],
    );
}
