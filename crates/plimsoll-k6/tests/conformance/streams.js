import { ReadableStream, WritableStream } from "k6/experimental/streams";

const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

async function read() {
  let next = 0;
  const stream = new ReadableStream({
    start: async (controller) => {
      await pause(5);
      controller.enqueue("first");
    },
    pull: (controller) => {
      next += 1;
      if (next > 3) controller.close();
      else controller.enqueue(next);
    },
  });
  const reader = stream.getReader();
  console.log(stream.locked);
  for (;;) {
    const { done, value } = await reader.read();
    console.log(String(done), String(value));
    if (done) break;
  }
  await reader.closed;
  console.log("closed");
}

async function fails() {
  const stream = new ReadableStream({ start: (controller) => controller.error(new Error("broken")) });
  try {
    await stream.getReader().read();
  } catch (error) {
    console.log("read", error.message);
  }
  try {
    stream.getReader();
  } catch (error) {
    console.log("locked", error.name);
  }
  const endless = new ReadableStream({ cancel: (reason) => console.log("cancelled", reason) });
  await endless.cancel("enough");
}

async function write() {
  const chunks = [];
  const stream = new WritableStream(
    {
      start: () => console.log("opened"),
      write: async (chunk) => {
        await pause(2);
        chunks.push(chunk);
      },
      close: () => console.log("ended", chunks.join()),
    },
    { highWaterMark: 2 },
  );
  const writer = stream.getWriter();
  console.log(writer.desiredSize);
  const written = [];
  for (const chunk of ["a", "b", "c", "d"]) {
    await writer.ready;
    written.push(writer.write(chunk));
  }
  await Promise.all(written);
  await writer.close();
  await writer.closed;
  try {
    await writer.write("e");
  } catch (error) {
    console.log("late", error.name);
  }
}

export default async function () {
  await read();
  await fails();
  await write();
}
