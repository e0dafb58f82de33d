import ws from "k6/ws";

export default function () {
  let ticks = 0;
  const seen = [];
  ws.connect(`${__ENV.BASE.replace("http", "ws")}/chat`, null, (socket) => {
    socket.on("open", () => {
      socket.setInterval(() => {
        ticks++;
        if (ticks === 3) socket.close(3005);
      }, 30);
    });
    socket.on("close", () => seen.push("close"));
  });
  console.log(ticks, seen.join());
}
