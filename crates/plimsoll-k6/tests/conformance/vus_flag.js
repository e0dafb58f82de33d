// flags: -u 2 -i 6
export const options = { vus: 1, iterations: 1 };

export default function () {
  console.log("iteration");
}
