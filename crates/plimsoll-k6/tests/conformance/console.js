export default function () {
  console.log("text", 1, true, null, undefined);
  console.log({ a: 1, b: [1, { c: "d" }] }, [1, "two"]);
  const circular = { a: 1 };
  circular.self = circular;
  const values = [{}, [], [1, [2, [3]]], new Date(0), /x/g, new Error("boom"), { e: new Error("in") }, function named() {}, { f() {}, u: undefined, s: "q\"uo'te" }];
  values.push(new Map([[1, 2]]), new Uint8Array([1, 2]), new ArrayBuffer(3), circular, [undefined, null, "s"], { d: new Date(0), v: new Uint8Array(2) }, [, 1]);
  for (const value of values) console.log(value);
  console.info("info");
  console.warn("warning");
  console.error("error");
  console.debug("not shown");
  console.log();
  console.log("");
}
