import {
  add,
  attend,
  dense,
  headsOf,
  type Row,
  rmsNorm,
  silu,
  type Tensors,
  tableRow,
  turned,
} from './reference-parts.ts';

/** The last hidden state of a text without padding. */
export type ReferenceFamily = (tensors: Tensors, ids: readonly number[]) => Row[];

export const QWEN3 = { layers: 2, headSize: 8, base: 1_000_000, epsilon: 1e-6 };

export function qwen3(tensors: Tensors, ids: readonly number[]): Row[] {
  const { headSize, base, epsilon } = QWEN3;
  let rows = ids.map((id) => tableRow(tensors, 'embed_tokens.weight', id));
  for (let i = 0; i < QWEN3.layers; i++) {
    const name = `layers.${i}`;
    const inputs = rows.map((row) => rmsNorm(tensors, `${name}.input_layernorm.weight`, row, epsilon));
    const heads = (part: string) =>
      inputs.map((row) => headsOf(dense(tensors, `${name}.self_attn.${part}_proj`, row), headSize));
    const placed = (part: string) =>
      heads(part).map((token, at) =>
        token.map((head) => turned(rmsNorm(tensors, `${name}.self_attn.${part}_norm.weight`, head, epsilon), at, base)),
      );
    const context = attend({
      queries: placed('q'),
      keys: placed('k'),
      values: heads('v'),
      scale: headSize ** -0.5,
      bias: (_, from, to) => (to > from ? Number.NEGATIVE_INFINITY : 0),
    });
    rows = rows.map((row, at) => {
      const middle = add(row, dense(tensors, `${name}.self_attn.o_proj`, context[at]!));
      const inner = rmsNorm(tensors, `${name}.post_attention_layernorm.weight`, middle, epsilon);
      const gate = dense(tensors, `${name}.mlp.gate_proj`, inner).map(silu);
      const up = dense(tensors, `${name}.mlp.up_proj`, inner);
      return add(
        middle,
        dense(
          tensors,
          `${name}.mlp.down_proj`,
          gate.map((x, c) => x * up[c]!),
        ),
      );
    });
  }
  return rows.map((row) => rmsNorm(tensors, 'norm.weight', row, epsilon));
}
