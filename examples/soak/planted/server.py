"""A server for `plimsoll soak` whose memory grows in a known way: by 1 KiB for every 1,000 requests, without end or up to a cap.

    python3 server.py PORT leak
    python3 server.py PORT cap MIB
"""

import asyncio
import sys

RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n"


class Server(asyncio.Protocol):
    kept = []
    requests = 0
    # Requests for each KiB, and how many are kept at most.
    every = 1000
    most = sys.maxsize

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        for _ in range(data.count(b"\r\n\r\n")):
            self.transport.write(RESPONSE)
            Server.requests += 1
            if Server.requests % Server.every == 0 and len(Server.kept) < Server.most:
                # Filled, so that the system gives memory for it.
                Server.kept.append(bytearray(b"x" * 1024))


async def main():
    port, kind = int(sys.argv[1]), sys.argv[2]
    if kind == "cap":
        # A cache fills within minutes, and then stays as it is.
        Server.every, Server.most = 50, int(sys.argv[3]) * 1024
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


asyncio.run(main())
