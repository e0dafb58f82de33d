// exit: 104
export const options = { thresholds: { http_reqs: ["p(95)<100"] } };

export default function () {}
