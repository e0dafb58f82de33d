// exit: 107
console.log("first");
throw new Error("in init");

export default function () {}
