export const options = { iterations: 2, minIterationDuration: "300ms", vus: 1 };

const began = Date.now();

export default function () {
  console.log(__ITER, Date.now() - began >= __ITER * 300);
}
