import { Counter } from "k6/metrics";

enum Level {
  Low,
  High = 5,
  Higher,
  Named = "named",
  Sum = Low | High,
}

const enum Flag {
  On = 1 << 2,
}

namespace Shapes {
  export const side = 2;
  export let count = 0;
  export interface Shape {
    area(): number;
  }
  export class Square implements Shape {
    constructor(
      private readonly length: number,
      public name = "square",
    ) {
      count += 1;
    }
    area(): number {
      return this.length * this.length;
    }
  }
  export namespace Inner {
    export function twice(value: number): number {
      return value * 2;
    }
  }
}

import twice = Shapes.Inner.twice;

class Base {
  constructor(protected id: string) {}
}

class Derived extends Base {
  own = 1;
  constructor(
    id: string,
    readonly extra?: number,
  ) {
    super(id);
    this.own += this.extra ?? 0;
  }
  text(): string {
    return `${this.id} ${this.own}`;
  }
}

const made = new Counter("made");

export default function (): void {
  made.add(Level.Higher);
  console.log(JSON.stringify(Level), Level[5], Flag.On);
  const square = new Shapes.Square(Shapes.side);
  console.log(square.area(), square.name, Shapes.count, twice(square.area()), JSON.stringify(square));
  console.log(new Derived("a", 2).text(), JSON.stringify(new Derived("b")));
}
