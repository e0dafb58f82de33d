//! `stream`.

use super::check;

#[test]
fn tcp_udp_and_tls_by_name() {
    check(
        r"
        stream {
            upstream db { least_conn; server 10.0.0.1:5432 max_fails=2; server 10.0.0.2:5432; }
            map $ssl_preread_server_name $to { shop.test db; .api.test 10.0.0.7:443; default 10.0.0.9:443; ~^x db; }
            server { listen 127.0.0.1:5432; proxy_pass db; proxy_timeout 5m; proxy_protocol on; }
            server { listen 127.0.0.1:5353 udp; proxy_pass 10.0.0.3:53; }
            server { listen 127.0.0.1:8443; ssl_preread on; proxy_pass $to; }
            server { listen 127.0.0.1:636 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem; proxy_pass 10.0.0.4:389; }
            server { listen 127.0.0.1:22; allow 10.0.0.0/8; deny all; proxy_pass 10.0.0.5:22; }
            server { listen 127.0.0.1:21; deny all; proxy_pass 10.0.0.5:21; }
            server { listen 127.0.0.1:54 udp; deny 10.0.0.9; proxy_pass 10.0.0.3:53; }
            server { listen 127.0.0.1:23; return done; }
            server { listen 127.0.0.1:24; proxy_pass $remote_addr:25; }
        }
        ",
        &[
            "address = \"127.0.0.1:5432\"\ntcp = { to = \"stream-db\", idle_timeout = \"5m\", proxy_protocol = \"v1\" }\n",
            "address = \"127.0.0.1:5353\"\nudp = { to = \"udp://10.0.0.3:53\" }\n",
            "address = \"127.0.0.1:8443\"\ntcp = { to = \"tcp://10.0.0.9:443\", routes = [{ sni = [\"shop.test\"], to = \"stream-db\" }, { sni = [\"api.test\", \"*.api.test\"], to = \"tcp://10.0.0.7:443\" }] }\n",
            "address = \"127.0.0.1:636\"\ntls = { cert = \"/c.pem\", key = \"/k.pem\" }\ntcp = { to = \"tcp://10.0.0.4:389\" }\n",
            "address = \"127.0.0.1:22\"\ntcp = { to = \"tcp://10.0.0.5:22\", addresses = { allow = [\"10.0.0.0/8\"] } }\n",
            "[upstream.stream-db]\nservers = [\"tcp://10.0.0.1:5432\", \"tcp://10.0.0.2:5432\"]\nbalance = \"least_requests\"\n",
        ],
        &[
            "upstream: failures are counted for all servers alike",
            "~^x: left out",
            "server: the server does not listen: no client is let in",
            "listen: left out: rules for addresses have no counterpart for datagrams",
            "server: left out: it does not forward",
            "return: left out",
            "listen: left out: `$remote_addr:25` is not a server",
        ],
    );
}
