export const options = { iterations: 2 };

export default async function () {
  console.log("before");
  await Promise.reject(new Error("rejected"));
}
