// exit: 104
export const options = { scenarios: { one: { executor: "constant-arrival-rate", rate: 0, duration: "1s" } } };

export default function () {}
