# A WebSocket server with zlib's own compression, for the tests of compressed_sockets.rs.
#
# It does what the query of the URL says: `accept` is its Sec-WebSocket-Extensions, `bits` its window, `raw` the bytes in
# hexadecimal that it sends first. Messages go back in two frames with a ping between them. It prints its port, and for each
# connection the offer, every message and the end.
import base64, hashlib, socketserver, struct, urllib.parse, zlib

TAIL = b"\x00\x00\xff\xff"
SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        url = urllib.parse.urlsplit(self.rfile.readline().decode().split()[1])
        query = dict(urllib.parse.parse_qsl(url.query))
        fields = {}
        while line := self.rfile.readline().decode().strip():
            name, value = line.split(":", 1)
            fields[name.lower()] = value.strip()
        digest = hashlib.sha1((fields["sec-websocket-key"] + SUFFIX).encode()).digest()
        head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += f"Sec-WebSocket-Accept: {base64.b64encode(digest).decode()}\r\n"
        if "accept" in query:
            head += f"Sec-WebSocket-Extensions: {query['accept']}\r\n"
        self.wfile.write(head.encode() + b"\r\n" + bytes.fromhex(query.get("raw", "")))
        self.say("offer", fields.get("sec-websocket-extensions", "none"))
        bits = int(query.get("bits", "15"))
        while frame := self.frame():
            first, payload = frame
            opcode, is_compressed = first & 15, first & 64 != 0
            if opcode == 8:
                self.say("close", *struct.unpack(">H", payload[:2]))
                self.wfile.write(self.encoded(0x88, payload))
                return
            if opcode in (1, 2):
                message = payload
                if is_compressed:
                    inflate = zlib.decompressobj(-15)
                    message = inflate.decompress(payload + TAIL)
                    assert not inflate.unused_data and not payload.endswith(TAIL)
                self.say("message", opcode, "compressed" if is_compressed else "plain", len(message))
                self.echo(opcode, message, bits, is_compressed)
        self.say("gone")

    def echo(self, opcode, message, bits, compresses):
        bit, payload = 0, message
        if compresses:
            deflate = zlib.compressobj(9, zlib.DEFLATED, -bits)
            payload = deflate.compress(message) + deflate.flush(zlib.Z_SYNC_FLUSH)
            bit, payload = 64, payload[:-4]
        half = len(payload) // 2
        self.wfile.write(self.encoded(opcode | bit, payload[:half]))
        self.wfile.write(self.encoded(0x89, b"between"))
        self.wfile.write(self.encoded(0x80, payload[half:]))

    def frame(self):
        head = self.rfile.read(2)
        if len(head) < 2:
            return None
        length = head[1] & 127
        if length == 126:
            (length,) = struct.unpack(">H", self.rfile.read(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self.rfile.read(8))
        mask = self.rfile.read(4)
        payload = self.rfile.read(length)
        return head[0], bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))

    def encoded(self, first, payload):
        length = len(payload)
        if length < 126:
            return bytes([first, length]) + payload
        if length < 1 << 16:
            return bytes([first, 126]) + struct.pack(">H", length) + payload
        return bytes([first, 127]) + struct.pack(">Q", length) + payload

    def say(self, *words):
        print(*words, flush=True)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
