"""A service and a client of grpcio: `grpcio.py serve PORT`, `grpcio.py call PORT [CERTIFICATE]`.

The client makes calls of every kind and prints what came of them as JSON, so that two ways to the service can be compared.
Messages are bytes, so no code is generated.
"""

import json
import sys
import threading
from concurrent import futures

import grpc

SERVICE = "plimsoll.Test"
LONG = bytes(range(256)) * 4096 * 3  # 3 MiB, beyond every window on the way


def serve(port):
    cancelled = threading.Event()

    def unary(request, context):
        context.send_initial_metadata((("x-initial", "one"), ("x-binary-bin", b"\x00\xff")))
        context.set_trailing_metadata((("x-trailing", "two"), ("x-binary-bin", b"\x01\xfe")))
        return request + dict(context.invocation_metadata()).get("x-client", "").encode()

    def failing(request, context):
        code = next(it for it in grpc.StatusCode if it.value[0] == int(request))
        context.set_trailing_metadata((("x-trailing", "failed"),))
        context.abort(code, "as requested: 100 % \u00fc")

    def counting(request, context):
        for number in range(int(request)):
            yield str(number).encode()

    def breaking(request, context):
        yield b"first"
        context.abort(grpc.StatusCode.DATA_LOSS, "in the middle")

    def summing(requests, context):
        return str(sum(len(it) for it in requests)).encode()

    def echoing(requests, context):
        for request in requests:
            yield request

    def waiting(request, context):
        context.add_callback(cancelled.set)
        remaining = context.time_remaining()
        yield b"none" if remaining is None or remaining > 86400 else b"some"
        cancelled.wait(60)

    def was_cancelled(request, context):
        was = cancelled.wait(30)
        cancelled.clear()
        return b"yes" if was else b"no"

    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Failing": grpc.unary_unary_rpc_method_handler(failing),
        "Counting": grpc.unary_stream_rpc_method_handler(counting),
        "Breaking": grpc.unary_stream_rpc_method_handler(breaking),
        "Summing": grpc.stream_unary_rpc_method_handler(summing),
        "Echoing": grpc.stream_stream_rpc_method_handler(echoing),
        "Waiting": grpc.unary_stream_rpc_method_handler(waiting),
        "WasCancelled": grpc.unary_unary_rpc_method_handler(was_cancelled),
    }
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=16),
        options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)],
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    if server.add_insecure_port(f"127.0.0.1:{port}") != int(port):
        sys.exit("the port is taken")
    server.start()
    server.wait_for_termination()


def metadata(pairs):
    return sorted(
        [it.key, it.value.hex() if isinstance(it.value, bytes) else it.value]
        for it in pairs or ()
        if it.key.startswith("x-")
    )


def failure(error):
    return [error.code().name, error.details(), metadata(error.trailing_metadata())]


def call(port, certificate):
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    if certificate is None:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options)
    else:
        with open(certificate, "rb") as file:
            credentials = grpc.ssl_channel_credentials(file.read())
        options.append(("grpc.ssl_target_name_override", "localhost"))
        channel = grpc.secure_channel(f"127.0.0.1:{port}", credentials, options)
    grpc.channel_ready_future(channel).result(timeout=60)
    path = lambda name: f"/{SERVICE}/{name}"
    unary = lambda name: channel.unary_unary(path(name))
    found = {}

    response, ended = unary("Unary").with_call(b"hello ", metadata=(("x-client", "me"),), timeout=60)
    found["unary"] = response.decode()
    found["initial metadata"] = metadata(ended.initial_metadata())
    found["trailing metadata"] = metadata(ended.trailing_metadata())
    found["a long message"] = unary("Unary")(LONG, timeout=60) == LONG
    found["an empty message"] = unary("Unary")(b"", timeout=60).hex()
    for code in range(1, 17):
        try:
            unary("Failing")(str(code).encode(), timeout=60)
            found[f"status {code}"] = "none"
        except grpc.RpcError as error:
            found[f"status {code}"] = failure(error)
    try:
        unary("Nothing")(b"", timeout=60)
    except grpc.RpcError as error:
        found["an unknown method"] = error.code().name

    numbers = channel.unary_stream(path("Counting"))(b"1000", timeout=60)
    found["messages of a server"] = sum(int(it) for it in numbers)
    messages = []
    try:
        for message in channel.unary_stream(path("Breaking"))(b"", timeout=60):
            messages.append(message.decode())
    except grpc.RpcError as error:
        found["a stream that breaks off"] = [messages, error.code().name, error.details()]
    parts = (LONG[: 64 * 1024] for _ in range(100))
    found["messages of a client"] = channel.stream_unary(path("Summing"))(parts, timeout=60).decode()

    # Each message is sent once the one before has come back.
    turn = threading.Semaphore(1)

    def questions():
        for number in range(50):
            turn.acquire()
            yield str(number).encode()

    answers = []
    for answer in channel.stream_stream(path("Echoing"))(questions(), timeout=60):
        answers.append(int(answer))
        turn.release()
    found["a conversation"] = sum(answers)

    stream = channel.unary_stream(path("Waiting"))(b"")
    found["no deadline"] = next(stream).decode()
    stream.cancel()
    found["cancelled at the service"] = unary("WasCancelled")(b"", timeout=60).decode()
    stream = channel.unary_stream(path("Waiting"))(b"", timeout=2)
    found["a deadline"] = next(stream).decode()
    try:
        next(stream)
    except grpc.RpcError as error:
        found["a deadline that is over"] = error.code().name
    found["cancelled by a deadline"] = unary("WasCancelled")(b"", timeout=60).decode()

    calls = [unary("Unary").future(str(number).encode(), timeout=60) for number in range(200)]
    found["calls at a time"] = sum(int(it.result()) for it in calls)
    print(json.dumps(found))


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    call(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
