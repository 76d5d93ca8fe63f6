import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { packageRoot } from '../../src/base/package-root.ts';
import { bertShapes } from '../helpers/bert-shapes.ts';
import type { CheckpointToWrite } from './random-checkpoint.ts';

interface BertShape {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly vocabulary: number;
}

const SMALL: BertShape = { hidden: 32, layers: 2, heads: 2, vocabulary: 0 };
const FIXTURES = join(packageRoot, 'test', 'encoder', 'fixtures');

/** Tokenizers that are in the repository. Those of XLM-R and Qwen3 have a part of the vocabulary. */
const TOKENIZERS = {
  bert: () => readFileSync(join(packageRoot, 'models', 'token-average-256', 'tokenizer.json')),
  'xlm-roberta': () => gunzipSync(readFileSync(join(FIXTURES, 'xlm-roberta-tokenizer.json.gz'))),
  qwen3: () => gunzipSync(readFileSync(join(FIXTURES, 'qwen3-tokenizer.json.gz'))),
};

/** all-MiniLM-L6-v2, BERT-base, XLM-R-base and Qwen3-Embedding-0.6B (4 of its 28 layers). */
export const GPU_CHECKPOINTS: Readonly<Record<string, (small: boolean) => CheckpointToWrite>> = {
  'minilm-shape': (small) =>
    bertCheckpoint('bert', small ? SMALL : { hidden: 384, layers: 6, heads: 12, vocabulary: 30_522 }),
  'bert-base-shape': (small) =>
    bertCheckpoint('bert', small ? SMALL : { hidden: 768, layers: 12, heads: 12, vocabulary: 30_522 }),
  'xlm-r-base-shape': (small) =>
    bertCheckpoint('xlm-roberta', small ? SMALL : { hidden: 768, layers: 12, heads: 12, vocabulary: 250_002 }),
  'qwen3-shape': qwen3Checkpoint,
};

function bertCheckpoint(
  type: 'bert' | 'xlm-roberta',
  { hidden, layers, heads, vocabulary }: BertShape,
): CheckpointToWrite {
  const tokenizer = TOKENIZERS[type]();
  const isRoberta = type === 'xlm-roberta';
  const size = {
    hidden,
    inner: 4 * hidden,
    layers,
    vocabulary: Math.max(vocabulary, idsOf(tokenizer)),
    positions: isRoberta ? 514 : 512,
    tokenTypes: isRoberta ? 1 : 2,
  };
  return {
    tokenizer,
    shapes: bertShapes(size),
    files: files(512, isRoberta ? '<pad>' : '[PAD]', { pooling_mode_mean_tokens: true }, hidden),
    config: {
      model_type: type,
      architectures: [isRoberta ? 'XLMRobertaModel' : 'BertModel'],
      vocab_size: size.vocabulary,
      hidden_size: hidden,
      num_hidden_layers: layers,
      num_attention_heads: heads,
      intermediate_size: size.inner,
      hidden_act: 'gelu',
      max_position_embeddings: size.positions,
      type_vocab_size: size.tokenTypes,
      layer_norm_eps: isRoberta ? 1e-5 : 1e-12,
      pad_token_id: isRoberta ? 1 : 0,
    },
  };
}

/** Qwen3-Embedding-0.6B with some of its 28 layers, or a small model of this architecture. */
export function qwen3Checkpoint(small: boolean, manyLayers = 4): CheckpointToWrite {
  const tokenizer = TOKENIZERS.qwen3();
  const [hidden, inner, layers, heads, groups, headSize] = small
    ? [32, 64, 2, 4, 2, 8]
    : [1024, 3072, manyLayers, 16, 8, 128];
  const vocabulary = Math.max(small ? 0 : 151_669, idsOf(tokenizer));
  const shapes: Record<string, readonly number[]> = {
    'embed_tokens.weight': [vocabulary, hidden!],
    'norm.weight': [hidden!],
  };
  for (let layer = 0; layer < layers!; layer++) {
    const parts: Readonly<Record<string, readonly number[]>> = {
      input_layernorm: [hidden!],
      post_attention_layernorm: [hidden!],
      'self_attn.q_proj': [heads! * headSize!, hidden!],
      'self_attn.k_proj': [groups! * headSize!, hidden!],
      'self_attn.v_proj': [groups! * headSize!, hidden!],
      'self_attn.o_proj': [hidden!, heads! * headSize!],
      'self_attn.q_norm': [headSize!],
      'self_attn.k_norm': [headSize!],
      'mlp.gate_proj': [inner!, hidden!],
      'mlp.up_proj': [inner!, hidden!],
      'mlp.down_proj': [hidden!, inner!],
    };
    for (const [part, shape] of Object.entries(parts)) shapes[`layers.${layer}.${part}.weight`] = shape;
  }
  return {
    tokenizer,
    shapes,
    files: files(512, '<|endoftext|>', { pooling_mode_lasttoken: true }, hidden!),
    config: {
      model_type: 'qwen3',
      architectures: ['Qwen3ForCausalLM'],
      vocab_size: vocabulary,
      hidden_size: hidden,
      intermediate_size: inner,
      num_hidden_layers: layers,
      num_attention_heads: heads,
      num_key_value_heads: groups,
      head_dim: headSize,
      rms_norm_eps: 1e-6,
      rope_theta: 1_000_000,
      hidden_act: 'silu',
      attention_bias: false,
      use_sliding_window: false,
      max_position_embeddings: 32_768,
    },
  };
}

function files(limit: number, padding: string, pooling: object, dimension: number): Record<string, unknown> {
  return {
    'tokenizer_config.json': {
      model_max_length: limit,
      tokenizer_class: 'PreTrainedTokenizerFast',
      pad_token: padding,
    },
    'sentence_bert_config.json': { max_seq_length: limit, do_lower_case: false },
    '1_Pooling/config.json': { word_embedding_dimension: dimension, ...pooling },
    'modules.json': [
      { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
      { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
      { idx: 2, name: '2', path: '2_Normalize', type: 'sentence_transformers.models.Normalize' },
    ],
  };
}

/** One more than the largest id of a tokenizer. */
function idsOf(tokenizer: Buffer): number {
  const { model, added_tokens: added } = JSON.parse(tokenizer.toString('utf8')) as {
    model: { vocab: Readonly<Record<string, number>> | readonly unknown[] };
    added_tokens: readonly { id: number }[];
  };
  const largest = Array.isArray(model.vocab)
    ? model.vocab.length - 1
    : Math.max(...Object.values(model.vocab as Readonly<Record<string, number>>));
  return 1 + Math.max(largest, ...added.map(({ id }) => id));
}
