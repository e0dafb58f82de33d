// exit: 104
export const options = { vus: "many" };

export default function () {}
