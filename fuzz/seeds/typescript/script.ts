import { Options } from "k6/options";
import http, { type Response } from "k6/http";

export const options: Options = { vus: 1 };
type Pair<A, B = A> = A extends (infer U)[] ? [first: U, second?: B] : { [K in keyof A]: A[K] };
abstract class Base<T> { private x?: Map<string, T[]>; abstract f(): void; g = <U,>(u: U) => u as unknown as T; }
export default function (this: void, data?: Pair<string>): void {
  const r = http.get<"text">(`${__ENV.URL}/${data![0]}`) satisfies Response;
  const a = r.status < 300 ? (r) : <any>null;
}
