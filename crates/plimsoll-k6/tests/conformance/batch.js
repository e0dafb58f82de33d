import http from "k6/http";

export default function () {
  const base = __ENV.BASE;
  const list = http.batch([`${base}/status/201`, ["POST", `${base}/echo`, "body", { tags: { t: "1" } }], { method: "PUT", url: `${base}/echo`, body: { a: "b" } }]);
  console.log(list.length, list[0].status, list[1].json("body"), list[2].json("method"), list[2].json("body"));
  const named = http.batch({ first: `${base}/status/202`, second: { method: "GET", url: `${base}/status/203` } });
  console.log(Object.keys(named).sort().join(), named.first.status, named.second.status);
  const many = http.batch(Array.from({ length: 25 }, (_, n) => `${base}/echo?n=${n}`));
  console.log(many.map((response) => response.json("query.n")).join());
}
