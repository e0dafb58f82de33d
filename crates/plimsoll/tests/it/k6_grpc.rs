//! k6/net/grpc, against a server made with tonic.

use serde_json::Value;

use crate::plimsoll::{CommandOutput, plimsoll};
use crate::tonic_server::{Reflection, TonicServer};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// Runs a script; `ADDRESS` in it is the server's, `DATA` the folder of the `.proto` file.
fn run(server: &TonicServer, text: &str, exit: i32) -> (CommandOutput, Value) {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.js");
    let address = server.url().replace("http://", "");
    let text = text.replace("ADDRESS", &address).replace("DATA", DATA);
    std::fs::write(&script, text).unwrap();
    let summary = directory.path().join("summary.json");
    let arguments = [
        "load",
        "--summary-export",
        summary.to_str().unwrap(),
        script.to_str().unwrap(),
    ];
    let output = plimsoll(&arguments).exits(exit);
    let summary = std::fs::read_to_string(&summary).unwrap_or_default();
    (output, serde_json::from_str(&summary).unwrap_or_default())
}

fn logged(output: &CommandOutput) -> Vec<String> {
    let lines = output.stderr.lines();
    let lines = lines.filter_map(|line| line.strip_suffix("  source=console"));
    let texts = lines.filter_map(|line| line.split_once("] "));
    texts.map(|(_, text)| text.to_owned()).collect()
}

#[test]
fn calls_have_status_message_fields_and_samples() {
    let server = TonicServer::start(Reflection::Nothing);
    let (output, summary) = run(
        &server,
        "import grpc, { StatusOK } from 'k6/net/grpc'; import { check } from 'k6';
         const client = new grpc.Client();
         client.load(['DATA'], 'echo.proto');
         export const options = {
           iterations: 3,
           thresholds: {
             'grpc_req_duration{service:plimsoll.test.Echo,method:Say,status:0}': ['min>0'],
             'grpc_req_duration{method:Fail,status:5}': ['min>0'],
             'grpc_req_duration{own:tag}': ['min>0'],
             'grpc_req_duration{name:/plimsoll.test.Echo/Say}': ['min>0'],
             'grpc_req_duration{url:ADDRESS/plimsoll.test.Echo/Say}': ['min>0'],
           },
         };
         export default () => {
           client.connect('ADDRESS', { plaintext: true });
           const said = client.invoke('plimsoll.test.Echo/Say', { text: 'Grüße' }, { tags: { own: 'tag' }, metadata: { 'X-Own': 'o' } });
           const failed = client.invoke('plimsoll.test.Echo/Fail', { code: 5, message: 'no such line' });
           const empty = client.invoke('/plimsoll.test.Echo/Say', {});
           check(null, {
             'a message': () => said.status === StatusOK && said.error === null && said.message.text === 'Grüße',
             'defaults': () => empty.message.text === '',
             'fields': () => said.headers['content-type'][0] === 'application/grpc',
             'a failure': () => failed.status === grpc.StatusNotFound && failed.message === null
               && failed.error.code === 5 && failed.error.message === 'no such line',
           });
           client.close();
         };",
        0,
    );
    assert_eq!(server.calls(), 9, "{output}");
    assert_eq!(summary["metrics"]["checks"]["passes"], 12, "{summary}");
    assert!(output.stdout.contains("    GRPC\n"), "{output}");
    let received = summary["metrics"]["data_received"]["count"].as_f64();
    assert!(received.unwrap() > 100.0, "{summary}");
}

#[test]
fn loading_lists_the_methods() {
    let server = TonicServer::start(Reflection::Nothing);
    let (output, _) = run(
        &server,
        "import grpc from 'k6/net/grpc';
         const client = new grpc.Client();
         const files = client.load(['DATA'], 'echo.proto'), set = new grpc.Client().loadProtoset('DATA/echo.binpb');
         export default () => {
           console.log(files.map((it) => it.full_method).join());
           const { package: name, service, full_method } = set.find((it) => it.full_method.endsWith('/Chat'));
           console.log(files.length === set.length, name, service, full_method);
         };",
        0,
    );
    let expected = [
        "/plimsoll.test.Echo/Say,/plimsoll.test.Echo/Repeat,/plimsoll.test.Echo/Gather,/plimsoll.test.Echo/Chat,/plimsoll.test.Echo/Fail",
        "true plimsoll.test Echo /plimsoll.test.Echo/Chat",
    ];
    assert_eq!(logged(&output), expected, "{output}");
}

#[test]
fn streams_send_and_receive() {
    let server = TonicServer::start(Reflection::Nothing);
    let (output, summary) = run(
        &server,
        "import grpc from 'k6/net/grpc';
         const client = new grpc.Client();
         client.loadProtoset('DATA/echo.binpb');
         const follow = (name, stream) => new Promise((resolve) => {
           const seen = [];
           stream.on('data', (message) => seen.push(message.text ?? `${message.lines}/${message.letters}`));
           stream.on('error', (error) => seen.push(`error ${error.code}`));
           stream.on('end', () => { console.log(name, seen.join(' ')); resolve(); });
         });
         export default async () => {
           client.connect('ADDRESS', { plaintext: true });
           const repeat = new grpc.Stream(client, 'plimsoll.test.Echo/Repeat');
           const repeated = follow('repeat', repeat);
           repeat.write({ line: { text: 'again' }, times: 3 });
           repeat.end();
           await repeated;
           const gather = new grpc.Stream(client, 'plimsoll.test.Echo/Gather');
           const gathered = follow('gather', gather);
           for (const text of ['ab', 'cde']) gather.write({ text });
           gather.end();
           await gathered;
           const chat = new grpc.Stream(client, 'plimsoll.test.Echo/Chat', { tags: { kind: 'chat' } });
           const chatted = follow('chat', chat);
           chat.write({ text: 'first' });
           chat.on('data', (message) => { if (message.text === 'first') { chat.write({ text: 'second' }); chat.end(); } });
           await chatted;
           try { new grpc.Stream(client, 'plimsoll.test.Echo/Nothing'); } catch (error) { console.log(error.message); }
           client.close();
         };",
        0,
    );
    let expected = [
        "repeat again again again",
        "gather 2/5",
        "chat first second",
        "method \"/plimsoll.test.Echo/Nothing\" not found in file descriptors: there are Say, Repeat, Gather, Chat, Fail",
    ];
    assert_eq!(logged(&output), expected, "{output}");
    let count = |name: &str| summary["metrics"][name]["count"].clone();
    assert_eq!(count("grpc_streams"), 3, "{summary}");
    assert_eq!(count("grpc_streams_msgs_sent"), 5, "{summary}");
    assert_eq!(count("grpc_streams_msgs_received"), 6, "{summary}");
}

#[test]
fn methods_come_from_reflection() {
    for reflection in [Reflection::V1, Reflection::V1Alpha] {
        let server = TonicServer::start(reflection);
        let (output, _) = run(
            &server,
            "import grpc from 'k6/net/grpc';
             const client = new grpc.Client();
             export default async () => {
               client.connect('ADDRESS', { plaintext: true, reflect: true });
               const response = await client.asyncInvoke('plimsoll.test.Echo/Say', { text: 'reflected' });
               console.log(response.message.text, client.healthCheck().status === grpc.StatusUnimplemented);
             };",
            0,
        );
        assert_eq!(
            logged(&output),
            ["reflected true"],
            "{reflection:?} {output}"
        );
    }
}

#[test]
fn what_is_wrong_is_thrown() {
    let server = TonicServer::start(Reflection::Nothing);
    let (output, _) = run(
        &server,
        "import grpc from 'k6/net/grpc';
         const client = new grpc.Client();
         client.load(['DATA'], 'echo.proto');
         const other = new grpc.Client();
         const attempt = (call) => { try { call(); } catch (error) { console.log(error.message); } };
         export default () => {
           attempt(() => client.invoke('plimsoll.test.Echo/Say', {}));
           attempt(() => client.connect('http://ADDRESS'));
           attempt(() => client.connect('ADDRESS', { plain: true }));
           attempt(() => client.load([], 'echo.proto'));
           client.connect('ADDRESS', { plaintext: true });
           attempt(() => client.invoke('Say', {}));
           attempt(() => client.invoke('plimsoll.test.Echo/Sey', {}));
           attempt(() => client.invoke('plimsoll.test.Echo/Say', { txt: 1 }));
           attempt(() => client.invoke('plimsoll.test.Echo/Repeat', {}));
           attempt(() => client.invoke('plimsoll.test.Echo/Say', {}, { timeout: 'soon' }));
           attempt(() => client.invoke('plimsoll.test.Echo/Say', {}, { metadata: { number: 1 } }));
           other.connect('ADDRESS', { plaintext: true });
           attempt(() => other.invoke('plimsoll.test.Echo/Say', {}));
           const late = new grpc.Client();
           attempt(() => late.connect('127.0.0.1:1', { plaintext: true }));
         };",
        0,
    );
    let lines = logged(&output);
    let expected = [
        "no gRPC connection, you must call connect() first",
        "is not an address such as \"localhost:50051\": it has a scheme",
        "connect params: unknown param \"plain\"",
        "load() can only be used in the init context",
        "the method `Say` is not of the form `package.Service/Method`",
        "method \"/plimsoll.test.Echo/Sey\" not found in file descriptors: there are Say, Repeat, Gather, Chat, Fail",
        "the request is not a plimsoll.test.Line: unrecognized field name 'txt'",
        "is a method with a stream: call it by grpc.Stream",
        "timeout: ",
        "metadata: the value of \"number\" must be a string",
        "call client.load() first, or connect with `reflect: true`",
        "connection refused",
    ];
    assert_eq!(lines.len(), expected.len(), "{output}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.contains(expected), "no {expected:?} in {line:?}");
    }
}

#[test]
fn files_that_are_wrong_end_the_run_with_their_position() {
    let server = TonicServer::start(Reflection::Nothing);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("broken.proto");
    std::fs::write(
        &file,
        "syntax = \"proto3\";\nmessage A { strin text = 1; }\n",
    )
    .unwrap();
    let text = format!(
        "import grpc from 'k6/net/grpc';
         const client = new grpc.Client();
         client.load([{:?}], 'broken.proto');
         export default () => {{}};",
        directory.path().to_str().unwrap()
    );
    let (output, _) = run(&server, &text, 107);
    assert!(output.stderr.contains("broken.proto:2:13"), "{output}");
}
