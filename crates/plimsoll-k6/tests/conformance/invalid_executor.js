// exit: 104
export const options = { scenarios: { one: { executor: "no-such-executor" } } };

export default function () {}
