// Every case of Autobahn's fuzzing server, whose messages go back as they came.
import ws from "k6/ws";

export const options = {
  scenarios: { all: { executor: "per-vu-iterations", vus: 1, iterations: 1, maxDuration: "1h" } },
};

export default function () {
  let cases = 0;
  ws.connect(`${__ENV.BASE}/getCaseCount`, null, (socket) => socket.on("message", (text) => (cases = Number(text))));
  for (let number = 1; number <= cases; number++) {
    ws.connect(`${__ENV.BASE}/runCase?case=${number}&agent=plimsoll`, { compression: "deflate" }, (socket) => {
      socket.on("message", (text) => socket.send(text));
      socket.on("binaryMessage", (data) => socket.sendBinary(data));
    });
  }
  ws.connect(`${__ENV.BASE}/updateReports?agent=plimsoll`, null, () => {});
}
