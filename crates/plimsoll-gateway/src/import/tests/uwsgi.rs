//! Locations that lead to applications behind uwsgi.

use super::check;

#[test]
fn applications_behind_uwsgi_keep_their_parameters() {
    check(
        "
        http {
            upstream django { server unix:///run/site/site.sock; }
            server {
                listen 80; root /srv/site/; client_max_body_size 75M;
                uwsgi_param QUERY_STRING $query_string;
                uwsgi_param PATH_INFO $document_uri;
                uwsgi_param DOCUMENT_ROOT $document_root;
                uwsgi_param HTTPS $https if_not_empty;
                location /media { root /srv/media; }
                location / { uwsgi_pass django; }
                location /slow/ { uwsgi_pass uwsgi://127.0.0.1:9000; uwsgi_read_timeout 300; uwsgi_modifier1 30; uwsgi_modifier2 2; }
                location /own/ {
                    uwsgi_pass unix:/run/own.sock;
                    uwsgi_param SCRIPT_NAME /own;
                    uwsgi_param REMOTE_USER $remote_user;
                    uwsgi_param X-Real-IP $remote_addr;
                    uwsgi_param X $request_length;
                    uwsgi_modifier1 300;
                }
                location /var/ { uwsgi_pass $backend; }
                location @app { uwsgi_pass django; }
                location /tried/ { try_files $uri @app; }
                location /string/ { uwsgi_pass 127.0.0.1:9000; uwsgi_string x; uwsgi_pass_request_body off; }
            }
        }
        ",
        &[
            "prefix = \"/string/\"\nproxy = { to = \"http://127.0.0.1:9000\", protocol = \"uwsgi\", uwsgi = { parameters = { DOCUMENT_ROOT = \"/srv/site/\" } }, max_request = \"0B\" }",
            "on_status = { 400 = { to = \"@app (nginx.conf:22)\", status = \"own\" }, 404",
            "proxy = { to = \"http://127.0.0.1:9000\", protocol = \"uwsgi\", response_timeout = \"300s\", idle_timeout = \"300s\", uwsgi = { parameters = { DOCUMENT_ROOT = \"/srv/site/\" }, modifier1 = 30, modifier2 = 2 }, max_request = \"75MiB\" }",
            "proxy = { to = \"unix:/run/own.sock\", protocol = \"uwsgi\", uwsgi = { parameters = { SCRIPT_NAME = \"/own\", REMOTE_USER = \"{user}\" } }, max_request = \"75MiB\" }",
            "status = 502",
            "proxy = { to = \"django\", uwsgi = { parameters = { DOCUMENT_ROOT = \"/srv/site/\" } }, max_request = \"75MiB\" }",
            "internal = true\nproxy = { to = \"django\", uwsgi",
            "[upstream.django]\nservers = [\"unix:///run/site/site.sock\"]\nprotocol = \"uwsgi\"",
        ],
        &[
            "nginx.conf:17: uwsgi_param: left out: `X-Real-IP` is no name of a parameter",
            "nginx.conf:18: uwsgi_param: left out: `$request_length` has no counterpart, so `X` is not sent",
            "nginx.conf:19: uwsgi_modifier1: left out: it is no number from 0 to 255",
            "nginx.conf:21: uwsgi_pass: responds with 502: `$backend` is not a server",
            "nginx.conf:24: uwsgi_string: left out",
            "nginx.conf:24: uwsgi_pass_request_body: requests with content get a 413",
        ],
    );
}
