import { type ConfigReader, OTHERWISE_SERVED } from '../config-reader.ts';
import type { GraphArithmetic } from '../graph-arithmetic.ts';

/** Cosines and sines of the rotary angles, each [sequence, frequencies]. */
export interface RotaryTables {
  readonly cosines: string;
  readonly sines: string;
  /** The position of the first token, 0: [1]. */
  readonly start: string;
}

/** Inverse frequencies of the rotary positions of a head: base^(−2i / size) for i < size / 2. */
export function inverseFrequencies(base: number, size: number): readonly number[] {
  return Array.from({ length: size / 2 }, (_, i) => base ** ((-2 * i) / size));
}

/** The angles of positions 0, 1, 2, … for the length of `ids` [batch, sequence], computed in float32 as the graph runs. */
export function rotaryTables(arithmetic: GraphArithmetic, ids: string, frequencies: readonly number[]): RotaryTables {
  const { graph, type } = arithmetic;
  const positions = graph.cast(tokenPositions(arithmetic, ids), 'float32');
  const column = graph.node('Unsqueeze', [positions, graph.integers([1])]);
  const angles = graph.node('Mul', [column, graph.floats(frequencies, [1, frequencies.length])]);
  const table = (operator: string) => {
    const values = graph.node(operator, [angles]);
    return type === 'float32' ? values : graph.cast(values, type);
  };
  return { cosines: table('Cos'), sines: table('Sin'), start: graph.integers([0]) };
}

/** 0, 1, 2, … for the length of `ids`: int64 [sequence]. */
export function tokenPositions({ graph }: GraphArithmetic, ids: string): string {
  const length = graph.node('Squeeze', [graph.node('Shape', [ids], { attributes: { start: 1, end: 2 } })]);
  return graph.node('Range', [graph.integers([0], []), length, graph.integers([1], [])]);
}

/** Turns value i of each head's vector with value i + size / 2 by its position's angles: [batch, sequence, heads × size]. */
export function rotated({ graph }: GraphArithmetic, value: string, { cosines, sines, start }: RotaryTables): string {
  return graph.microsoft('RotaryEmbedding', [value, start, cosines, sines]);
}

/**
 * The base of the rotary angles. Transformers 5 writes it into `rope_parameters`, with a `part` per kind of layer if there are
 * several; before, it was the value of `key` (default: `rope_theta`). Throws MODEL_INVALID if the config scales the angles, which
 * only longer texts than a retriever's need.
 */
export function rotaryBase(
  read: ConfigReader,
  {
    part,
    key = 'rope_theta',
    otherwise,
  }: { readonly part?: string; readonly key?: string; readonly otherwise: number },
): number {
  const all = (read.value('rope_parameters') ?? {}) as Readonly<Record<string, unknown>>;
  const parameters = (part === undefined ? all : (all[part] ?? {})) as Readonly<Record<string, unknown>>;
  const { rope_type: type = 'default', rope_theta: base } = parameters;
  const scaling = type === 'default' ? read.value('rope_scaling') : parameters;
  if (scaling !== undefined) {
    const name = type === 'default' ? 'rope_scaling' : 'rope_parameters';
    throw read.refused(
      `${name} is ${JSON.stringify(scaling)}; scaled rotary positions are not supported. ${OTHERWISE_SERVED}`,
    );
  }
  return base === undefined
    ? read.positive(key, read.value(key) ?? otherwise)
    : read.positive('rope_parameters.rope_theta', base);
}
