import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/package-root.ts';
import { seededRandom } from './seeded-random.ts';

const HIDDEN = 32;
const INNER = 64;
const VOCABULARY = 30_522;

/** The files of a sentence-transformers checkpoint of BERT's shape with random weights (about 4 MB). */
export function tinyCheckpoint(seed = 1): Record<string, Buffer> {
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
  return {
    'README.md': Buffer.from('# tiny'),
    'config.json': json({
      model_type: 'bert',
      architectures: ['BertModel'],
      vocab_size: VOCABULARY,
      hidden_size: HIDDEN,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      intermediate_size: INNER,
      hidden_act: 'gelu',
      max_position_embeddings: 128,
      type_vocab_size: 2,
      layer_norm_eps: 1e-12,
      pad_token_id: 0,
    }),
    'tokenizer.json': readFileSync(join(packageRoot, 'models', 'token-average-256', 'tokenizer.json')),
    'tokenizer_config.json': json({ model_max_length: 128 }),
    'modules.json': json([
      { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
      { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
      { idx: 2, name: '2', path: '2_Normalize', type: 'sentence_transformers.models.Normalize' },
    ]),
    '1_Pooling/config.json': json({ word_embedding_dimension: HIDDEN, pooling_mode_mean_tokens: true }),
    'model.safetensors': safetensors(tensors(seed)),
    // What must not be downloaded.
    'pytorch_model.bin': Buffer.alloc(5000, 1),
    'tf_model.h5': Buffer.alloc(5000, 2),
    'onnx/model.onnx': Buffer.alloc(5000, 3),
    'openvino/openvino_model.bin': Buffer.alloc(5000, 4),
  };
}

function tensors(seed: number): Map<string, { shape: number[]; values: Float32Array }> {
  const random = seededRandom(seed);
  const found = new Map<string, { shape: number[]; values: Float32Array }>();
  const add = (name: string, ...shape: number[]): void => {
    const size = shape.reduce((product, n) => product * n, 1);
    const around = name.endsWith('LayerNorm.weight') ? 1 : 0;
    found.set(name, { shape, values: Float32Array.from({ length: size }, () => around + (random() - 0.5) / 2) });
  };
  const dense = (name: string, outputs: number, inputs: number): void => {
    add(`${name}.weight`, outputs, inputs);
    add(`${name}.bias`, outputs);
  };
  const norm = (name: string): void => {
    add(`${name}.weight`, HIDDEN);
    add(`${name}.bias`, HIDDEN);
  };
  add('embeddings.word_embeddings.weight', VOCABULARY, HIDDEN);
  add('embeddings.position_embeddings.weight', 128, HIDDEN);
  add('embeddings.token_type_embeddings.weight', 2, HIDDEN);
  norm('embeddings.LayerNorm');
  for (const part of ['query', 'key', 'value']) dense(`encoder.layer.0.attention.self.${part}`, HIDDEN, HIDDEN);
  dense('encoder.layer.0.attention.output.dense', HIDDEN, HIDDEN);
  norm('encoder.layer.0.attention.output.LayerNorm');
  dense('encoder.layer.0.intermediate.dense', INNER, HIDDEN);
  dense('encoder.layer.0.output.dense', HIDDEN, INNER);
  norm('encoder.layer.0.output.LayerNorm');
  return found;
}

/** A file of the safetensors format: header length as u64, header, data. */
function safetensors(content: ReadonlyMap<string, { shape: number[]; values: Float32Array }>): Buffer {
  const header: Record<string, unknown> = {};
  const data: Buffer[] = [];
  let at = 0;
  for (const [name, { shape, values }] of content) {
    const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    header[name] = { dtype: 'F32', shape, data_offsets: [at, at + bytes.length] };
    data.push(bytes);
    at += bytes.length;
  }
  const text = JSON.stringify(header);
  const padded = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  return Buffer.concat([length, padded, ...data]);
}
