import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkpointFiles, describingFiles, weightBytes } from '../../../indexer/hub/checkpoint-files.ts';
import type { RepositoryFile } from '../../../indexer/hub/repository.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

function files(...paths: string[]): RepositoryFile[] {
  return paths.map((path) => ({ path, bytes: 10, hash: { algorithm: 'sha256', value: 'a'.repeat(64) } }));
}

const chosen = (...paths: string[]) => checkpointFiles(files(...paths)).map(({ path }) => path);

test('only the files that an import needs are chosen from a repository like those of E5 and BGE', () => {
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

test('an ONNX graph is chosen in place of safetensors if the import makes none of the architecture', () => {
  const all = files('config.json', 'model.safetensors', 'onnx/model.onnx', 'onnx/model.onnx_data', 'tokenizer.json');
  assert.deepEqual(
    checkpointFiles(all, { graphFirst: true }).map(({ path }) => path),
    ['config.json', 'onnx/model.onnx', 'onnx/model.onnx_data', 'tokenizer.json'],
  );
});

test('the files that describe a model are its configs', () => {
  const all = files(
    '1_Pooling/config.json',
    'config.json',
    'model.safetensors',
    'modules.json',
    'tokenizer.json',
    'vocab.txt',
  );
  assert.deepEqual(
    describingFiles(all).map(({ path }) => path),
    ['1_Pooling/config.json', 'config.json', 'modules.json'],
  );
});

test('sharded safetensors are chosen with their index, and not if there is a single file', () => {
  const shards = [
    'model-00001-of-00002.safetensors',
    'model-00002-of-00002.safetensors',
    'model.safetensors.index.json',
  ];
  assert.deepEqual(chosen('config.json', ...shards), ['config.json', ...shards]);
  assert.deepEqual(chosen('config.json', 'model.safetensors', ...shards), ['config.json', 'model.safetensors']);
});

test('the ONNX graph and its external weights are chosen if there are no safetensors', () => {
  assert.deepEqual(
    chosen('config.json', 'onnx/model.onnx', 'onnx/model.onnx_data', 'onnx/model_O4.onnx', 'pytorch_model.bin'),
    ['config.json', 'onnx/model.onnx', 'onnx/model.onnx_data'],
  );
  assert.deepEqual(chosen('config.json', 'model.onnx'), ['config.json', 'model.onnx']);
});

test('a repository with only pickled weights, without weights or without config.json is refused with advice', () => {
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

test('the size of the weights does not include small files', () => {
  assert.equal(weightBytes(files('config.json', 'model.safetensors', 'onnx/model.onnx_data')), 20);
});
