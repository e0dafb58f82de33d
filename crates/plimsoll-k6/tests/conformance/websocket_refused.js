import ws from "k6/ws";

export default function () {
  const response = ws.connect(`${__ENV.BASE.replace("http", "ws")}/status/403`, null, () => {});
  console.log(response.status);
  try {
    ws.connect("ws://127.0.0.1:1/", null, () => {});
    console.log("no exception");
  } catch (error) {
    console.log("exception");
  }
}
