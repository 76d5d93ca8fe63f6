import { type Weight, weightFrom } from './checkpoint-weights.ts';
import type { Dense } from './weight-finder.ts';

/** Cuts a dense layer of several layers with one input (query, key and value, or gate and up) into layers with `sizes` outputs. */
export function splitDense({ weight, bias }: Dense, sizes: readonly number[]): Dense[] {
  let from = 0;
  return sizes.map((size) => {
    const [first, last] = [from, from + size];
    from = last;
    return { weight: sliceRows(weight, first, last), bias: bias && sliceRows(bias, first, last) };
  });
}

/** Row `plus` of a matrix minus row `minus`, as a matrix of one row. */
export function differenceOfRows(weight: Weight, plus: number, minus: number): Weight {
  const rows = [plus, minus].map((row) => sliceRows(weight, row, row + 1));
  async function* chunks(): AsyncGenerator<Float32Array<ArrayBuffer>> {
    const [first, second] = await Promise.all(rows.map((row) => row.values()));
    yield first!.map((value, i) => value - second![i]!);
  }
  const name = `${weight.name}[${plus}] - [${minus}]`;
  return weightFrom({ name, shape: [1, weight.shape[1]!], dtype: weight.dtype, chunks });
}

/** The rows [first, last) of a matrix, or the elements of a vector. */
function sliceRows(weight: Weight, first: number, last: number): Weight {
  const [, ...rest] = weight.shape;
  const columns = rest.reduce((product, length) => product * length, 1);
  async function* chunks(): AsyncGenerator<Float32Array<ArrayBuffer>> {
    let at = 0;
    for await (const values of weight.chunks()) {
      const [start, end] = [first * columns - at, last * columns - at];
      at += values.length;
      if (end > 0 && start < values.length) yield values.slice(Math.max(0, start), Math.min(values.length, end));
    }
  }
  const name = `${weight.name}[${first}:${last}]`;
  return weightFrom({ name, shape: [last - first, ...rest], dtype: weight.dtype, chunks });
}
