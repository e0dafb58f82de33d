//! What every transport keeps: one suite, run on each implementation.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::transport::{Deliver, Delivered, FleetTransport, Subscription};

/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time for a message that must not arrive to arrive all the same.
const SILENCE: Duration = Duration::from_millis(100);

/// Makes connections to one broker.
pub(crate) type MakeTransport<'a> = &'a dyn Fn() -> Box<dyn FleetTransport>;

/// Runs the whole suite. The broker may hold nothing of it before, and holds nothing of it behind.
pub(crate) fn all(make: MakeTransport<'_>) {
    messages_reach_all_that_listen_and_no_one_else(make);
    a_log_is_read_from_its_beginning_and_goes_on(make);
    a_log_keeps_one_message_of_an_id(make);
    a_log_that_is_full_says_so_and_keeps_what_it_has(make);
    subjects_of_a_log_are_read_apart(make);
    files_are_returned_as_they_were_stored(make);
    what_is_deleted_is_gone(make);
}

fn collect() -> (Deliver, Receiver<Delivered>) {
    let (send, receive) = channel();
    (Box::new(move |message| send.send(message).is_ok()), receive)
}

fn texts(received: &Receiver<Delivered>, count: usize) -> Vec<String> {
    (0..count)
        .map(|_| {
            let message = received.recv_timeout(PATIENCE).expect("a message arrives");
            String::from_utf8(message.payload).expect("texts were sent")
        })
        .collect()
}

fn assert_silent(received: &Receiver<Delivered>) {
    let more = received.recv_timeout(SILENCE);
    assert!(more.is_err(), "{more:?}");
}

fn log_of(transport: &dyn FleetTransport, run: &str) -> [String; 2] {
    let subjects = ["one", "other"].map(|it| format!("plimsoll.contract.{run}.{it}"));
    transport
        .create_log(run, &subjects, 1 << 20)
        .expect("it is new");
    subjects
}

fn messages_reach_all_that_listen_and_no_one_else(make: MakeTransport<'_>) {
    let (sender, one, other) = (make(), make(), make());
    assert!(sender.is_connected());
    sender
        .publish("plimsoll.contract.a", b"early".to_vec())
        .expect("no listener is no error");
    // Once it listens, what it has published before was delivered.
    let (deliver, _) = collect();
    let listening = sender.subscribe("plimsoll.contract.b", deliver);
    drop(listening.expect("it listens"));

    let (deliver, first) = collect();
    let _first = one
        .subscribe("plimsoll.contract.a", deliver)
        .expect("it listens");
    let (deliver, second) = collect();
    let second_ends = other
        .subscribe("plimsoll.contract.a", deliver)
        .expect("it listens");
    let (deliver, third) = collect();
    let _third = other
        .subscribe("plimsoll.contract.b", deliver)
        .expect("it listens");
    for text in ["1", "2", "3"] {
        let sent = sender.publish("plimsoll.contract.a", text.as_bytes().to_vec());
        sent.expect("it is published");
    }
    assert_eq!(texts(&first, 3), ["1", "2", "3"]);
    assert_eq!(texts(&second, 3), ["1", "2", "3"]);
    drop(second_ends);
    sender
        .publish("plimsoll.contract.a", b"4".to_vec())
        .expect("it is published");
    assert_eq!(texts(&first, 1), ["4"]);
    assert_silent(&second);
    assert_silent(&third);
}

fn a_log_is_read_from_its_beginning_and_goes_on(make: MakeTransport<'_>) {
    let (writer, reader) = (make(), make());
    let (deliver, _) = collect();
    let without = reader.follow_log("contract-none", "plimsoll.contract.none", deliver);
    assert!(without.is_err());
    let [subject, _] = log_of(&*writer, "contract-begin");
    assert!(
        writer
            .create_log("contract-begin", std::slice::from_ref(&subject), 1 << 20)
            .is_err()
    );
    for (id, text) in ["1", "2"].into_iter().enumerate() {
        let id = id.to_string();
        let appended = writer.append(&subject, &id, text.as_bytes().to_vec());
        appended.expect("the log takes it");
    }
    let (deliver, received) = collect();
    let _reading: Subscription = reader
        .follow_log("contract-begin", &subject, deliver)
        .expect("there is a log");
    assert_eq!(texts(&received, 2), ["1", "2"]);
    writer
        .append(&subject, "2", b"3".to_vec())
        .expect("the log takes it");
    assert_eq!(texts(&received, 1), ["3"]);
    let nowhere = writer.append("plimsoll.contract.nowhere", "0", Vec::new());
    assert!(nowhere.is_err(), "no log holds it");
    writer
        .delete("contract-begin", "contract-begin")
        .expect("it is ours");
}

fn a_log_keeps_one_message_of_an_id(make: MakeTransport<'_>) {
    let transport = make();
    let [subject, _] = log_of(&*transport, "contract-id");
    for (id, text) in [("a", "1"), ("a", "again"), ("b", "2")] {
        let appended = transport.append(&subject, id, text.as_bytes().to_vec());
        appended.expect("a repetition is no error");
    }
    let (deliver, received) = collect();
    let _reading = transport
        .follow_log("contract-id", &subject, deliver)
        .expect("there is a log");
    assert_eq!(texts(&received, 2), ["1", "2"]);
    assert_silent(&received);
    transport
        .delete("contract-id", "contract-id")
        .expect("it is ours");
}

fn a_log_that_is_full_says_so_and_keeps_what_it_has(make: MakeTransport<'_>) {
    let transport = make();
    let subject = "plimsoll.contract.full".to_owned();
    let created = transport.create_log("contract-full", std::slice::from_ref(&subject), 4096);
    created.expect("it is new");
    let kept = (0..10)
        .map(|id| transport.append(&subject, &format!("{id}"), vec![b'a'; 1000]))
        .take_while(Result::is_ok)
        .count();
    assert!((1..=4).contains(&kept), "{kept}");
    let refused = transport.append(&subject, "more", vec![b'a'; 1000]);
    let refused = refused.expect_err("it is full");
    assert!(refused.reason.contains("--fleet-log"), "{refused}");
    let (deliver, received) = collect();
    let _reading = transport
        .follow_log("contract-full", &subject, deliver)
        .expect("there is a log");
    assert_eq!(texts(&received, kept), vec!["a".repeat(1000); kept]);
    assert_silent(&received);
    transport
        .delete("contract-full", "contract-full")
        .expect("it is ours");
}

fn subjects_of_a_log_are_read_apart(make: MakeTransport<'_>) {
    let transport = make();
    let [one, other] = log_of(&*transport, "contract-apart");
    transport
        .append(&one, "1", b"one".to_vec())
        .expect("the log takes it");
    transport
        .append(&other, "2", b"other".to_vec())
        .expect("the log takes it");
    let (deliver, received) = collect();
    let _reading = transport
        .follow_log("contract-apart", &other, deliver)
        .expect("there is a log");
    assert_eq!(texts(&received, 1), ["other"]);
    assert_silent(&received);
    transport
        .delete("contract-apart", "contract-apart")
        .expect("it is ours");
}

fn files_are_returned_as_they_were_stored(make: MakeTransport<'_>) {
    let (writer, reader) = (make(), make());
    // Larger than one message of a broker may be.
    let large: Vec<u8> = (0..3_000_000_u32).map(|it| it.to_le_bytes()[1]).collect();
    for (name, content) in [("empty", Vec::new()), ("large", large.clone())] {
        let stored = writer.put_blob("contract-files", name, content);
        stored.expect("it is stored");
    }
    let read = |name, most| reader.blob("contract-files", name, most);
    assert_eq!(read("empty", 10).expect("it is there"), Vec::<u8>::new());
    assert!(read("large", 3_000_000).expect("it is there") == large);
    assert!(read("large", 2_999_999).is_err(), "it is too large");
    assert!(read("other", 10).is_err(), "it was not stored");
    writer
        .delete("contract-none", "contract-files")
        .expect("it is ours");
    assert!(read("empty", 10).is_err(), "it is deleted");
}

fn what_is_deleted_is_gone(make: MakeTransport<'_>) {
    let transport = make();
    let [subject, _] = log_of(&*transport, "contract-gone");
    transport
        .append(&subject, "1", b"1".to_vec())
        .expect("the log takes it");
    transport
        .delete("contract-gone", "contract-gone")
        .expect("it is ours");
    transport
        .delete("contract-gone", "contract-gone")
        .expect("once more is no error");
    assert!(transport.append(&subject, "2", b"2".to_vec()).is_err());
}
