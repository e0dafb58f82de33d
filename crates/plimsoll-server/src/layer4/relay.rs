//! Datagrams between the processes of a hand-over: those of a session go to the process that has it.
//!
//! The new process gets every datagram. One that belongs to none of its sessions it sends to the workers of the process
//! before it, one after the other, until one of them has its session. The last of them sends it back, and the new process
//! begins a session for it. First only sessions with exactly its addresses count; then the others.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_wire::{DatagramPath, RelayEnd, Relayed};

use crate::layer4::datagram::SessionMatch;

/// How certain a match has to be. The first byte of a label; both processes know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Exact = 0,
    Any = 1,
}

impl Round {
    fn accepts(self, found: Option<SessionMatch>) -> bool {
        match self {
            Self::Exact => found == Some(SessionMatch::Path),
            Self::Any => found.is_some(),
        }
    }
}

/// A datagram on its way through the workers of the process before, as its label says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    round: Round,
    /// The link that it began with.
    first: u16,
    /// Links that it has been to in this round.
    asked: u16,
    /// The link that it came from and its label there, if this process did not receive it itself.
    origin: Option<(u16, Vec<u8>)>,
}

impl Question {
    fn label(&self) -> Vec<u8> {
        let mut label = vec![self.round as u8];
        label.extend(self.first.to_be_bytes());
        label.extend(self.asked.to_be_bytes());
        if let Some((link, of_origin)) = &self.origin {
            label.extend(link.to_be_bytes());
            label.extend(of_origin);
        }
        label
    }

    fn read(label: &[u8]) -> Option<Self> {
        let round = round(label)?;
        let (first, rest) = label.get(1..)?.split_first_chunk()?;
        let (asked, rest) = rest.split_first_chunk()?;
        let origin = rest.split_first_chunk();
        Some(Self {
            round,
            first: u16::from_be_bytes(*first),
            asked: u16::from_be_bytes(*asked),
            origin: origin.map(|(link, label)| (u16::from_be_bytes(*link), label.to_vec())),
        })
    }
}

fn round(label: &[u8]) -> Option<Round> {
    match label.first()? {
        0 => Some(Round::Exact),
        1 => Some(Round::Any),
        _ => None,
    }
}

/// What becomes of a datagram that came by a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RelayOutcome {
    /// It is this process's.
    Handle,
    /// It went on, or back.
    Passed,
}

/// The links of a listener on one worker.
#[derive(Debug, Default)]
pub(crate) struct Relays {
    /// To each worker of the process before this one.
    before: RefCell<Vec<Option<Rc<RelayEnd>>>>,
    /// To workers of the process after this one.
    after: RefCell<Vec<Option<Rc<RelayEnd>>>>,
}

impl Relays {
    /// - `before`: links to the workers of the process before this one.
    pub(crate) fn new(before: Vec<RelayEnd>) -> Self {
        Self {
            before: RefCell::new(before.into_iter().map(Rc::new).map(Some).collect()),
            after: RefCell::default(),
        }
    }

    /// Whether another process may have sessions.
    pub(crate) fn has_before(&self) -> bool {
        self.before.borrow().iter().any(Option::is_some)
    }

    /// Whether another process may send datagrams.
    pub(crate) fn has_after(&self) -> bool {
        self.after.borrow().iter().any(Option::is_some)
    }

    /// Links to the process before, with their numbers.
    pub(crate) fn before(&self) -> Vec<(usize, Rc<RelayEnd>)> {
        let before = self.before.borrow();
        let links = before.iter().enumerate();
        links
            .filter_map(|(number, end)| Some((number, Rc::clone(end.as_ref()?))))
            .collect()
    }

    /// Adds a link to a worker of the process after this one; returns its number.
    pub(crate) fn add_after(&self, end: &Rc<RelayEnd>) -> usize {
        let mut after = self.after.borrow_mut();
        after.push(Some(Rc::clone(end)));
        after.len() - 1
    }

    /// The process before has ended.
    pub(crate) fn end_before(&self, number: usize) {
        if let Some(end) = self.before.borrow_mut().get_mut(number) {
            *end = None;
        }
    }

    /// The process after has ended.
    pub(crate) fn end_after(&self, number: usize) {
        if let Some(end) = self.after.borrow_mut().get_mut(number) {
            *end = None;
        }
    }

    /// Sends a datagram that is of no session of this worker to the process before; false if nobody there may have it.
    ///
    /// - `first`: the worker that most likely has its session.
    pub(crate) fn ask(&self, first: usize, path: DatagramPath, bytes: &[u8]) -> bool {
        let Some(count) = self.count_before() else {
            return false;
        };
        let first = u16::try_from(first % usize::from(count)).unwrap_or(0);
        let question = Question {
            round: Round::Exact,
            first,
            asked: 0,
            origin: None,
        };
        self.pass(question, path, bytes)
    }

    /// Takes a datagram that the process before has sent back.
    pub(crate) fn returned(&self, message: &Relayed<'_>) -> RelayOutcome {
        let Some(mut question) = Question::read(message.label) else {
            return RelayOutcome::Handle;
        };
        question.asked = question.asked.saturating_add(1);
        if self.pass(question.clone(), message.path, message.bytes) {
            return RelayOutcome::Passed;
        }
        match question.origin {
            None => RelayOutcome::Handle,
            Some((link, label)) => {
                self.send_back(link.into(), &label, message);
                RelayOutcome::Passed
            }
        }
    }

    /// Takes a datagram of the process after this one.
    ///
    /// - `link`: the number of the link that it came by.
    /// - `found`: the session of this worker.
    pub(crate) fn asked(
        &self,
        link: usize,
        found: Option<SessionMatch>,
        message: &Relayed<'_>,
    ) -> RelayOutcome {
        let Some(round) = round(message.label) else {
            return RelayOutcome::Passed;
        };
        if round.accepts(found) {
            return RelayOutcome::Handle;
        }
        let question = Question {
            round,
            first: 0,
            asked: 0,
            origin: u16::try_from(link)
                .ok()
                .map(|link| (link, message.label.to_vec())),
        };
        if !self.pass(question, message.path, message.bytes) {
            self.send_back(link, message.label, message);
        }
        RelayOutcome::Passed
    }

    /// Sends a datagram to the next link; false if it has been to all.
    fn pass(&self, mut question: Question, path: DatagramPath, bytes: &[u8]) -> bool {
        let Some(count) = self.count_before() else {
            return false;
        };
        loop {
            if question.asked >= count {
                // The rounds of one that came from elsewhere are those of the process that received it.
                if question.round == Round::Any || question.origin.is_some() {
                    return false;
                }
                (question.round, question.asked) = (Round::Any, 0);
            }
            let number =
                (usize::from(question.first) + usize::from(question.asked)) % usize::from(count);
            let end = self.before.borrow().get(number).cloned().flatten();
            let label = question.label();
            let message = Relayed {
                label: &label,
                path,
                bytes,
            };
            // One whose queue is full hangs: the datagram is not held up.
            if end.is_some_and(|end| end.try_send(&message).is_ok()) {
                return true;
            }
            question.asked += 1;
        }
    }

    fn send_back(&self, link: usize, label: &[u8], message: &Relayed<'_>) {
        let end = self.after.borrow().get(link).cloned().flatten();
        if let Some(end) = end {
            // A datagram that does not fit is lost, as datagrams are.
            end.try_send(&Relayed { label, ..*message }).ok();
        }
    }

    fn count_before(&self) -> Option<u16> {
        let before = self.before.borrow();
        let count = u16::try_from(before.len()).ok()?;
        (count > 0 && before.iter().any(Option::is_some)).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::RelayBuffer;

    use super::*;

    const PATH: DatagramPath = DatagramPath {
        peer: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1),
        local: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 2),
        ecn: None,
    };

    fn links(count: usize) -> (Relays, Vec<RelayEnd>) {
        let pairs: Vec<_> = (0..count).map(|_| RelayEnd::pair().unwrap()).collect();
        let (ours, theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let end = |end| RelayEnd::new(end).unwrap();
        (
            Relays::new(ours.into_iter().map(end).collect()),
            theirs.into_iter().map(end).collect(),
        )
    }

    fn within_runtime(test: impl AsyncFnOnce()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(test());
    }

    #[test]
    fn labels_are_read_as_they_were_written() {
        for origin in [None, Some((3, vec![1, 0, 2])), Some((0, Vec::new()))] {
            let question = Question {
                round: Round::Any,
                first: 1,
                asked: 700,
                origin,
            };
            assert_eq!(Question::read(&question.label()), Some(question));
        }
        for label in [&[][..], &[7], &[0, 0, 0, 0]] {
            assert_eq!(Question::read(label), None);
        }
    }

    #[test]
    fn a_datagram_goes_to_each_worker_twice_and_comes_back() {
        within_runtime(async || {
            let (relays, theirs) = links(3);
            let mut buffer = RelayBuffer::default();
            assert!(relays.ask(4, PATH, b"x"));
            let mut seen = Vec::new();
            for number in [1, 2, 0, 1, 2, 0] {
                let message = theirs[number].receive(&mut buffer).await.unwrap().unwrap();
                assert_eq!(message.bytes, b"x");
                seen.push(message.label[0]);
                let last = relays.returned(&message);
                let expected = if seen.len() == 6 {
                    RelayOutcome::Handle
                } else {
                    RelayOutcome::Passed
                };
                assert_eq!(last, expected);
            }
            assert_eq!(seen, [0, 0, 0, 1, 1, 1], "exact matches come first");
        });
    }

    #[test]
    fn what_the_process_after_asks_is_answered_or_goes_further_back() {
        within_runtime(async || {
            let (relays, theirs) = links(1);
            let (after, theirs_after) = RelayEnd::pair().unwrap();
            let after = Rc::new(RelayEnd::new(after).unwrap());
            let theirs_after = RelayEnd::new(theirs_after).unwrap();
            assert_eq!(relays.add_after(&after), 0);
            let label = Question {
                round: Round::Exact,
                first: 0,
                asked: 0,
                origin: None,
            };
            let label = label.label();
            let message = Relayed {
                label: &label,
                path: PATH,
                bytes: b"y",
            };
            let mine = relays.asked(0, Some(SessionMatch::Path), &message);
            assert_eq!(mine, RelayOutcome::Handle);
            // Another address of a known connection is not enough in the first round.
            let passed = relays.asked(0, Some(SessionMatch::Id), &message);
            assert_eq!(passed, RelayOutcome::Passed);
            let mut buffer = RelayBuffer::default();
            let further = theirs[0].receive(&mut buffer).await.unwrap().unwrap();
            assert_eq!(relays.returned(&further), RelayOutcome::Passed);
            let back = theirs_after.receive(&mut buffer).await.unwrap().unwrap();
            assert_eq!(back, message);
            // Without a process before, it comes back at once.
            relays.end_before(0);
            assert!(!relays.has_before());
            assert_eq!(relays.asked(0, None, &message), RelayOutcome::Passed);
            let back = theirs_after.receive(&mut buffer).await.unwrap().unwrap();
            assert_eq!(back, message);
            assert!(!relays.ask(0, PATH, b"z"));
        });
    }
}
