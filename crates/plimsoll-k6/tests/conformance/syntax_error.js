// exit: 107
export default function () {
  const a = ;
}
