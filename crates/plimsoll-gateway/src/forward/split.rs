//! The upstream of a request: by the value of a text with places, or by shares, such as that of a canary.

use std::collections::HashMap;
use std::rc::Rc;

use http::header::HeaderValue;
use plimsoll_server::{Request, Template};

use crate::balance::hash;
use crate::upstream::Upstream;

/// The upstreams of a route on one worker.
pub(super) struct Split {
    main: Variant,
    /// Upstreams by their names, and what names the one of a request.
    named: Option<NamedUpstreams>,
    others: Vec<(u32, Variant)>,
    /// The cookie that keeps a client at its variant.
    cookie: Option<String>,
}

/// What names the upstream of a request, and the upstreams by their names.
pub(crate) type NamedUpstreams = (Template, HashMap<Vec<u8>, Rc<Upstream>>);

/// One of the upstreams.
struct Variant {
    upstream: Rc<Upstream>,
    /// The value of the cookie.
    value: String,
}

impl Variant {
    fn new(upstream: Rc<Upstream>) -> Self {
        let value = format!("{:016x}", hash(upstream.plan.name.as_bytes()));
        Self { upstream, value }
    }
}

/// The upstream that was chosen for a request.
pub(super) struct Choice {
    pub(super) upstream: Rc<Upstream>,
    /// Set for a client that is new.
    pub(super) cookie: Option<HeaderValue>,
}

impl Split {
    /// - `others`: percentages of requests, in all at most 100, and where those go.
    pub(super) fn new(
        main: Rc<Upstream>,
        named: Option<NamedUpstreams>,
        others: Vec<(u32, Rc<Upstream>)>,
        cookie: Option<String>,
    ) -> Self {
        let others = others
            .into_iter()
            .map(|(share, upstream)| (share, Variant::new(upstream)));
        Self {
            main: Variant::new(main),
            named,
            others: others.collect(),
            cookie,
        }
    }

    /// The upstream for a request; `None` if none has the name that its text is.
    pub(super) fn choose(&self, request: &Request<'_>) -> Option<Choice> {
        let Some((template, upstreams)) = &self.named else {
            return Some(self.choose_by_share(request));
        };
        let mut name = Vec::new();
        template.fill(request, &mut name);
        let upstream = Rc::clone(upstreams.get(&name)?);
        Some(Choice {
            upstream,
            cookie: None,
        })
    }

    fn choose_by_share(&self, request: &Request<'_>) -> Choice {
        if self.others.is_empty() {
            return Choice {
                upstream: Rc::clone(&self.main.upstream),
                cookie: None,
            };
        }
        let known = self.cookie.as_ref().and_then(|it| request.cookie(it));
        if let Some(variant) = known.and_then(|value| self.variant(value)) {
            return Choice {
                upstream: Rc::clone(&variant.upstream),
                cookie: None,
            };
        }
        let variant = self.at(fastrand::u32(..100));
        let cookie = self.cookie.as_ref().and_then(|name| {
            let text = format!("{name}={}; Path=/; HttpOnly; SameSite=Lax", variant.value);
            HeaderValue::from_str(&text).ok()
        });
        Choice {
            upstream: Rc::clone(&variant.upstream),
            cookie,
        }
    }

    /// The variant that a cookie names; one whose share is 0 takes no client any more.
    fn variant(&self, value: &str) -> Option<&Variant> {
        let shares: u32 = self.others.iter().map(|(share, _)| share).sum();
        let others = self.others.iter().filter(|(share, _)| *share > 0);
        let main = (shares < 100).then_some(&self.main);
        let mut variants = others.map(|(_, variant)| variant).chain(main);
        variants.find(|variant| variant.value == value)
    }

    /// - `random`: below 100.
    fn at(&self, random: u32) -> &Variant {
        let mut end = 0;
        for (share, variant) in &self.others {
            end += share;
            if random < end {
                return variant;
            }
        }
        &self.main
    }
}
