import type { Weight } from './checkpoint-weights.ts';
import type { Dense } from './weight-finder.ts';

/**
 * Cuts a dense layer that holds several layers with the same input, one below the other (query, key and value, or gate and up).
 * `sizes` are their outputs.
 */
export function partsOf({ weight, bias }: Dense, sizes: readonly number[]): Dense[] {
  let from = 0;
  return sizes.map((size) => {
    const [first, last] = [from, from + size];
    from = last;
    return { weight: rowsOf(weight, first, last), bias: bias === null ? null : rowsOf(bias, first, last) };
  });
}

/** Row `plus` of a matrix minus row `minus`, as a matrix of one row. */
export function differenceOfRows(weight: Weight, plus: number, minus: number): Weight {
  const columns = weight.shape[1]!;
  const rows = [plus, minus].map((row) => rowsOf(weight, row, row + 1));
  async function values(): Promise<Float32Array<ArrayBuffer>> {
    const [first, second] = await Promise.all(rows.map((row) => row.values()));
    return first!.map((value, i) => value - second![i]!);
  }
  async function* chunks(): AsyncGenerator<Float32Array<ArrayBuffer>> {
    yield await values();
  }
  const name = `${weight.name}[${plus}] - [${minus}]`;
  return { name, shape: [1, columns], dtype: weight.dtype, chunks, values };
}

/** The rows [first, last) of a matrix, or the elements of a vector. */
function rowsOf(weight: Weight, first: number, last: number): Weight {
  const [, ...rest] = weight.shape;
  const columns = rest.reduce((product, length) => product * length, 1);
  const shape = [last - first, ...rest];
  async function* chunks(): AsyncGenerator<Float32Array<ArrayBuffer>> {
    let at = 0;
    for await (const values of weight.chunks()) {
      const [start, end] = [first * columns - at, last * columns - at];
      at += values.length;
      if (end > 0 && start < values.length) yield values.slice(Math.max(0, start), Math.min(values.length, end));
    }
  }
  async function values(): Promise<Float32Array<ArrayBuffer>> {
    const all = new Float32Array((last - first) * columns);
    let at = 0;
    for await (const piece of chunks()) {
      all.set(piece, at);
      at += piece.length;
    }
    return all;
  }
  return { name: `${weight.name}[${first}:${last}]`, shape, dtype: weight.dtype, chunks, values };
}
