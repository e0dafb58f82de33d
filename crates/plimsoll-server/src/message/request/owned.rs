//! A request that is kept to be answered later.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use http::header::HeaderMap;
use http_body::Body as _;

use super::content::{Content, ContentApart, ContentSource, UpstreamNote};
use super::{Request, Scheme};
use crate::message::connection::ConnectionInfo;
use crate::message::fields::{EditedFields, Fields, KeptFields};
use crate::version::Version;

/// So often a request is led on to another route.
const MOST_LEADS: usize = 10;

/// A request that outlives the bytes that it was read from, to be answered later; made by
/// [`Request::into_owned`].
#[derive(Debug)]
pub struct OwnedRequest {
    /// Method, authority, path, and the query with its question mark, behind one another.
    text: Box<str>,
    /// Ends of method, authority and path.
    ends: [usize; 3],
    scheme: Scheme,
    version: Version,
    upgrade: Option<Box<[u8]>>,
    fields: OwnedFields,
    peer: SocketAddr,
    connection: Rc<ConnectionInfo>,
    content: Rc<Content>,
}

#[derive(Debug)]
enum OwnedFields {
    Map(HeaderMap),
    Kept(KeptFields),
}

impl OwnedRequest {
    /// Path and query as they were sent.
    pub fn path_and_query(&self) -> &str {
        self.text.get(self.ends[1]..).unwrap_or_default()
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.text.get(..self.ends[0]).unwrap_or_default()
    }

    /// Bytes of its content, as [`Request::content_length`].
    pub fn content_length(&self) -> Option<u64> {
        self.content.length
    }

    /// Buffers content of at most `most` bytes for places. The reader of the content still receives all of it.
    pub(crate) async fn read_ahead(&self, most: usize) {
        let source = self.content.source.take();
        let ContentSource::Kept(mut body) = source else {
            self.content.source.replace(source);
            return;
        };
        let read = body.read_ahead(most).await;
        self.content.source.replace(ContentSource::Kept(body));
        self.content.latest().notes.borrow_mut().content = read;
    }

    /// Notes for the log where the request was forwarded to.
    pub fn forwarded_to(&self, note: UpstreamNote) {
        self.content.latest().notes.borrow_mut().upstream = Some(note);
    }

    /// Notes that the request is led on to a route or a path; false if it was there before, or was led on too often.
    pub(crate) fn lead_to(&self, target: &Arc<str>) -> bool {
        let mut notes = self.content.latest().notes.borrow_mut();
        let goes_on = notes.led.len() < MOST_LEADS && !notes.led.contains(target);
        if goes_on {
            notes.led.push(Arc::clone(target));
        }
        goes_on
    }

    /// The same request for another path.
    pub(crate) fn with_target(mut self, path_and_query: &str) -> Self {
        self.note_sent_target();
        let [method_end, authority_end, _] = self.ends;
        let before = self.text.get(..authority_end).unwrap_or_default();
        let path = path_and_query.split('?').next().unwrap_or_default();
        self.ends = [method_end, authority_end, authority_end + path.len()];
        self.text = [before, path_and_query].concat().into_boxed_str();
        self
    }

    /// Keeps what the client sent, the first time that another path comes in its place.
    fn note_sent_target(&self) {
        let mut notes = self.content.latest().notes.borrow_mut();
        let sent = || Rc::from(self.path_and_query());
        notes.sent_target.get_or_insert_with(sent);
    }

    /// The same as a GET, or a HEAD if it is one, of another path, without content.
    pub(crate) fn for_path(self, path_and_query: &str) -> Self {
        self.note_sent_target();
        let method = if self.method() == "HEAD" {
            "HEAD"
        } else {
            "GET"
        };
        let [method_end, authority_end, _] = self.ends;
        let authority = self.text.get(method_end..authority_end);
        let authority = authority.unwrap_or_default();
        let path = path_and_query.split('?').next().unwrap_or_default();
        // The rest of the content is not read, so the client is not waited for.
        drop(self.content.source.take());
        let content = Rc::new(self.content.latest().continued());
        self.content.latest().kept.set(Rc::clone(&content)).ok();
        let authority_end = method.len() + authority.len();
        Self {
            text: [method, authority, path_and_query]
                .concat()
                .into_boxed_str(),
            ends: [method.len(), authority_end, authority_end + path.len()],
            upgrade: None,
            content,
            ..self
        }
    }

    /// The request, as an action takes it. Its content is that of the first: it can be taken once.
    pub fn request(&self) -> Request<'_> {
        let [method, authority, path] = self.ends;
        let text = |from: usize, end: usize| self.text.get(from..end).unwrap_or_default();
        Request {
            method: text(0, method),
            scheme: self.scheme,
            authority: text(method, authority),
            path: text(authority, path),
            query: text(path, self.text.len()).strip_prefix('?'),
            version: self.version,
            peer: self.peer,
            upgrade: self.upgrade.as_deref(),
            fields: EditedFields::new(match &self.fields {
                OwnedFields::Map(map) => Fields::Map(map),
                OwnedFields::Kept(kept) => Fields::Kept(kept),
            }),
            connection: &self.connection,
            content: &self.content,
        }
    }
}

impl Request<'_> {
    /// Keeps the request with its content, to be answered later: fields keep their order and case.
    pub fn into_owned(self) -> OwnedRequest {
        let body = self.take_body();
        let content = Rc::new(Content {
            source: RefCell::new(if body.is_end_stream() {
                ContentSource::None
            } else {
                ContentSource::Kept(body)
            }),
            length: self.content.length,
            ..self.content.latest().continued()
        });
        self.content.latest().kept.set(Rc::clone(&content)).ok();
        let mark = if self.query.is_some() { "?" } else { "" };
        let texts = [
            self.method,
            self.authority,
            self.path,
            mark,
            self.query.unwrap_or_default(),
        ];
        let mut ends = [0; 3];
        let mut end = 0;
        for (slot, text) in ends.iter_mut().zip(texts) {
            end += text.len();
            *slot = end;
        }
        OwnedRequest {
            text: texts.concat().into_boxed_str(),
            ends,
            scheme: self.scheme,
            version: self.version,
            upgrade: self.upgrade.map(Box::from),
            fields: match self.fields.as_map() {
                Some(map) => OwnedFields::Map(map.clone()),
                None => OwnedFields::Kept(self.fields.keep()),
            },
            peer: self.peer,
            connection: Rc::clone(self.connection),
            content,
        }
    }

    /// The same as [`into_owned`](Self::into_owned) with its content apart: a guard may keep the request, and does not
    /// consume the content. [`with_content_back`](Self::with_content_back) ends that.
    pub(crate) fn with_content_apart(self) -> (OwnedRequest, Rc<ContentApart>) {
        let request = self.into_owned();
        let apart = Rc::new(ContentApart {
            source: RefCell::new(request.content.source.take()),
            is_admitted: Cell::new(false),
        });
        let notes = &request.content.notes;
        notes.borrow_mut().apart = Some(Rc::clone(&apart));
        (request, apart)
    }

    /// The same with the content that was kept apart.
    pub(crate) fn with_content_back(self) -> OwnedRequest {
        let withheld = self.withheld_trailers();
        let apart = self.content.latest().notes.borrow_mut().apart.take();
        let request = self.into_owned();
        if let Some(apart) = apart {
            apart.is_admitted.set(true);
            let source = match apart.source.take() {
                ContentSource::Kept(body) => ContentSource::Kept(body.withholding(withheld)),
                other => other,
            };
            request.content.source.replace(source);
        }
        request
    }
}
