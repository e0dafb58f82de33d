use tokio::io::duplex;

use super::*;

/// Sends `input` in pieces of `piece` bytes, closes, and returns what came back.
async fn talk(input: &str, piece: usize) -> String {
    let (ours, theirs) = duplex(1 << 20);
    let (mut read, mut write) = tokio::io::split(ours);
    let answer = Answer::new(b"hello");
    let mut output = String::new();
    let (served, (), ()) = tokio::join!(
        serve(theirs, &answer),
        async {
            for piece in input.as_bytes().chunks(piece) {
                if write.write_all(piece).await.is_err() {
                    return;
                }
            }
            drop(write.shutdown().await);
        },
        async {
            read.read_to_string(&mut output).await.unwrap();
        }
    );
    drop(served);
    output
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\n";

#[tokio::test]
async fn requests_are_answered_in_order_however_they_arrive() {
    let input = "GET / HTTP/1.1\r\nhost: a\r\n\r\n\
        POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc\
        HEAD / HTTP/1.1\r\nhost: a\r\n\r\n\
        PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n\
        GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let expected = format!("{OK}hello{OK}hello{OK}{OK}hello{OK}hello");
    for piece in [1, 7, 1000] {
        assert_eq!(talk(input, piece).await, expected, "in pieces of {piece}");
    }
}

#[tokio::test]
async fn an_answer_follows_the_last_byte_of_the_body() {
    let (mut ours, theirs) = duplex(1 << 20);
    let answer = Answer::new(b"hello");
    let request = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc";
    let expected = format!("{OK}hello");
    let client = async {
        ours.write_all(request).await.unwrap();
        let mut output = vec![0; expected.len()];
        ours.read_exact(&mut output).await.unwrap();
        assert_eq!(output, expected.as_bytes());
        drop(ours);
    };
    let (served, ()) = tokio::join!(serve(theirs, &answer), client);
    served.unwrap();
}

#[tokio::test]
async fn a_broken_request_gets_400_and_the_connection_ends() {
    let answer = talk(
        "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
        1000,
    )
    .await;
    assert_eq!(answer.as_bytes(), BAD_REQUEST);
    let long = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}", "y".repeat(20_000));
    assert_eq!(talk(&long, 1000).await.as_bytes(), BAD_REQUEST);
}
