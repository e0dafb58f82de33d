// exit: 104
export const options = { scenarios: { one: { executor: "shared-iterations", exec: "missing" } } };

export default function () {}
