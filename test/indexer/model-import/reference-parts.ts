import type { ReferenceTensor } from './reference-encoder.ts';

/** Steps of encoders in float64, written from the papers' formulas. The references of the families are made of them. */

export type Row = number[];
export type Tensors = Readonly<Record<string, ReferenceTensor>>;

export function tableRow(tensors: Tensors, name: string, row: number): Row {
  const { shape, values } = tensors[name]!;
  const columns = shape[1]!;
  return Array.from({ length: columns }, (_, i) => values[row * columns + i]!);
}

/** Matrix [output, input] · input, plus a bias if the checkpoint has one. */
export function dense(tensors: Tensors, name: string, input: Row): Row {
  const weight = tensors[`${name}.weight`]!;
  const bias = tensors[`${name}.bias`];
  const [outputs, inputs] = weight.shape as [number, number];
  return Array.from({ length: outputs }, (_, row) => {
    let sum = bias?.values[row] ?? 0;
    for (let i = 0; i < inputs; i++) sum += weight.values[row * inputs + i]! * input[i]!;
    return sum;
  });
}

export function rmsNorm(tensors: Tensors, name: string, row: Row, epsilon: number): Row {
  const { values } = tensors[name]!;
  const root = Math.sqrt(row.reduce((sum, x) => sum + x * x, 0) / row.length + epsilon);
  return row.map((x, i) => (x / root) * values[i]!);
}

/** A norm without a tensor is left out. */
export function layerNorm(tensors: Tensors, name: string, row: Row, epsilon: number): Row {
  const scale = tensors[`${name}.weight`]?.values;
  if (scale === undefined) return row;
  const bias = tensors[`${name}.bias`]?.values;
  const mean = row.reduce((sum, x) => sum + x, 0) / row.length;
  const variance = row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / row.length;
  return row.map((x, i) => ((x - mean) / Math.sqrt(variance + epsilon)) * scale[i]! + (bias?.[i] ?? 0));
}

/** Cuts a row into vectors of `size` values. */
export function headsOf(row: Row, size: number): Row[] {
  return Array.from({ length: row.length / size }, (_, head) => row.slice(head * size, (head + 1) * size));
}

/** Cuts the result of layers that are one below the other into theirs. */
export function fused(row: Row, count: number): Row[] {
  return headsOf(row, row.length / count);
}

export function gated(gate: Row, up: Row): Row {
  return gate.map((x, i) => x * up[i]!);
}

/** Turns a head's vector by the angles of a position: value i with value i + size / 2. */
export function turned(head: Row, position: number, base: number): Row {
  const half = head.length / 2;
  return head.map((x, i) => {
    const angle = position * base ** ((-2 * (i % half)) / head.length);
    const other = i < half ? -head[i + half]! : head[i - half]!;
    return x * Math.cos(angle) + other * Math.sin(angle);
  });
}

export interface AttentionInput {
  /** Per token, per head. Keys and values may have fewer heads, which query heads share in groups. */
  readonly queries: readonly Row[][];
  readonly keys: readonly Row[][];
  readonly values: readonly Row[][];
  readonly scale: number;
  /** Added to the score of token i and key j; −Infinity hides the key. */
  readonly bias: (head: number, i: number, j: number) => number;
}

/** One row per token: the heads' results, one after the other. */
export function attend({ queries, keys, values, scale, bias }: AttentionInput): Row[] {
  return queries.map((heads, i) =>
    heads.flatMap((query, head) => {
      const group = Math.floor((head * keys[0]!.length) / heads.length);
      const weights = keys.map((key, j) => Math.exp(dot(query, key[group]!) * scale + bias(head, i, j)));
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      return query.map((_, c) => values.reduce((sum, value, j) => sum + (weights[j]! / total) * value[group]![c]!, 0));
    }),
  );
}

export function silu(x: number): number {
  return x / (1 + Math.exp(-x));
}

export function add(a: Row, b: Row): Row {
  return a.map((x, i) => x + b[i]!);
}

function dot(a: Row, b: Row): number {
  return a.reduce((sum, x, i) => sum + x * b[i]!, 0);
}
