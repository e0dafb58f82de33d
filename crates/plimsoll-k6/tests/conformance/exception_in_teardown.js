// exit: 107
export default function () {
  console.log("iteration");
}

export function teardown() {
  throw new Error("in teardown");
}
