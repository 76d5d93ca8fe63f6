import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrawlError } from '../../../src/base/errors.ts';
import { checkSameModel } from '../../../src/search/opening/open-index-encoder.ts';
import { modelIdentity } from '../../helpers/model-identity.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const MODEL = modelIdentity({
  name: 'e5-base-v2',
  sha256: 'a'.repeat(64),
  architecture: 'bert',
  dimension: 768,
  normalize: true,
  prefixes: { query: 'query: ', passage: 'passage: ' },
  maxTokens: { query: 64, passage: 256 },
});

test('the same model is accepted, also with another name or other fields that change no vector', () => {
  checkSameModel(MODEL, MODEL);
  checkSameModel(MODEL, { ...MODEL, name: 'a-copy', similarity: 'cosine', batchInvariant: false });
  checkSameModel(MODEL, { ...MODEL, queryTemplate: 'question-query' });
});

for (const [field, change, shown] of [
  ['sha256', { sha256: 'b'.repeat(64) }, '(index "aaaaaaaaaaaa", encoder "bbbbbbbbbbbb")'],
  ['architecture', { architecture: 'roberta' }, '(index "bert", encoder "roberta")'],
  ['dimension', { dimension: 384 }, '(index 768, encoder 384)'],
  ['full dimension', { fullDimension: 1024 }, '(index null, encoder 1024)'],
  ['step before truncation', { beforeTruncation: 'layer-norm' }, '(index null, encoder "layer-norm")'],
  ['pooling', { pooling: 'cls' }, '(index "mean", encoder "cls")'],
  ['normalize', { normalize: false }, '(index true, encoder false)'],
  ['precision', { precision: 'int8' }, '(index "float32", encoder "int8")'],
  ['query prefix', { prefixes: { query: '', passage: 'passage: ' } }, '(index "query: ", encoder "")'],
  ['passage prefix', { prefixes: { query: 'query: ', passage: '' } }, '(index "passage: ", encoder "")'],
  ['query template', { queryTemplate: 'query' }, '(index "question-query", encoder "query")'],
  ['query tokens', { maxTokens: { query: 32, passage: 256 } }, '(index 64, encoder 32)'],
  ['passage tokens', { maxTokens: { query: 64, passage: 512 } }, '(index 256, encoder 512)'],
] as const) {
  test(`another ${field} is refused; the error names both models and both values`, () => {
    assert.throws(
      () => checkSameModel(MODEL, { ...MODEL, name: 'other', ...change }),
      (error: TrawlError) => {
        assert.ok(
          error.message.includes(
            `built with e5-base-v2, but the query encoder is other. They differ in ${field} ${shown}.`,
          ),
        );
        assert.ok(error.message.includes('--model'));
        assert.deepEqual(error.details, { index: 'e5-base-v2', encoder: 'other', fields: [field] });
        return trawlError('MODEL_MISMATCH')(error);
      },
    );
  });
}

test('the error names all differences', () => {
  assert.throws(
    () => checkSameModel(MODEL, { ...MODEL, dimension: 384, pooling: 'cls' }),
    (error: TrawlError) => {
      assert.deepEqual(error.details.fields, ['dimension', 'pooling']);
      return true;
    },
  );
});

const SOURCE = { ...MODEL, sourceSha256: 'c'.repeat(64) };
const OTHER_GRAPH = { ...SOURCE, sha256: 'b'.repeat(64) };

test('float16 and float32 of the same weights replace each other, with a warning', () => {
  assert.equal(checkSameModel(SOURCE, SOURCE), undefined);
  const remark = checkSameModel({ ...SOURCE, precision: 'float16' }, OTHER_GRAPH);
  assert.match(remark!, /embedded in float16, but queries are embedded in float32/);
  assert.match(checkSameModel(SOURCE, { ...OTHER_GRAPH, precision: 'float16' })!, /in float32.*in float16/);
});

test('int8 or bfloat16 for float32 is refused unless the user asked for the precision; the error says how', () => {
  const int8 = { ...OTHER_GRAPH, precision: 'int8' } as const;
  const bfloat16 = { ...OTHER_GRAPH, precision: 'bfloat16' } as const;
  for (const [index, encoder] of [
    [SOURCE, int8],
    [int8, SOURCE],
    [SOURCE, bfloat16],
    [bfloat16, SOURCE],
  ] as const) {
    assert.throws(
      () => checkSameModel(index, encoder),
      (error: TrawlError) => {
        assert.match(error.message, new RegExp(`--precision ${index.precision},.*--precision ${encoder.precision}`));
        return trawlError('MODEL_MISMATCH')(error);
      },
    );
    assert.match(checkSameModel(index, encoder, { precisionAsked: true })!, /scores differ/);
  }
});

test('another precision of other weights, or with another difference, is always refused', () => {
  const half = { ...OTHER_GRAPH, precision: 'float16' } as const;
  for (const encoder of [
    { ...half, sourceSha256: 'd'.repeat(64) },
    { ...half, pooling: 'cls' },
    { ...OTHER_GRAPH },
  ] as const) {
    assert.throws(() => checkSameModel(SOURCE, encoder, { precisionAsked: true }), trawlError('MODEL_MISMATCH'));
  }
  assert.throws(() => checkSameModel(MODEL, { ...MODEL, sha256: 'b'.repeat(64), precision: 'float16' }));
});

for (const precision of ['float32', 'int8'] as const) {
  test(`another graph of the same weights in ${precision} is refused with its own way out`, () => {
    const index = { ...MODEL, precision, sourceSha256: 'c'.repeat(64) };
    const encoder = { ...index, sha256: 'b'.repeat(64) };
    assert.throws(
      () => checkSameModel(index, encoder),
      (error: TrawlError) => {
        assert.match(
          error.message,
          new RegExp(`same weights in ${precision}, but not the same graph.*build the index again`),
        );
        assert.equal(/onnxruntime.*--precision int8/.test(error.message), precision === 'int8');
        return trawlError('MODEL_MISMATCH')(error);
      },
    );
  });
}

test('another graph in int8 is accepted with a warning if int8 was asked for, and one in float32 is not', () => {
  const index = { ...MODEL, precision: 'int8', sourceSha256: 'c'.repeat(64) } as const;
  const other = { sha256: 'b'.repeat(64) };
  assert.match(checkSameModel(index, { ...index, ...other }, { precisionAsked: true })!, /another graph of the same/);
  const whole = { ...index, precision: 'float32' } as const;
  assert.throws(
    () => checkSameModel(whole, { ...whole, ...other }, { precisionAsked: true }),
    trawlError('MODEL_MISMATCH'),
  );
});
