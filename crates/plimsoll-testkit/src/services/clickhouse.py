"""ClickHouse's HTTP interface over the engine of chdb-core: statements by POST, answers in the format that they name.

Arguments: the folder of the data, and the port, of which 0 lets the system choose. Prints the port once it listens.
"""

import os
import re
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from chdb import session

ENGINE = session.Session(sys.argv[1])
ONE_AT_A_TIME = threading.Lock()

# As ClickHouse maps its errors to statuses; all others are 500.
STATUSES = {60: 404, 81: 404, 62: 400, 27: 400, 53: 400, 516: 403}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply(200, b"Ok.\n")

    def do_POST(self):
        statement = self.rfile.read(int(self.headers.get("content-length", "0")))
        try:
            with ONE_AT_A_TIME:
                answer = ENGINE.query(statement.decode("utf-8"), "TabSeparated")
            self.reply(200, answer.bytes() or b"")
        except Exception as error:
            text = str(error)
            code = re.match(r"\s*Code: (\d+)", text)
            self.reply(STATUSES.get(int(code[1]) if code else 0, 500), text.encode(), code)

    def reply(self, status, content, code=None):
        self.send_response(status)
        if code:
            self.send_header("x-clickhouse-exception-code", code[1])
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


# A shell starts background commands with this signal ignored.
signal.signal(signal.SIGINT, lambda *_: os._exit(0))

with Server(("127.0.0.1", int(sys.argv[2])), Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
