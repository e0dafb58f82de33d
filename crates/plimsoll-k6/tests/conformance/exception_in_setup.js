// exit: 107
export function setup() {
  throw new Error("in setup");
}

export default function () {
  console.log("not run");
}
