import type { ConfigReader } from '../config-reader.ts';
import type { GraphArithmetic } from '../graph-arithmetic.ts';
import { MICROSOFT, ONNX_TYPES } from '../onnx-graph.ts';

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

/**
 * The angles of positions 0, 1, 2, … for the length of `ids` [batch, sequence]. They are computed in float32 as the graph runs,
 * as Transformers does: no table limits the length.
 */
export function rotaryTables(arithmetic: GraphArithmetic, ids: string, frequencies: readonly number[]): RotaryTables {
  const { graph, type } = arithmetic;
  const positions = graph.node('Cast', [positionsOf(arithmetic, ids)], {
    attributes: { to: ONNX_TYPES.float32.code },
  });
  const column = graph.node('Unsqueeze', [positions, graph.integers([1])]);
  const angles = graph.node('Mul', [column, graph.floats(frequencies, [1, frequencies.length])]);
  const table = (operator: string) => {
    const values = graph.node(operator, [angles]);
    return type === 'float32' ? values : graph.node('Cast', [values], { attributes: { to: ONNX_TYPES.float16.code } });
  };
  return { cosines: table('Cos'), sines: table('Sin'), start: graph.integers([0]) };
}

/** 0, 1, 2, … for the length of `ids`: int64 [sequence]. */
export function positionsOf({ graph }: GraphArithmetic, ids: string): string {
  const length = graph.node('Shape', [ids], { attributes: { start: 1, end: 2 } });
  const scalar = graph.node('Squeeze', [length]);
  return graph.node('Range', [graph.integers([0], []), scalar, graph.integers([1], [])]);
}

/**
 * Turns each head's vector by the angles of its position: value i with value i + size / 2. `value` and the result are
 * [batch, sequence, heads × size].
 */
export function rotated({ graph }: GraphArithmetic, value: string, { cosines, sines, start }: RotaryTables): string {
  return graph.node('RotaryEmbedding', [value, start, cosines, sines], { domain: MICROSOFT });
}

/**
 * The base of the rotary angles, where transformers 4 (`rope_theta`) or 5 (`rope_parameters`) writes it. Throws MODEL_INVALID if the
 * config scales the angles, which only longer texts than a retriever's need.
 */
export function rotaryBase(read: ConfigReader, otherwise: number): number {
  const parameters = (read.value('rope_parameters') ?? {}) as Readonly<Record<string, unknown>>;
  for (const [name, value] of [
    ['rope_scaling', read.value('rope_scaling')],
    [
      'rope_parameters',
      parameters.rope_type === undefined || parameters.rope_type === 'default' ? undefined : parameters,
    ],
  ] as const) {
    if (value !== undefined) {
      throw read.refused(`${name} is ${JSON.stringify(value)}; scaled rotary positions are not supported`);
    }
  }
  const name = parameters.rope_theta === undefined ? 'rope_theta' : 'rope_parameters.rope_theta';
  return read.positive(name, parameters.rope_theta ?? read.value('rope_theta') ?? otherwise);
}
