import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkpointFiles, weightBytes } from '../../hub/checkpoint-files.ts';
import type { RepositoryFile } from '../../hub/repository.ts';
import { trawlError } from '../helpers/trawl-error.ts';

function files(...paths: string[]): RepositoryFile[] {
  return paths.map((path) => ({ path, bytes: 10, hash: { algorithm: 'sha256', value: 'a'.repeat(64) } }));
}

const chosen = (...paths: string[]) => checkpointFiles(files(...paths)).map(({ path }) => path);

test('of a repository as E5 and BGE have it only what an import needs is taken', () => {
  assert.deepEqual(
    chosen(
      '.gitattributes',
      'README.md',
      '1_Pooling/config.json',
      'config.json',
      'config_sentence_transformers.json',
      'model.safetensors',
      'modules.json',
      'onnx/model.onnx',
      'onnx/config.json',
      'openvino/openvino_model.bin',
      'openvino/openvino_model.xml',
      'pytorch_model.bin',
      'flax_model.msgpack',
      'tf_model.h5',
      'model.gguf',
      'sentence_bert_config.json',
      'sentencepiece.bpe.model',
      'special_tokens_map.json',
      'tokenizer.json',
      'tokenizer_config.json',
      'vocab.txt',
    ),
    [
      '1_Pooling/config.json',
      'config.json',
      'config_sentence_transformers.json',
      'model.safetensors',
      'modules.json',
      'sentence_bert_config.json',
      'special_tokens_map.json',
      'tokenizer.json',
      'tokenizer_config.json',
      'vocab.txt',
    ],
  );
});

test('sharded safetensors come with their index, and not beside the whole file', () => {
  const shards = [
    'model-00001-of-00002.safetensors',
    'model-00002-of-00002.safetensors',
    'model.safetensors.index.json',
  ];
  assert.deepEqual(chosen('config.json', ...shards), ['config.json', ...shards]);
  assert.deepEqual(chosen('config.json', 'model.safetensors', ...shards), ['config.json', 'model.safetensors']);
});

test('without safetensors the ONNX graph is taken, with the weights beside it', () => {
  assert.deepEqual(
    chosen('config.json', 'onnx/model.onnx', 'onnx/model.onnx_data', 'onnx/model_O4.onnx', 'pytorch_model.bin'),
    ['config.json', 'onnx/model.onnx', 'onnx/model.onnx_data'],
  );
  assert.deepEqual(chosen('config.json', 'model.onnx'), ['config.json', 'model.onnx']);
});

test('a repository with pickled weights alone, with none, or with no config is refused with the way out', () => {
  assert.throws(
    () => chosen('config.json', 'pytorch_model.bin'),
    trawlError('MODEL_INVALID', /refs\/pr\/1.*safe_serialization/),
  );
  assert.throws(
    () => chosen('config.json', 'model.gguf'),
    trawlError('MODEL_INVALID', /neither model\.safetensors nor/),
  );
  assert.throws(() => chosen('model.safetensors'), trawlError('MODEL_INVALID', /no config\.json/));
});

test('weights are counted and small files are not', () => {
  assert.equal(weightBytes(files('config.json', 'model.safetensors', 'onnx/model.onnx_data')), 20);
});
