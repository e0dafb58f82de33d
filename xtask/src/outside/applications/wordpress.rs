//! `WordPress` behind php-fpm, with MariaDB: installed, logged into and written in.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{OURS, Site, THEIRS, wait_until, write};
use crate::outside::{Bench, Results};
use crate::packages::{self, CHROMIUM, NGINX, Package};
use crate::server::Server;
use crate::step;
use crate::{Failure, Outcome};

/// One `apt-get` for all of them, which brings php-fpm in place of Apache's module.
const NEEDED: Package = Package {
    program: "/usr/share/wordpress/wp-login.php",
    name: "wordpress php php-fpm php-mysql php-gd mariadb-server-core mariadb-client wordpress-theme-twentytwentythree",
};

/// Debian's configuration of nginx for it.
const SITE: &str = "/usr/share/doc/wordpress/examples/nginx-wordpress.conf";

const HOST: &str = "blog.test";
const PASSWORD: &str = "Wq7-ocean-Lamp";

const INSTALLATION: &str = "POST /wp-admin/install.php?step=2|weblog_title=A+blog&user_name=ann&admin_password=Wq7-ocean-Lamp&admin_password2=Wq7-ocean-Lamp&pw_weak=on&admin_email=ann@blog.test&Submit=Install+WordPress&language=";

const LOGIN: &str = "POST /wp-login.php|log=ann&pwd=Wq7-ocean-Lamp&testcookie=1&redirect_to=http%3A%2F%2Fblog.test%2Fwp-admin%2F";

/// What is another one each time.
const RANDOM: [&str; 9] = [
    // Passwords that a form suggests, seconds, and addresses of mail, of which some letters are entities.
    r#"data-pw="[^"]*""#,
    r#""time":"\d+""#,
    r#"[^\s"<>]*&#0?\d\d+;[^"<>]*"#,
    // Values of cookies of a session, and times of others.
    r"wordpress_(logged_in_|sec_)?[0-9a-f]{32}=[^;]+",
    r"wp-settings-time-1=\d+",
    r"expires=[^;]+; Max-Age=\d+",
    // Seconds, and what they are hashed into.
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d",
    r#"(id|name)="(_ajax_nonce-|_wpnonce_)[^"]*" "#,
    // Numbers of comments.
    r"comment-\d+",
];

/// Before there is a blog.
const BEFORE: [&str; 5] = [
    "GET /",
    "GET /wp-admin/install.php",
    "GET /wp-login.php",
    "GET /wp-includes/css/buttons.css",
    "GET /readme.html",
];

/// Without an account.
const VISITOR: [&str; 45] = [
    "GET /",
    "HEAD /",
    "GET /?p=1",
    "GET /?p=4711",
    "GET /?feed=rss2",
    "GET /?feed=comments-atom",
    "GET /?s=hello+world",
    "GET /index.php",
    "GET /index.php?p=1",
    "GET /index.php/feed/",
    "GET /index.php?rest_route=/",
    "GET /index.php?rest_route=/wp/v2/posts&per_page=1",
    "GET /index.php?rest_route=/wp/v2/users/me",
    "POST /index.php?rest_route=/wp/v2/posts|title=no",
    "OPTIONS /index.php?rest_route=/wp/v2/posts + Origin: https://a.test",
    "GET /wp-json/",
    "GET /2026/11/28/any-name/",
    "GET /any/where",
    "GET /any/where?x=1&y=%20",
    "GET /umlaut-%C3%A4/",
    "GET /wp-login.php",
    "GET /wp-login.php?action=lostpassword",
    "GET /wp-login.php/",
    "GET /%77p-login.php",
    "GET //wp-login.php",
    "POST /wp-login.php|log=ann&pwd=wrong",
    "GET /wp-admin",
    "GET /wp-admin/",
    "GET /wp-admin/edit.php",
    "GET /wp-admin/nothing.php",
    "GET /nothing.php",
    "GET /wp-config.php",
    "GET /xmlrpc.php",
    "POST /xmlrpc.php + Content-Type: text/xml|<?xml version=\"1.0\"?><methodCall><methodName>demo.addTwoNumbers</methodName><params><param><value><int>5</int></value></param><param><value><int>7</int></value></param></params></methodCall>",
    "POST /wp-comments-post.php|comment=&author=Bo&email=bo%40blog.test&comment_post_ID=1",
    "GET /wp-includes/js/jquery/jquery.min.js",
    "GET /wp-includes/js/jquery/jquery.min.js?ver=3.6.1 + Range: bytes=100-199",
    "HEAD /wp-includes/images/media/audio.png",
    "GET /wp-includes/images/media/nothing.png",
    "GET /wp-includes/",
    "GET /wp-content/themes/twentytwentythree/style.css",
    "GET /wp-content/themes/twentytwentythree/assets/nothing",
    "GET /wp-content",
    "GET /favicon.ico",
    "GET /robots.txt",
];

/// With the cookies of a login.
const AUTHOR: [&str; 23] = [
    "POST /wp-comments-post.php|comment=A+comment+of+{side}&comment_post_ID=1&comment_parent=0",
    "GET /",
    "GET /wp-login.php?loggedout=true",
    "GET /wp-admin/",
    "GET /wp-admin/index.php",
    "GET /wp-admin/edit.php",
    "GET /wp-admin/edit.php?post_status=publish&post_type=post",
    "GET /wp-admin/upload.php?mode=list",
    "GET /wp-admin/edit-comments.php",
    "GET /wp-admin/themes.php",
    "GET /wp-admin/users.php",
    "GET /wp-admin/profile.php",
    "GET /wp-admin/options-general.php",
    "GET /wp-admin/options-permalink.php",
    "GET /wp-admin/nothing.php",
    "GET /wp-admin/load-styles.php?c=0&dir=ltr&load%5Bchunk_0%5D=dashicons,admin-bar,common,forms",
    "GET /wp-admin/load-scripts.php?c=0&load%5Bchunk_0%5D=jquery-core,jquery-migrate,utils",
    "GET /wp-admin/css/dashboard.min.css",
    "GET /wp-admin/images/wordpress-logo.svg",
    "GET /wp-admin/admin-ajax.php?action=nothing",
    "POST /wp-admin/admin-ajax.php|action=heartbeat&interval=60",
    "POST /wp-admin/options-general.php|blogname=x",
    "GET /wp-admin/post.php?post=4711&action=edit",
];

/// Runs the suite.
pub(in crate::outside) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    packages::install(&bench.scratch, &[NGINX, CHROMIUM, NEEDED])?;
    let folder = &bench.scratch;
    let (_database, _php) = (database(folder)?, php(folder)?);
    install_files(folder)?;
    let site = Site::start(bench, (HOST, true), &RANDOM, |address| {
        configuration(folder, address)
    })?;
    let mut results = Results::default();
    for request in BEFORE {
        site.compare(request, &mut results)?;
    }
    let installed = site.ours(INSTALLATION)?;
    let is_installed = installed.text().contains("WordPress has been installed");
    results.add_result(
        "the installation",
        is_installed.then_some(()).ok_or_else(|| installed.text()),
    );
    for request in VISITOR {
        site.compare(request, &mut results)?;
    }
    site.compare(LOGIN, &mut results)?;
    for request in AUTHOR {
        site.compare(request, &mut results)?;
    }
    upload(&site, &mut results)?;
    browse(folder, &mut results)?;
    Ok(results)
}

/// A database that only this folder leads to.
fn database(folder: &Path) -> Result<Server, Failure> {
    let data = folder.join("data");
    let socket = folder.join("database");
    let mut install = Command::new("mariadb-install-db");
    install
        .args(["--no-defaults", "--user=root", "--skip-test-db"])
        .arg("--auth-root-authentication-method=normal")
        .arg(format!("--datadir={}", data.display()));
    step::run(folder, install.stdout(Stdio::null()))?;
    let server = packages::find("mariadbd", &[]).ok_or("MariaDB is not installed")?;
    let mut server = Command::new(server);
    server
        .args(["--no-defaults", "--user=root", "--skip-networking"])
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--socket={}", socket.display()))
        .stderr(Stdio::null());
    let server = Server::start(&mut server)?;
    wait_until("database", || UnixStream::connect(&socket).is_ok())?;
    let mut create = Command::new("mariadb");
    create
        .args(["--no-defaults", "--user=root"])
        .arg(format!("--socket={}", socket.display()))
        .args(["-e", "CREATE DATABASE wordpress"]);
    step::run(folder, &mut create)?;
    Ok(server)
}

/// Debian's php-fpm, with a pool of four processes.
fn php(folder: &Path) -> Result<Server, Failure> {
    let socket = folder.join("fpm");
    let shown = folder.display();
    let pool = format!(
        "[global]\nerror_log = {shown}/fpm.log\ndaemonize = no\n[www]\nuser = root\ngroup = root\nlisten = {}\npm = static\npm.max_children = 4\n",
        socket.display()
    );
    write(&folder.join("fpm.conf"), &pool)?;
    let mut fpm = Command::new(fpm_program()?);
    fpm.args(["-R", "-F", "-y"]).arg(folder.join("fpm.conf"));
    let server = Server::start(fpm.stderr(Stdio::null()))?;
    wait_until("php-fpm", || UnixStream::connect(&socket).is_ok())?;
    Ok(server)
}

/// Its name has the version of PHP.
fn fpm_program() -> Result<PathBuf, Failure> {
    let entries = fs::read_dir("/usr/sbin").map_err(|error| error.to_string())?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_fpm = |path: &PathBuf| {
        let name = path.file_name().and_then(|it| it.to_str());
        name.is_some_and(|it| it.starts_with("php-fpm"))
    };
    let found = paths.find(is_fpm);
    found.ok_or_else(|| "php-fpm is not installed".into())
}

/// Copies what the package has, whose own configuration stands in /etc, and configures that.
fn install_files(folder: &Path) -> Outcome {
    for (from, to) in [
        ("/usr/share/wordpress", "www"),
        ("/var/lib/wordpress/wp-content", "content"),
    ] {
        step::run(folder, Command::new("cp").args(["-rL", from, to]))?;
    }
    let shown = folder.display();
    let keys = ["AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE"];
    let keys =
        keys.map(|it| format!("define('{it}_KEY', 'a key'); define('{it}_SALT', 'a salt');\n"));
    let text = format!(
        "<?php\n\
         define('DB_NAME', 'wordpress'); define('DB_USER', 'root'); define('DB_PASSWORD', '');\n\
         define('DB_HOST', 'localhost:{shown}/database'); define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');\n\
         {}\
         define('WP_HTTP_BLOCK_EXTERNAL', true); define('DISABLE_WP_CRON', true);\n\
         define('WP_CONTENT_DIR', '{shown}/content');\n\
         $table_prefix = 'wp_';\n\
         if (!defined('ABSPATH')) define('ABSPATH', '{shown}/www/');\n\
         require_once ABSPATH . 'wp-settings.php';\n",
        keys.concat()
    );
    write(&folder.join("www/wp-config.php"), &text)
}

/// Debian's nginx.conf with Debian's site in it; only folders, the socket, the address and the user are others.
fn configuration(folder: &Path, address: Ipv4Addr) -> String {
    let shown = folder.display().to_string();
    let socket =
        regex::Regex::new("unix:/[a-z/]*/php[0-9.]*-fpm.sock").expect("it is an expression");
    let site = fs::read_to_string(SITE)
        .unwrap_or_default()
        .replace(
            "wordpress.local;",
            &format!("{HOST};\n    listen {address}:80;"),
        )
        .replace("/usr/share/wordpress", &format!("{shown}/www"))
        .replace("/var/lib/wordpress/wp-content", &format!("{shown}/content"));
    let site = socket.replace(&site, format!("unix:{shown}/fpm"));
    super::debian(&shown, &site)
}

/// Uploads a file through plimsoll, and fetches it from both.
fn upload(site: &Site, results: &mut Results) -> Outcome {
    let form = site.ours("GET /wp-admin/media-new.php?browser-uploader")?;
    let text = form.text();
    let nonce =
        regex::Regex::new("name=\"_wpnonce\" value=\"([0-9a-f]+)\"").expect("it is an expression");
    let nonce = nonce.captures(&text).map(|it| it[1].to_owned());
    let nonce = nonce.ok_or("the form for files has no nonce")?;
    let boundary = "0123456789";
    let part = |name: &str, value: &str| {
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        )
    };
    let text = format!("a text of 100 KB\n{}", "0123456789".repeat(10_000));
    let file = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"async-upload\"; filename=\"a text.txt\"\r\nContent-Type: text/plain\r\n\r\n{text}\r\n--{boundary}--\r\n"
    );
    let content = [
        part("_wpnonce", &nonce),
        part("action", "upload-attachment"),
        file,
    ]
    .concat();
    let request = format!(
        "POST /wp-admin/async-upload.php + Content-Type: multipart/form-data; boundary={boundary}|{content}"
    );
    let answer = site.ours(&request)?;
    let uploaded: serde_json::Value = serde_json::from_str(&answer.text())
        .map_err(|error| format!("{error}: {}", answer.text()))?;
    let url = uploaded["data"]["url"].as_str().unwrap_or_default();
    let path = url
        .strip_prefix(&format!("http://{HOST}"))
        .unwrap_or_default();
    results.add_result(
        "a file is uploaded",
        path.ends_with("/a-text.txt")
            .then_some(())
            .ok_or_else(|| answer.text()),
    );
    site.compare(&format!("GET {path}"), results)?;
    site.compare(&format!("GET {path} + Range: bytes=90000-"), results)?;
    // More than nginx takes unless the configuration says so.
    let large = "x=".to_owned() + &"0123456789".repeat(120_000);
    let found = site.ours(&format!("POST /wp-login.php|{large}"))?;
    results.add_result(
        "content of 1.2 MB",
        (found.status == 413)
            .then_some(())
            .ok_or(found.status.to_string()),
    );
    Ok(())
}

/// A login and a draft by Chromium, through each.
fn browse(folder: &Path, results: &mut Results) -> Outcome {
    let mut seen = Vec::new();
    for address in [THEIRS, OURS] {
        let mut node = Command::new("node");
        node.args(["-e", include_str!("browse.js"), "chromium"])
            .arg(folder.join(format!("browser-{address}")))
            .args([HOST, &address.to_string(), "ann", PASSWORD]);
        let output = step::output(folder, &mut node)?;
        let value: serde_json::Value =
            serde_json::from_str(&output).map_err(|error| format!("{error}: {output}"))?;
        seen.push(value);
    }
    // The configuration has no picture for the site.
    let missing = serde_json::json!([[format!("http://{HOST}/favicon.ico"), 404]]);
    let is_whole = seen[1]["draft"] == true && seen[1]["failed"] == missing;
    let result = (seen[0] == seen[1] && is_whole).then_some(());
    results.add_result(
        "a login and a draft by Chromium",
        result.ok_or_else(|| format!("nginx {}, plimsoll {}", seen[0], seen[1])),
    );
    Ok(())
}
