// Answers every request once its content has come.
require("http")
  .createServer((request, response) => {
    request.resume();
    request.on("end", () => response.end("ok\n"));
  })
  .listen(Number(process.argv[2]), "127.0.0.1");
