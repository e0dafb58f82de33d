//! Variables as places, and conditions on them.

use super::{check, imported};

#[test]
fn variables_become_places() {
    check(
        r#"
        http {
            map $http_x_tenant $pool { default blue; acme green; }
            upstream blue { server 10.0.0.1:80; }
            upstream green { server 10.0.0.2:80; }
            log_format own '$remote_addr "$request" $status $request_time';
            access_log /var/log/own.log own buffer=32k;
            server {
                listen 127.0.0.1:8080;
                location /a/ { proxy_pass http://$pool; proxy_set_header X-Id "$cookie_id-$arg_id"; }
                location /b/ { return 200 "you are $remote_addr, {\"a\": \"$pool\"}"; add_header X-Status "$status $upstream_addr" always; }
                location /c/ { return 200 "$request_length {client}"; }
            }
        }
        "#,
        &[
            "[log]\nfile = \"/var/log/own.log\"\nformat = \"{client} \\\"{request.line}\\\" {status} {duration}\"\n",
            "[map.pool]\nkey = \"{header:x-tenant}\"\nignore_case = true\nexact = { acme = \"green\" }\ndefault = \"blue\"\n",
            "to = \"{map:pool}\"",
            "X-Id = \"{cookie:id}-{query:id}\"",
            "template = \"you are {client}, {\\\"a\\\": \\\"{map:pool}\\\"}\"",
            "X-Status = \"{status} {upstream.address}\"",
            "body = \"$request_length {client}\"",
        ],
        &["the text is sent as it stands"],
    );
}

#[test]
fn a_variable_may_have_the_whole_url_of_a_server() {
    check(
        r"
        http {
            map $http_x_canary $pool { default http://10.0.0.1:8080; yes http://10.0.0.2:8080; }
            map $http_x_tenant $shop { default http://10.0.0.1:8080; other http://shop; }
            map $http_x_area $area { default 10.0.0.1:8080; other 10.0.0.2:8080; }
            upstream shop { server 10.0.0.3:80; }
            server {
                listen 127.0.0.1:8080;
                location /a/ { proxy_pass $pool; }
                location /b/ { proxy_pass $pool; proxy_set_header Host $host; }
                location /c/ { proxy_pass $shop; }
                location /d/ { proxy_pass $area; }
            }
        }
        ",
        &[
            "prefix = \"/a/\"\nproxy = { to = \"{map:pool}\", host = \"server\",",
            "prefix = \"/b/\"\nproxy = { to = \"{map:pool}\", host = \"{host}\",",
            "prefix = \"/c/\"\nrespond = { status = 502",
            "prefix = \"/d/\"\nrespond = { status = 502",
        ],
        &[
            "proxy_pass: responds with 502: `$shop` is not a server",
            "proxy_pass: responds with 502: `$area` is not a server",
        ],
    );
}

#[test]
fn a_log_in_json_has_members() {
    check(
        r#"
        http {
            log_format own escape=json '{"time": "$time_iso8601",' '"status":$status, "agent":"$http_user_agent"}';
            access_log /var/log/own.json own;
            server { listen 127.0.0.1:8080; location / { proxy_pass http://10.0.0.1; } location /q/ { access_log off; proxy_pass http://10.0.0.1; } }
        }
        "#,
        &[
            "format = { time = \"{time}\", status = \"{status}\", agent = \"{header:user-agent}\" }\n",
            "log = false\n",
        ],
        &[],
    );
}

#[test]
fn servers_and_locations_have_logs_of_their_own() {
    check(
        r#"
        http {
            log_format short "$status";
            map $status $is_error { ~^[45] 1; default 0; }
            access_log /var/log/all.log;
            server {
                listen 127.0.0.1:8080;
                access_log /var/log/shop.log short;
                access_log /var/log/errors.log short if=$is_error;
                location / { proxy_pass http://10.0.0.1; }
                location /both/ { access_log /var/log/all.log; access_log /var/log/shop.log combined; proxy_pass http://10.0.0.1; }
                location /none/ { access_log off; proxy_pass http://10.0.0.1; }
                location /named/ { access_log syslog:server=127.0.0.1; access_log /var/log/$host.log; proxy_pass http://10.0.0.1; }
            }
        }
        "#,
        &[
            "[[log]]\nname = \"/var/log/all.log\"\nfile = \"/var/log/all.log\"\ndefault = true\nformat = \"combined\"\n",
            "[[log]]\nname = \"/var/log/shop.log\"\nfile = \"/var/log/shop.log\"\nformat = \"{status}\"\n",
            "[[log]]\nname = \"/var/log/errors.log\"\nfile = \"/var/log/errors.log\"\nformat = \"{status}\"\nwhen = \"{map:is_error}\"\n",
            "log = [\"/var/log/all.log\", \"/var/log/shop.log\"]\n",
            "log = false\n",
            "log = [\"/var/log/shop.log\", \"/var/log/errors.log\"]\n",
        ],
        &[
            "access_log: `/var/log/shop.log` has the format and the condition that it is given first",
            "access_log: left out: lines go to a file or to standard output",
            "access_log: left out: the name of the file depends on the request",
        ],
    );
}

#[test]
fn a_condition_on_a_variable_is_one_of_the_route() {
    check(
        r"
        http {
            map $http_user_agent $is_bot { default 0; ~*crawler 1; }
            geo $is_near { default 0; 10.0.0.0/8 yes; }
            server {
                listen 127.0.0.1:8080;
                if ($is_bot) { return 403; }
                location / { proxy_pass http://10.0.0.1; }
                location /near/ {
                    if ($is_near != yes) { return 403; }
                    if ($cookie_debug = on) { set $level 1; }
                    proxy_pass http://10.0.0.1;
                }
            }
        }
        ",
        &[
            "regex = [{ match = \"(?i)crawler\", value = \"1\" }]\n",
            "networks = { \"10.0.0.0/8\" = \"yes\" }\n",
            "prefix = \"/near/\"\nplaces = { \"map:is_bot\" = [\"1\"] }\nrespond = { status = 403",
            "prefix = \"/near/\"\nplaces = { \"cookie:debug\" = [\"on\"], \"map:is_near\" = [\"yes\"] }\nproxy = ",
            "prefix = \"/near/\"\nplaces = { \"map:is_near\" = [\"yes\"] }\nproxy = ",
            "prefix = \"/near/\"\nrespond = { status = 403",
        ],
        &[],
    );
}

#[test]
fn a_guard_that_places_read_otherwise_closes_what_it_guards() {
    for (maps, condition) in [
        ("", "$unknown"),
        ("", "$host = admin.test"),
        ("map $uri $bad { default 0; ~^/private 1; }", "$bad"),
        ("map $arg_debug $bad { default 0; 1 1; }", "$bad"),
        ("map $host $bad { default 0; ~^admin 1; }", "$bad"),
        (
            "map $uri $path { default $uri; } map $path $bad { default 0; /x 1; }",
            "$bad",
        ),
    ] {
        let imported = imported(&format!(
            "http {{ {maps} server {{ listen 8080; location / {{ if ({condition}) {{ return 403; }} proxy_pass http://10.0.0.1; }} }} }}",
        ));
        assert!(!imported.toml.contains("proxy = "), "{}", imported.toml);
    }
}

#[test]
fn content_is_read_where_something_names_it() {
    check(
        "http {
            log_format bodies '$request_body';
            server { listen 80;
                location /a/ { proxy_pass http://127.0.0.1:1; add_header X-Body $request_body always; client_body_buffer_size 2k; }
                location /b/ { proxy_pass http://127.0.0.1:1; access_log /var/log/bodies.log bodies; }
                location /c/ { proxy_pass http://127.0.0.1:1; proxy_request_buffering off; }
                location /e/ { proxy_pass http://127.0.0.1:1; proxy_request_buffering off; add_header X-Body $request_body; }
                location /f/ { fastcgi_pass 127.0.0.1:9; fastcgi_request_buffering off; fastcgi_param SCRIPT_FILENAME /srv/x.php; }
                location /d/ { return 200 \"$request_body\"; }
            }
        }",
        &[
            "prefix = \"/a/\"",
            "read_content = \"2KiB\"\nresponse_headers = { rewrite = [",
            "add = { X-Body = \"{content}\" } }",
            "prefix = \"/b/\"",
            "read_content = \"16KiB\"",
            "prefix = \"/c/\"\n",
            "max_request = \"1MiB\" }\nresponse_headers",
            "prefix = \"/e/\"\n",
            "max_request = \"1MiB\" }\nresponse_headers",
            "root = \"/srv\" }, max_request = \"1MiB\" }\n\n",
            "prefix = \"/d/\"\nrespond = { status = 200, template = \"{content}\" }",
        ],
        &[
            "nginx.conf:7: add_header: `$request_body` is empty where content is forwarded as it comes",
            "nginx.conf:8: fastcgi_request_buffering: left out: content of unknown length is read before",
        ],
    );
}
