//! Who may use a location: rules on addresses, proxies in front, authorization.

use super::check;

#[test]
fn what_is_closed_stays_closed() {
    check(
        r"
        upstream sso { server 10.0.0.9:9091; }
        server {
            listen 80;
            set_real_ip_from 10.0.0.0/8;
            set_real_ip_from unix:;
            real_ip_header X-Forwarded-For;
            location = /check { internal; proxy_pass http://sso/api/verify; }
            location = /plain-check { proxy_pass http://10.0.0.8; }
            location /app/ {
                auth_request /check;
                auth_request_set $user $upstream_http_remote_user;
                proxy_set_header Remote-User $user;
                proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                proxy_pass http://127.0.0.1:1;
            }
            location /other/ { auth_request /plain-check; proxy_pass http://127.0.0.1:2; }
            location /lost/ { auth_request /nowhere; proxy_pass http://127.0.0.1:3; }
            location /files/ { auth_request /check; alias /srv/; }
            location /office/ { allow 10.0.0.0/8; deny all; proxy_pass http://127.0.0.1:4; }
            location /blocked/ { deny 192.0.2.1; proxy_pass http://127.0.0.1:5; }
            location /either/ {
                satisfy any; allow 10.0.0.0/8; deny all;
                auth_basic x; auth_basic_user_file /etc/htpasswd;
                proxy_pass http://127.0.0.1:6;
            }
            location /read/ { limit_except GET HEAD { deny all; } proxy_pass http://127.0.0.1:7; }
        }
        ",
        &[
            "path = \"/check\"\nrespond = { status = 404",
            "prefix = \"/blocked/\"\nrespond = { status = 403",
            "prefix = \"/office/\"\nrespond = { status = 403",
            "prefix = \"/either/\"\nproxy = { to = \"http://127.0.0.1:6\"",
            "basic_auth",
            "prefix = \"/other/\"\nauth = { to = \"http://10.0.0.8/plain-check\", relay = false, trust = [\"10.0.0.0/8\"] }\nproxy",
            "prefix = \"/files/\"\nauth = { to = \"sso\", path = \"/api/verify\", relay = false, trust = [\"10.0.0.0/8\"] }\nfiles",
            "prefix = \"/lost/\"\nrespond = { status = 403",
            "prefix = \"/read/\"\nmethod = [\"GET\", \"HEAD\"]\nproxy",
            "prefix = \"/read/\"\nrespond = { status = 403",
            "prefix = \"/app/\"\nauth = { to = \"sso\", path = \"/api/verify\", relay = false, copy = [\"remote-user\"], trust = [\"10.0.0.0/8\"] }\nproxy",
            "forwarded = \"x\", trust = [\"10.0.0.0/8\"]",
        ],
        &[
            "auth_request: the service gets the fields of the request",
            "auth_request: the service gets the fields of the request",
            "auth_request: responds with 403: `/nowhere` does not forward",
            "auth_request: the service gets the fields of the request",
            "deny: responds with 403 to every client: `set_real_ip_from` is translated for all",
            "deny: responds with 403 to every client: `set_real_ip_from` is translated for all",
            "deny: every client needs the password: `set_real_ip_from`",
            "set_real_ip_from: left out: `trust` goes with",
            "nginx.conf:5: set_real_ip_from: left out: the client is whom the listener knows",
            "nginx.conf:6: set_real_ip_from: left out: it is not a network",
        ],
    );
}

#[test]
fn proxies_in_front_of_all_servers_are_keys_of_the_listeners() {
    let servers = "server {
        listen 80;
        location / { allow 192.0.2.0/24; deny all; proxy_pass http://127.0.0.1:1; }
    }";
    let of = |real_ip: &str| format!("http {{ {real_ip} {servers} }}");
    let allow = "[[route]]\nprefix = \"/\"\naddresses = { allow = [\"192.0.2.0/24\"] }\n";
    for (real_ip, key) in [
        (
            "set_real_ip_from 10.0.0.0/8; set_real_ip_from unix:; real_ip_header X-Forwarded-For; real_ip_recursive on;",
            "trusted_proxies = [\"10.0.0.0/8\"]\n",
        ),
        (
            "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;",
            "trusted_proxies = { networks = [\"10.0.0.0/8\"], recursive = false }\n",
        ),
        (
            "set_real_ip_from 10.0.0.0/8;",
            "trusted_proxies = { networks = [\"10.0.0.0/8\"], header = \"x-real-ip\" }\n",
        ),
    ] {
        let is_socket = real_ip.contains("unix:");
        let notes: &[&str] = if is_socket {
            &["set_real_ip_from: left out: it is not a network"]
        } else {
            &[]
        };
        check(&of(real_ip), &["address = \":80\"\n", key, allow], notes);
    }
    let named = of("set_real_ip_from proxy.example; set_real_ip_from 10.0.0.1;");
    let key = "trusted_proxies = { networks = [\"10.0.0.1\"], header = \"x-real-ip\" }\n";
    check(
        &named,
        &[key],
        &["set_real_ip_from: left out: it is not a network"],
    );
    let with_header = of("set_real_ip_from 10.0.0.1; real_ip_header proxy_protocol;");
    let with_header = with_header.replace("listen 80", "listen 80 proxy_protocol");
    check(&with_header, &["proxied_by = [\"10.0.0.1\"]\n", allow], &[]);
}

#[test]
fn rules_on_addresses_keep_their_order_of_precedence() {
    check(
        r"
        server {
            listen 80;
            location /office/ { allow 10.0.0.0/8; deny all; proxy_request_buffering on; proxy_pass http://127.0.0.1:1; }
            location /blocked/ { deny 192.0.2.1; proxy_pass http://127.0.0.1:2; }
            location /inner/ {
                allow 10.1.0.0/16; deny 10.1.2.0/24; deny 10.0.0.0/8; allow 2001:db8::1;
                proxy_pass http://127.0.0.1:3;
            }
            location /open/ { allow 10.0.0.0/8; proxy_pass http://unix:/run/app.sock; }
            location /moved/ { proxy_pass http://unix:/run/app.sock:/new/; }
            location /never/ { deny 10.0.0.0/8; allow 10.1.0.0/16; deny all; proxy_pass http://127.0.0.1:5; }
            location /wrong/ { allow office; deny all; proxy_pass http://127.0.0.1:6; }
        }
        ",
        &[
            "prefix = \"/blocked/\"\naddresses = { deny = [\"192.0.2.1/32\"] }\nproxy",
            "prefix = \"/office/\"\naddresses = { allow = [\"10.0.0.0/8\"] }\nproxy",
            "prefix = \"/inner/\"\naddresses = { allow = [\"10.1.0.0/16\", \"2001:db8::1/128\", \"0.0.0.0/0\", \"::/0\"], deny = [\"10.0.0.0/8\"] }\nproxy",
            "prefix = \"/moved/\"\nproxy = { to = \"unix:/run/app.sock\", strip = true, path = \"/new\", host = \"localhost\"",
            "prefix = \"/never/\"\nrespond = { status = 403",
            "prefix = \"/wrong/\"\nrespond = { status = 403",
            "prefix = \"/open/\"\nproxy = { to = \"unix:/run/app.sock\", host = \"localhost\"",
        ],
        &[
            "proxy_request_buffering: left out: content is forwarded as it comes",
            "deny: responds with 403 to every client: the rule names no network",
        ],
    );
}

#[test]
fn servers_never_get_a_field_as_the_client_sent_it_where_nginx_sets_it() {
    check(
        r#"
        upstream app { server 10.0.0.9; }
        server {
            listen 80;
            location = /ask {
                internal;
                proxy_set_header X-Client-Verify $ssl_client_verify;
                proxy_pass http://app/ask;
            }
            location / {
                auth_request /ask;
                auth_request_set $user $upstream_http_x_auth_request_user;
                proxy_set_header X-Auth-User $user;
                proxy_set_header X-Remote-User $remote_user;
                proxy_set_header X-Empty "";
                proxy_set_header X-Odd "ab";
                proxy_pass http://app;
            }
        }
        "#,
        &[
            "auth = { to = \"app\", path = \"/ask\", relay = false, copy = [\"x-auth-request-user\"], headers = { X-Client-Verify = \"{tls.client.verified}\" } }",
            "headers = { X-Auth-User = \"{auth:x-auth-request-user}\", X-Remote-User = \"{user}\", X-Empty = false, X-Odd = false }",
        ],
        &[
            "auth_request: the service gets the fields of the request",
            "proxy_set_header: servers get no `X-Odd`",
        ],
    );
}

#[test]
fn an_address_or_a_password_is_enough_by_satisfy() {
    check(
        r"
        server {
            listen 80;
            satisfy any;
            auth_basic x;
            auth_basic_user_file /etc/htpasswd;
            location /office/ { allow 10.0.0.0/8; deny all; proxy_pass http://127.0.0.1:1; }
            location /nobody/ { deny all; proxy_pass http://127.0.0.1:2; }
            location /both/ { satisfy all; allow 10.0.0.0/8; deny all; proxy_pass http://127.0.0.1:3; }
        }
        ",
        &[
            "prefix = \"/office/\"\naddresses = { allow = [\"10.0.0.0/8\"] }\nsatisfy = \"any\"\nproxy",
            "basic_auth",
            "prefix = \"/nobody/\"\nproxy",
            "basic_auth",
            "prefix = \"/both/\"\naddresses = { allow = [\"10.0.0.0/8\"] }\nproxy",
        ],
        &[],
    );
}

#[test]
fn a_service_authorizes_files_as_well_and_constants_are_no_service() {
    check(
        r#"
        upstream sso { server 10.0.0.9:9091; }
        server {
            listen 80;
            root /srv;
            proxy_set_header X-Site shop;
            location = /check {
                proxy_pass http://sso;
                proxy_pass_request_body off;
                proxy_set_header Content-Length "";
            }
            location = /open { return 204; }
            location = /never { return 401; }
            location = /odd { return 404; }
            location /docs/ {
                auth_request /check;
                auth_request_set $user $upstream_http_remote_user;
                add_header X-User $user;
            }
            location /moved/ { auth_request /check; return 301 /new/; }
            location = /named { internal; try_files /dev/null @sso; }
            location @sso { proxy_set_header X-By named; proxy_pass http://sso; }
            location /by/ { auth_request /named; }
            location /all/ { auth_request /open; }
            location /none/ { auth_request /never; }
            location /fault/ { auth_request /odd; }
            location /upload/ { proxy_pass http://sso; proxy_pass_request_body off; }
            location /php/ { auth_request /check; fastcgi_pass 10.0.0.7:9000; fastcgi_param REMOTE_USER "<$user>"; }
        }
        "#,
        &[
            "path = \"/check\"\nproxy = { to = \"sso\", host = \"sso\", forwarded = \"none\", max_request = \"0B\" }",
            "prefix = \"/upload/\"\nproxy = { to = \"sso\", host = \"sso\", forwarded = \"none\", headers = { X-Site = \"shop\" }, max_request = \"0B\" }",
            "prefix = \"/moved/\"\nredirect",
            "prefix = \"/fault/\"\nrespond = { status = 500, body",
            "prefix = \"/docs/\"\nauth = { to = \"sso\", path = \"/check\", relay = false, copy = [\"remote-user\"] }\nfiles = { root = \"/srv/docs\", optional = true }",
            "add = { X-User = \"{auth:remote-user}\" }",
            "prefix = \"/none/\"\nrespond = { status = 401, body",
            "prefix = \"/all/\"\nfiles = { root = \"/srv/all\", optional = true }",
            "prefix = \"/php/\"\nauth = { to = \"sso\", path = \"/check\", relay = false }\nproxy",
            "REMOTE_USER = \"<{auth:remote-user}>\"",
            "prefix = \"/by/\"\nauth = { to = \"sso\", path = \"/named\", relay = false, headers = { X-By = \"named\" } }\nfiles",
        ],
        &[
            "nginx.conf:16: auth_request: the service gets the fields of the request",
            "nginx.conf:23: auth_request: the service gets the fields of the request",
            "nginx.conf:27: proxy_pass_request_body: requests with content get a 413",
            "nginx.conf:28: auth_request: the service gets the fields of the request",
        ],
    );
}

#[test]
fn a_service_is_one_of_those_that_are_enough_by_satisfy() {
    check(
        r"
        server {
            listen 80;
            satisfy any;
            location = /check { internal; proxy_pass http://10.0.0.9; }
            location = /open { return 204; }
            location = /never { return 403; }
            location /address/ { allow 10.0.0.0/8; deny all; auth_request /check; proxy_pass http://127.0.0.1:1; }
            location /nobody/ { deny all; auth_request /check; proxy_pass http://127.0.0.1:2; }
            location /password/ {
                auth_basic x; auth_basic_user_file /etc/htpasswd; auth_request /check; proxy_pass http://127.0.0.1:3;
            }
            location /everybody/ {
                allow all; auth_basic x; auth_basic_user_file /etc/htpasswd; auth_request /check; proxy_pass http://127.0.0.1:4;
            }
            location /opened/ { deny all; auth_basic x; auth_basic_user_file /etc/htpasswd; auth_request /open; proxy_pass http://127.0.0.1:5; }
            location /only/ { auth_basic x; auth_basic_user_file /etc/htpasswd; auth_request /never; proxy_pass http://127.0.0.1:6; }
            location /at/ { allow 10.0.0.0/8; deny all; auth_request /never; proxy_pass http://127.0.0.1:7; }
            location /lost/ { auth_basic x; auth_basic_user_file /etc/htpasswd; auth_request /nowhere; proxy_pass http://127.0.0.1:8; }
        }
        ",
        &[
            "prefix = \"/everybody/\"\nproxy = { to = \"http://127.0.0.1:4\", host = \"127.0.0.1:4\", forwarded = \"none\", max_request = \"1MiB\" }\nresponse_headers = { rewrite = [{ name = \"location\", from = \"^http://127\\\\.0\\\\.0\\\\.1:4/\", to = \"/\" }] }\n\n",
            "prefix = \"/password/\"\nsatisfy = \"any\"\nauth = { to = \"http://10.0.0.9/check\", relay = false }\nproxy",
            "basic_auth",
            "prefix = \"/address/\"\naddresses = { allow = [\"10.0.0.0/8\"] }\nsatisfy = \"any\"\nauth = ",
            "prefix = \"/nobody/\"\nauth = ",
            "prefix = \"/opened/\"\nproxy = { to = \"http://127.0.0.1:5\", host = \"127.0.0.1:5\", forwarded = \"none\", max_request = \"1MiB\" }\nresponse_headers = { rewrite = [{ name = \"location\", from = \"^http://127\\\\.0\\\\.0\\\\.1:5/\", to = \"/\" }] }\n\n",
            "prefix = \"/only/\"\nproxy",
            "basic_auth",
            "prefix = \"/lost/\"\nrespond = { status = 403",
            "prefix = \"/at/\"\naddresses = { allow = [\"10.0.0.0/8\"] }\nproxy",
        ],
        &[
            "nginx.conf:8: auth_request: the service gets the fields of the request",
            "nginx.conf:9: auth_request: the service gets the fields of the request",
            "nginx.conf:11: auth_request: the service gets the fields of the request",
            "nginx.conf:19: auth_request: responds with 403: `/nowhere` does not forward",
        ],
    );
}
