//! Limits of requests in flight, of their rate and of bandwidth, over every version of HTTP.

use std::thread;
use std::time::Duration;

use plimsoll_client::forward::Speaks;
use plimsoll_model::Clock as _;
use plimsoll_testkit::http::{connect, get};
use plimsoll_testkit::{Origin, WebSocketOrigin, eventually};
use plimsoll_wire::SystemClock;
use tungstenite::Message;

use crate::client::read_until_cut;
use crate::server::Served;

#[test]
fn requests_in_flight_are_counted_until_their_responses_are_sent() {
    for (speaks, scheme) in [
        (Speaks::Http1, "http"),
        (Speaks::Http2, "https"),
        (Speaks::Http3, "https"),
    ] {
        let origin = Origin::hello();
        let tls = match scheme {
            "https" => "tls = { self_signed = true }\nhttp3 = true\n",
            _ => "",
        };
        let served = Served::new(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n{tls}\
             [[route]]\nin_flight_limit = {{ requests = 1, status = 429 }}\nproxy = \"{}\"\n",
            origin.url("").trim_end_matches('/')
        ));
        let url = format!("{scheme}://localhost:{}/", served.address().port());
        origin.stall();
        let first = {
            let url = url.clone();
            thread::spawn(move || read_until_cut(speaks, &url))
        };
        eventually(|| origin.connections() == 1);
        eventually(|| read_until_cut(speaks, &url).0 == 429);
        origin.resume();
        let (status, bytes, cut) = first.join().unwrap();
        assert_eq!((status, bytes, cut.is_none()), (200, 5, true), "{scheme}");
        eventually(|| read_until_cut(speaks, &url).0 == 200);
    }
}

#[test]
fn a_websocket_is_in_flight_until_it_ends() {
    let origin = WebSocketOrigin::echo();
    let served = Served::routes(&format!(
        "[[route]]\nin_flight_limit = {{ requests = 1 }}\nproxy = \"http://{}\"\n",
        origin.address()
    ));
    let url = format!("ws://{}/", served.address());
    let (mut socket, _) = tungstenite::client(url, connect(served.address())).unwrap();
    socket.send(Message::text("here")).unwrap();
    assert_eq!(socket.read().unwrap(), Message::text("here"));
    assert_eq!(get(served.address(), "/").status, 503);
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    drop(socket);
    eventually(|| get(served.address(), "/").status != 503);
}

#[test]
fn a_burst_waits_for_its_rate_and_content_for_its_bandwidth() {
    let body = "x".repeat(3_000);
    let served = Served::routes(&format!(
        "[[route]]\npath = \"/rate\"\nrate_limit = {{ requests = 10, per = \"1s\", burst = 4, at_once = 1, status = 503 }}\n\
         respond = {{ body = \"in\" }}\n\
         [[route]]\npath = \"/slow\"\nbandwidth = {{ rate = \"8KB\", after = \"1KB\" }}\nrespond = {{ body = \"{body}\" }}\n\
         [[route]]\npath = \"/short\"\nbandwidth = {{ rate = \"1B\", after = \"4KB\" }}\nrespond = {{ body = \"{body}\" }}\n"
    ));
    let took = |path: &str| {
        let begun = SystemClock.now();
        let received = get(served.address(), path);
        (received, SystemClock.now().duration_since(begun))
    };
    let begun = SystemClock.now();
    let statuses = [(); 3].map(|()| get(served.address(), "/rate").status);
    assert_eq!(statuses, [200; 3]);
    // Two waited for a tenth of a second each.
    let waited = SystemClock.now().duration_since(begun);
    assert!(waited >= Duration::from_millis(199), "{waited:?}");
    let (slow, time) = took("/slow");
    assert_eq!(slow.text(), body);
    // 2,000 bytes at 8,000 a second, of which the last piece is not waited for.
    assert!(time >= Duration::from_millis(120), "{time:?}");
    assert_eq!(took("/short").0.text(), body);
}
