//! `limit_req` and its zones.

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
            "rate_limit = { requests = 30, per = \"1m\", burst = 6 }",
            "prefix = \"/gone/\"\nrespond = { status = 410, body = \"\" }\n\n",
            "prefix = \"/api/\"\nproxy",
            "rate_limit = { requests = 10, per = \"1s\", burst = 21, key = \"{header:x-api-key}\" }",
            "prefix = \"/\"\nfiles = { root = \"/srv/www\" }\nrate_limit = { requests = 500, per = \"1s\", burst = 1, key = \"all\" }",
        ],
        &[
            "nginx.conf:13: limit_req: left out: a route has one limit",
            "limit_req: left out: `$request_length` has no counterpart as a key",
            "limit_req: requests within the burst are sent at once",
            "limit_req: left out: there is no zone `nowhere`",
        ],
    );
}
