//! Django's administration behind uWSGI, with the configuration of nginx that uWSGI's documentation has for Django.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Site, wait_until, write};
use crate::outside::{Bench, Results};
use crate::packages::{self, NGINX, Package, UWSGI};
use crate::server::Server;
use crate::step;
use crate::{Failure, Outcome};

const DJANGO: Package = Package {
    program: "/usr/lib/python3/dist-packages/django/__init__.py",
    name: "python3-django",
};

/// Debian's Python, for which its packages are.
const PYTHON: &str = "/usr/bin/python3";

const HOST: &str = "shop.test";

/// What is another one each time.
const RANDOM: [&str; 5] = [
    r#"name="csrfmiddlewaretoken" value="\w+""#,
    r"(csrftoken|sessionid|messages)=[^;]+",
    r"(user|group)/\d+",
    r"expires=[^;]+",
    // Times of changes.
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
];

/// Views beside the administration.
const URLS: &str = r#"
from django.contrib import admin
from django.http import HttpResponse, HttpResponseRedirect, JsonResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

NAMES = ("REQUEST_METHOD", "REQUEST_URI", "PATH_INFO", "SCRIPT_NAME", "QUERY_STRING", "CONTENT_TYPE", "CONTENT_LENGTH",
         "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "REQUEST_SCHEME", "REMOTE_ADDR", "HTTPS")
# Those two have names without HTTP_ (RFC 3875, section 4.1.18); nginx sends them twice.
TWICE = ("HTTP_CONTENT_LENGTH", "HTTP_CONTENT_TYPE")

@csrf_exempt
def echo(request, rest=""):
    seen = {name: value for name, value in request.META.items() if name in NAMES or name.startswith("HTTP_") and name not in TWICE}
    return JsonResponse({
        "meta": dict(sorted(seen.items())), "url": request.build_absolute_uri(), "rest": rest,
        "content": request.body.decode("latin-1")[:200], "length": len(request.body),
    })

@csrf_exempt
def upload(request):
    return JsonResponse({name: [file.name, file.size] for name, file in request.FILES.items()})

def stream(request):
    return StreamingHttpResponse((f"line {number}\n" for number in range(5000)), content_type="text/plain")

def fails(request):
    raise ValueError("as it is meant to")

def cookies(request):
    response = HttpResponse("two cookies", status=203)
    response.set_cookie("a", "1", httponly=True)
    response.set_cookie("b", "2", path="/echo/")
    response["X-Odd"] = "a, b;c=\"d\""
    return response

urlpatterns = [
    path("admin/", admin.site.urls), path("echo/", echo), path("echo/<path:rest>", echo), path("upload", upload),
    path("stream", stream), path("fails", fails), path("cookies", cookies),
    path("to", lambda request: HttpResponseRedirect("/echo/?from=to")),
    path("nothing", lambda request: HttpResponse(status=204)),
]
"#;

const VISITOR: [&str; 38] = [
    "GET /",
    "GET /admin",
    "GET /admin/",
    "GET /admin/login/?next=/admin/",
    "POST /admin/login/|username=ann&password=wrong",
    "GET /echo/",
    "GET /echo/?a=1&b=%20&c=%C3%A4",
    "GET /echo/a%20b/%C3%A4?x",
    "GET /echo/a+b",
    "GET /echo/a%2Fb",
    "GET /echo/a%25b",
    "GET /echo//a",
    "GET /echo/a;b=c",
    "GET /echo/ + X-Some-Field: some",
    "GET /echo/ + X-Forwarded-Proto: https",
    "GET /echo/ + Accept-Language: de, en;q=0.5",
    "GET /echo/ + Cookie: a=1; b=2",
    "GET /echo/ + Authorization: Basic YTpi",
    "GET /echo/ + Host: other.test",
    "HEAD /echo/",
    "POST /echo/|a=1&b=2",
    "POST /echo/ + Content-Type: application/json|{\"a\": 1}",
    "POST /echo/ + Transfer-Encoding: chunked|a=1",
    "PUT /echo/x|content",
    "PATCH /echo/x|content",
    "DELETE /echo/x",
    "OPTIONS /echo/",
    "GET /stream",
    "GET /fails",
    "GET /cookies",
    "GET /to",
    "GET /nothing",
    "GET /missing",
    "GET /static/admin/css/base.css",
    "GET /static/admin/img/icon-addlink.svg",
    "GET /static/admin/css/missing.css",
    "HEAD /static/admin/js/core.js",
    "GET /static/admin/css/base.css + Range: bytes=0-99",
];

const LOGIN: &str = "POST /admin/login/?next=/admin/|csrfmiddlewaretoken={cookie:csrftoken}&username=ann&password=Wq7-ocean-Lamp&next=/admin/";

const AUTHOR: [&str; 14] = [
    "GET /admin/",
    "GET /admin/auth/user/",
    "GET /admin/auth/user/?q=ann&is_staff__exact=1",
    "GET /admin/auth/user/1/change/",
    "GET /admin/auth/user/add/",
    "POST /admin/auth/user/add/|csrfmiddlewaretoken={cookie:csrftoken}&username=bo-{side}&password1=Wq7-ocean-Lamp&password2=Wq7-ocean-Lamp&_save=Save",
    "POST /admin/auth/user/add/|csrfmiddlewaretoken={cookie:csrftoken}&username=ann&password1=a&password2=b",
    "POST /admin/auth/group/add/|csrfmiddlewaretoken={cookie:csrftoken}&name=group+{side}&_continue=Save",
    "POST /admin/auth/group/add/|csrfmiddlewaretoken=wrong&name=group",
    "GET /admin/jsi18n/",
    "GET /admin/auth/user/4711/change/",
    "GET /admin/password_change/",
    "GET /admin/logout/",
    "GET /admin/auth/user/",
];

/// Runs the suite.
pub(in crate::outside) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    packages::install(&bench.scratch, &[NGINX, UWSGI, DJANGO])?;
    let folder = &bench.scratch;
    project(folder)?;
    let _application = uwsgi(folder)?;
    let site = Site::start(bench, (HOST, false), &RANDOM, |address| {
        configuration(folder, address)
    })?;
    let mut results = Results::default();
    for request in VISITOR {
        site.compare(request, &mut results)?;
    }
    let boundary = "0123456789";
    let file = "0123456789".repeat(50_000);
    let upload = format!(
        "POST /upload + Content-Type: multipart/form-data; boundary={boundary}|--{boundary}\r\nContent-Disposition: form-data; name=\"one\"; filename=\"a.txt\"\r\n\r\n{file}\r\n--{boundary}--\r\n"
    );
    site.compare(&upload, &mut results)?;
    site.each("GET /admin/login/")?;
    site.compare(LOGIN, &mut results)?;
    for request in AUTHOR {
        site.compare(request, &mut results)?;
    }
    Ok(results)
}

/// A new project with a database and one user, its files for clients in one folder.
fn project(folder: &Path) -> Outcome {
    let django = |arguments: &[&str]| {
        let mut command = Command::new(PYTHON);
        command
            .args(arguments)
            .env("DJANGO_SUPERUSER_PASSWORD", "Wq7-ocean-Lamp");
        step::run(folder, command.stdout(Stdio::null()))
    };
    django(&["-m", "django", "startproject", "shop", "."])?;
    let settings = folder.join("shop/settings.py");
    let text = fs::read_to_string(&settings).map_err(|error| error.to_string())?;
    let text = text.replace("DEBUG = True", "DEBUG = False").replace(
        "ALLOWED_HOSTS = []",
        "ALLOWED_HOSTS = ['shop.test']\nSTATIC_ROOT = BASE_DIR / 'static'",
    );
    write(&settings, &text)?;
    write(&folder.join("shop/urls.py"), URLS)?;
    django(&["manage.py", "migrate"])?;
    django(&["manage.py", "collectstatic", "--no-input"])?;
    let user = ["createsuperuser", "--no-input", "--username", "ann"];
    django(&[&["manage.py"], &user[..], &["--email", "ann@shop.test"]].concat())
}

fn uwsgi(folder: &Path) -> Result<Server, Failure> {
    let socket = folder.join("uwsgi");
    let mut uwsgi = Command::new("uwsgi-core");
    uwsgi
        .args([
            "--plugin",
            "python3",
            "--need-app",
            "--threads",
            "4",
            "--die-on-term",
        ])
        .arg("--chdir")
        .arg(folder)
        .args(["--module", "shop.wsgi:application", "--socket"])
        .arg(&socket)
        .arg("--logto")
        .arg(folder.join("uwsgi.log"));
    let server = Server::start(uwsgi.stderr(Stdio::null()))?;
    wait_until("uWSGI", || UnixStream::connect(&socket).is_ok())?;
    Ok(server)
}

/// The server of "Setting up Django and your web server with uWSGI and nginx", in Debian's nginx.conf.
fn configuration(folder: &Path, address: Ipv4Addr) -> String {
    let shown = folder.display().to_string();
    let site = format!(
        "upstream django {{
            server unix://{shown}/uwsgi;
        }}
        server {{
            listen {address}:80;
            server_name {HOST};
            charset utf-8;
            client_max_body_size 75M;
            location /media {{ alias {shown}/media; }}
            location /static {{ alias {shown}/static; }}
            location / {{
                uwsgi_pass django;
                include /etc/nginx/uwsgi_params;
            }}
        }}"
    );
    super::debian(&shown, &site)
}
