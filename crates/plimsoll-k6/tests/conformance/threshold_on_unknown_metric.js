// exit: 104
export const options = { thresholds: { no_such_metric: ["count>1"] } };

export default function () {}
