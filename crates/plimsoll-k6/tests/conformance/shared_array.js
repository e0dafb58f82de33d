import { SharedArray } from "k6/data";

const data = new SharedArray("data", () => [{ n: 1, deep: { x: [1] } }, { n: 2 }, "text", null]);

export const options = { vus: 2, iterations: 2 };

export default function () {
  const attempts = [() => (data[0] = 1), () => data.push(1), () => (data[0].n = 5), () => (data[0].deep.x[0] = 2)];
  const failed = attempts.map((attempt) => {
    try {
      attempt();
      return "done";
    } catch {
      return "exception";
    }
  });
  console.log(failed.join());
  console.log(data.length, data[0].n, data[0].deep.x[0], data[2], data[3], data[9], data.map((it) => it?.n).join(), [...data].length);
  console.log(data.filter((it) => it?.n > 1).length, JSON.stringify(data), data.indexOf("text"), Array.isArray(data));
  let count = 0;
  for (const one of data) count += one === null ? 0 : 1;
  console.log(count);
}
