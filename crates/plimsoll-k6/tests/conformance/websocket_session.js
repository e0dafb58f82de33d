import ws from "k6/ws";

export const options = {
  iterations: 2,
  thresholds: { "ws_sessions{status:101}": ["count==2"], "ws_msgs_sent{kind:chat}": ["count==8"], ws_connecting: ["max<5000"], "ws_session_duration{scenario:default}": ["max<5000"] },
};

export default function () {
  const seen = [];
  const response = ws.connect(`${__ENV.BASE.replace("http", "ws")}/chat`, { headers: { "X-Custom": "c" }, tags: { kind: "chat" } }, (socket) => {
    socket.on("open", () => {
      seen.push("open");
      socket.send("first");
    });
    socket.on("message", (text) => {
      seen.push(text);
      if (text === "first") socket.sendBinary(new Uint8Array([1, 2, 255]).buffer);
    });
    socket.on("binaryMessage", (data) => {
      seen.push(new Uint8Array(data).join("-"));
      socket.ping();
    });
    socket.on("pong", () => {
      seen.push("pong");
      socket.send("ping me");
    });
    socket.on("ping", () => {
      seen.push("ping");
      socket.setTimeout(() => {
        seen.push("timer");
        socket.send("bye");
      }, 50);
    });
    socket.on("close", (code) => seen.push(`close ${code}`));
    socket.on("error", (error) => seen.push(`error ${error.error()}`));
  });
  console.log(seen.join(), response.status, response.headers["Upgrade"], response.url.includes("/chat"), typeof response.error);
}
