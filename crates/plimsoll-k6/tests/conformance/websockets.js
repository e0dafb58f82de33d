import { WebSocket } from "k6/websockets";

export const options = { iterations: 2 };

export default function () {
  const seen = [];
  const socket = new WebSocket(`${__ENV.BASE.replace("http", "ws")}/chat`);
  seen.push(socket.readyState);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    seen.push("open", socket.readyState);
    socket.send("text");
    socket.send(new Uint8Array([3, 4]));
  };
  socket.addEventListener("message", (event) => {
    seen.push(event.type, typeof event.data === "string" ? event.data : new Uint8Array(event.data).join("-"));
    if (typeof event.data !== "string") socket.ping();
  });
  socket.onpong = () => {
    seen.push("pong");
    setTimeout(() => socket.close(), 20);
  };
  socket.onclose = () => {
    seen.push("close", socket.readyState);
    console.log(seen.join());
  };
  socket.onerror = (error) => seen.push("error", error.error);
}
