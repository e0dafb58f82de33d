//! FastCGI 1.0 as a web server speaks it to one application (the specification of Open Market, 29 April 1996), and the heads of CGI
//! responses within it (RFC 3875, section 6). No I/O.
//!
//! A request is one record that begins it, records of parameters and records of content; a response is records of output, of errors
//! for a log, and one that ends it. One connection carries one request at a time: applications such as php-fpm multiplex none.

mod cgi;

mod records;

pub use self::cgi::{CgiHead, CgiHeadError, MOST_HEAD_BYTES};
pub use self::records::{FastCgiRecordError, RecordDecoder, RecordSink, Records};
