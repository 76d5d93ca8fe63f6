import { gelu, relu } from './reference-encoder.ts';
import {
  add,
  attend,
  dense,
  fused,
  gated,
  headsOf,
  layerNorm,
  type Row,
  rmsNorm,
  silu,
  type Tensors,
  tableRow,
  turned,
} from './reference-parts.ts';

/** The last hidden state of a text without padding. `types`: the token types, of which most families have none. */
export type ReferenceFamily = (tensors: Tensors, ids: readonly number[], types: readonly number[]) => Row[];

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
      return add(middle, dense(tensors, `${name}.mlp.down_proj`, gated(gate, up)));
    });
  }
  return rows.map((row) => rmsNorm(tensors, 'norm.weight', row, epsilon));
}

export const MODERNBERT = { layers: 4, heads: 2, globalBase: 160_000, localBase: 10_000, window: 4, epsilon: 1e-5 };

/** The first and the fourth layer are global. */
export function modernBert(tensors: Tensors, ids: readonly number[]): Row[] {
  const { heads, window, epsilon } = MODERNBERT;
  let rows = ids.map((id) =>
    layerNorm(tensors, 'embeddings.norm', tableRow(tensors, 'embeddings.tok_embeddings.weight', id), epsilon),
  );
  const size = rows[0]!.length / heads;
  for (let i = 0; i < MODERNBERT.layers; i++) {
    const name = `layers.${i}`;
    const isGlobal = i % 3 === 0;
    const base = isGlobal ? MODERNBERT.globalBase : MODERNBERT.localBase;
    const parts = rows.map((row) =>
      fused(dense(tensors, `${name}.attn.Wqkv`, layerNorm(tensors, `${name}.attn_norm`, row, epsilon)), 3),
    );
    const placed = (part: number) =>
      parts.map((token, at) => headsOf(token[part]!, size).map((head) => turned(head, at, base)));
    const context = attend({
      queries: placed(0),
      keys: placed(1),
      values: parts.map((token) => headsOf(token[2]!, size)),
      scale: size ** -0.5,
      bias: (_, from, to) => (isGlobal || Math.abs(from - to) <= window / 2 ? 0 : Number.NEGATIVE_INFINITY),
    });
    rows = rows.map((row, at) => {
      const middle = add(row, dense(tensors, `${name}.attn.Wo`, context[at]!));
      const inner = dense(tensors, `${name}.mlp.Wi`, layerNorm(tensors, `${name}.mlp_norm`, middle, epsilon));
      const [gate, up] = fused(inner, 2);
      return add(middle, dense(tensors, `${name}.mlp.Wo`, gated(gate!.map(gelu), up!)));
    });
  }
  return rows.map((row) => layerNorm(tensors, 'final_norm', row, epsilon));
}

/** The score of a text: projection(norm(gelu(dense(first token or mean)))). */
export function modernBertScore(tensors: Tensors, ids: readonly number[], pooling: 'cls' | 'mean'): number {
  const rows = modernBert(tensors, ids);
  const mean = rows[0]!.map((_, c) => rows.reduce((sum, row) => sum + row[c]!, 0) / rows.length);
  const pooled = pooling === 'cls' ? rows[0]! : mean;
  const features = layerNorm(tensors, 'head.norm', dense(tensors, 'head.dense', pooled).map(gelu), MODERNBERT.epsilon);
  return dense(tensors, 'classifier', features)[0]!;
}

export const NOMIC = { layers: 2, heads: 2, base: 1000, epsilon: 1e-12 };

export function nomicBert(tensors: Tensors, ids: readonly number[], types: readonly number[]): Row[] {
  return rotaryBert(tensors, ids, types, {
    embeddingNorm: 'emb_ln',
    layer: (i) => `encoder.layers.${i}`,
    parts: (name, row) => fused(dense(tensors, `${name}.attn.Wqkv`, row), 3),
    output: 'attn.out_proj',
    attentionNorm: 'norm1',
    inner: (name, row) =>
      gated(dense(tensors, `${name}.mlp.fc12`, row).map(silu), dense(tensors, `${name}.mlp.fc11`, row)),
    down: 'mlp.fc2',
    outputNorm: 'norm2',
    turn: (head, at) => turned(head, at, NOMIC.base),
  });
}

export const GTE = { base: 500_000, factor: 2 };

export function gte(tensors: Tensors, ids: readonly number[]): Row[] {
  const { base, factor } = GTE;
  return rotaryBert(tensors, ids, [], {
    embeddingNorm: 'embeddings.LayerNorm',
    layer: (i) => `encoder.layer.${i}`,
    parts: (name, row) => fused(dense(tensors, `${name}.attention.qkv_proj`, row), 3),
    output: 'attention.o_proj',
    attentionNorm: 'attn_ln',
    inner: (name, row) => {
      const [up, gate] = fused(dense(tensors, `${name}.mlp.up_gate_proj`, row), 2);
      return gated(gate!.map(gelu), up!);
    },
    down: 'mlp.down_proj',
    outputNorm: 'mlp_ln',
    // The frequencies of base × factor, all divided by factor^(2 / size): positions that are closer together.
    turn: (head, at) => turned(head, at / factor ** (2 / head.length), base * factor),
  });
}

interface RotaryBertSteps {
  readonly embeddingNorm: string;
  readonly layer: (i: number) => string;
  readonly parts: (name: string, row: Row) => Row[];
  readonly output: string;
  readonly attentionNorm: string;
  readonly inner: (name: string, row: Row) => Row;
  readonly down: string;
  readonly outputNorm: string;
  readonly turn: (head: Row, at: number) => Row;
}

function rotaryBert(tensors: Tensors, ids: readonly number[], types: readonly number[], steps: RotaryBertSteps): Row[] {
  const { epsilon, heads } = NOMIC;
  let rows = ids.map((id, at) => {
    const word = tableRow(tensors, 'embeddings.word_embeddings.weight', id);
    const type = tensors['embeddings.token_type_embeddings.weight'];
    return layerNorm(
      tensors,
      steps.embeddingNorm,
      type === undefined
        ? word
        : add(word, tableRow(tensors, 'embeddings.token_type_embeddings.weight', types[at] ?? 0)),
      epsilon,
    );
  });
  const size = rows[0]!.length / heads;
  for (let i = 0; i < NOMIC.layers; i++) {
    const name = steps.layer(i);
    const parts = rows.map((row) => steps.parts(name, row));
    const placed = (part: number) =>
      parts.map((token, at) => headsOf(token[part]!, size).map((head) => steps.turn(head, at)));
    const context = attend({
      queries: placed(0),
      keys: placed(1),
      values: parts.map((token) => headsOf(token[2]!, size)),
      scale: size ** -0.5,
      bias: () => 0,
    });
    rows = rows.map((row, at) => {
      const attended = add(row, dense(tensors, `${name}.${steps.output}`, context[at]!));
      const middle = layerNorm(tensors, `${name}.${steps.attentionNorm}`, attended, epsilon);
      const output = dense(tensors, `${name}.${steps.down}`, steps.inner(name, middle));
      return layerNorm(tensors, `${name}.${steps.outputNorm}`, add(middle, output), epsilon);
    });
  }
  return rows;
}

export const T5 = { layers: 2, heads: 2, headSize: 6, epsilon: 1e-6 };

/** The first distance of each bucket of 32, key before query, as the T5 paper's formula gives them. */
const T5_BUCKETS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91];

export function t5(tensors: Tensors, ids: readonly number[]): Row[] {
  const { headSize, epsilon } = T5;
  const biases = tensors['encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight']!;
  const bucketOf = (distance: number) =>
    (distance > 0 ? 16 : 0) + T5_BUCKETS.findLastIndex((first) => first <= Math.abs(distance));
  let rows = ids.map((id) => tableRow(tensors, 'shared.weight', id));
  for (let i = 0; i < T5.layers; i++) {
    const name = `encoder.block.${i}`;
    const inputs = rows.map((row) => rmsNorm(tensors, `${name}.layer.0.layer_norm.weight`, row, epsilon));
    const heads = (part: string) =>
      inputs.map((row) => headsOf(dense(tensors, `${name}.layer.0.SelfAttention.${part}`, row), headSize));
    const context = attend({
      queries: heads('q'),
      keys: heads('k'),
      values: heads('v'),
      scale: 1,
      bias: (head, from, to) => biases.values[bucketOf(to - from) * T5.heads + head]!,
    });
    rows = rows.map((row, at) => {
      const middle = add(row, dense(tensors, `${name}.layer.0.SelfAttention.o`, context[at]!));
      const inner = rmsNorm(tensors, `${name}.layer.1.layer_norm.weight`, middle, epsilon);
      const feedForward = `${name}.layer.1.DenseReluDense`;
      return add(middle, dense(tensors, `${feedForward}.wo`, dense(tensors, `${feedForward}.wi`, inner).map(relu)));
    });
  }
  return rows.map((row) => rmsNorm(tensors, 'encoder.final_layer_norm.weight', row, epsilon));
}
