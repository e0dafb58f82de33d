//! The uwsgi protocol as a web server speaks it to an application server such as uWSGI (its document "The uwsgi Protocol"). No I/O.
//!
//! A request is one packet of variables, with the content behind it; the response is one of HTTP/1, or has a head of CGI, and ends with the
//! connection, which carries one request.

mod packet;

mod response;

pub use self::packet::{MOST_PACKET_BYTES, UwsgiPacket, UwsgiPacketError};
pub use self::response::as_http1;
