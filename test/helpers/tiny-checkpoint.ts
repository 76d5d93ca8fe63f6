import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { bertShapes } from './bert-shapes.ts';
import { encodeSafetensors, float32Bytes, type TensorToWrite } from './safetensors.ts';
import { seededRandom } from './seeded-random.ts';

const HIDDEN = 32;
const INNER = 64;
const VOCABULARY = 30_522;
const POSITIONS = 128;

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** The files of a sentence-transformers checkpoint: a small BERT with random weights (about 4 MB). */
export function tinyCheckpoint(seed = 1, tokenTypes = 2): Record<string, Buffer> {
  return {
    'README.md': Buffer.from('# tiny'),
    'config.json': json(config('BertModel', tokenTypes)),
    'tokenizer.json': readFileSync(join(packageRoot, 'models', 'token-average-256', 'tokenizer.json')),
    'tokenizer_config.json': json({ model_max_length: POSITIONS }),
    'modules.json': json([
      { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
      { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
      { idx: 2, name: '2', path: '2_Normalize', type: 'sentence_transformers.models.Normalize' },
    ]),
    '1_Pooling/config.json': json({ word_embedding_dimension: HIDDEN, pooling_mode_mean_tokens: true }),
    'model.safetensors': encodeSafetensors(tensors(seed, {}, tokenTypes)),
    // Must not be downloaded.
    'pytorch_model.bin': Buffer.alloc(5000, 1),
    'tf_model.h5': Buffer.alloc(5000, 2),
    'onnx/model.onnx': Buffer.alloc(5000, 3),
    'openvino/openvino_model.bin': Buffer.alloc(5000, 4),
  };
}

/** The files of a cross-encoder with random weights; its score is the logit. */
export function tinyCrossEncoder(seed = 1): Record<string, Buffer> {
  return {
    'config.json': json({
      ...config('BertForSequenceClassification'),
      id2label: { 0: 'LABEL_0' },
      sentence_transformers: { activation_fn: 'torch.nn.modules.linear.Identity' },
    }),
    'tokenizer.json': readFileSync(join(packageRoot, 'models', 'token-average-256', 'tokenizer.json')),
    'tokenizer_config.json': json({ model_max_length: POSITIONS }),
    'model.safetensors': encodeSafetensors(
      tensors(seed, {
        'pooler.dense.weight': [HIDDEN, HIDDEN],
        'pooler.dense.bias': [HIDDEN],
        'classifier.weight': [1, HIDDEN],
        'classifier.bias': [1],
      }),
    ),
  };
}

function config(architecture: string, tokenTypes = 2): object {
  return {
    model_type: 'bert',
    architectures: [architecture],
    vocab_size: VOCABULARY,
    hidden_size: HIDDEN,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    intermediate_size: INNER,
    hidden_act: 'gelu',
    max_position_embeddings: POSITIONS,
    type_vocab_size: tokenTypes,
    layer_norm_eps: 1e-12,
    pad_token_id: 0,
  };
}

/** The tensors of the encoder, and those of `head`. With a head, the encoder's names have the prefix `bert.`. */
function tensors(
  seed: number,
  head: Readonly<Record<string, readonly number[]>> = {},
  tokenTypes = 2,
): Record<string, TensorToWrite> {
  const random = seededRandom(seed);
  const shapes = {
    ...head,
    ...bertShapes({
      hidden: HIDDEN,
      inner: INNER,
      layers: 1,
      vocabulary: VOCABULARY,
      positions: POSITIONS,
      tokenTypes,
    }),
  };
  const hasHead = Object.keys(head).length > 0;
  const found: Record<string, TensorToWrite> = {};
  for (const [name, shape] of Object.entries(shapes)) {
    const length = shape.reduce((product, n) => product * n, 1);
    const around = name.endsWith('LayerNorm.weight') ? 1 : 0;
    const values = Float32Array.from({ length }, () => around + (random() - 0.5) / 2);
    found[hasHead && !name.startsWith('classifier') ? `bert.${name}` : name] = {
      dtype: 'F32',
      shape,
      bytes: float32Bytes(values),
    };
  }
  return found;
}
