import assert from 'node:assert/strict';
import { readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { bertNativeWeights } from '../../indexer/model-import/families/bert-native.ts';
import type { BertConfig, BertWeights } from '../../indexer/model-import/families/bert-weights.ts';
import { importModel } from '../../indexer/model-import/import-model.ts';
import type { TrawlError } from '../../src/base/errors.ts';
import { openNativeSession } from '../../src/encoder/inference/native-session.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { jsonOf, runTrawl, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { importedMiniLm } from '../helpers/minilm.ts';
import { miniLmFolder, withoutMiniLm } from '../helpers/peers.ts';
import { withoutSharedData } from '../helpers/shared-data.ts';
import { smallestCosine } from '../helpers/smallest-cosine.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { tinyCheckpoint, tinyCrossEncoder } from '../helpers/tiny-checkpoint.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import {
  assertNoticesTruncation,
  assertSameBitsInAnyBatch,
  assertSameBitsWithEachIsa,
  opened,
  textsOf,
  tinyBert,
  wikiPassages,
  writeFiles,
} from './tiny-bert.ts';

const loaded = loadKernel();
const withoutEngine = loaded.ok ? false : 'the native engine is not built';
/** A tiny BERT, imported in float32 and bfloat16; `change` edits its files before. */
const tinyModel = (t: TestContext, change?: (files: Record<string, Buffer>) => void) =>
  tinyBert(t, { precisions: ['float32', 'bfloat16'] }, change);

test('a model in bfloat16 gives nearly the vectors of its float32 graph', { skip: withoutEngine }, async (t) => {
  const model = await tinyModel(t);
  const texts = [...textsOf(60), ''];
  const cosine = await smallestCosine(await opened(t, model, 'float32'), await opened(t, model, 'bfloat16'), texts);
  assert.ok(cosine > 0.999 && cosine < 0.9999999, String(cosine));
});

test('in bfloat16 a text has the same bits alone and with others, on one encoder thread and on two', {
  skip: withoutEngine,
}, async (t) => {
  await assertSameBitsInAnyBatch(t, await tinyModel(t), 'bfloat16');
});

test('in bfloat16 a model with token types, tanh-approximated GELU and CLS pooling agrees with its float32 graph', {
  skip: withoutEngine,
}, async (t) => {
  const model = await tinyModel(t, (files) => {
    const config = JSON.parse(files['config.json']!.toString()) as object;
    files['config.json'] = Buffer.from(JSON.stringify({ ...config, hidden_act: 'gelu_new' }));
    files['1_Pooling/config.json'] = Buffer.from(JSON.stringify({ pooling_mode_cls_token: true }));
  });
  const cosine = await smallestCosine(
    await opened(t, model, 'float32'),
    await opened(t, model, 'bfloat16'),
    textsOf(40),
  );
  assert.ok(cosine > 0.999, String(cosine));
});

test('in bfloat16 a model with five token types agrees with its float32 graph', { skip: withoutEngine }, async (t) => {
  const model = await tinyModel(t, (files) => Object.assign(files, tinyCheckpoint(3, 5)));
  const [whole, half] = [await opened(t, model, 'float32'), await opened(t, model, 'bfloat16')];
  const cosine = await smallestCosine(whole, half, textsOf(20));
  assert.ok(cosine > 0.999, String(cosine));
});

test('shapes beyond the bounds of the native encoder are refused with the bound', () => {
  const config: BertConfig = {
    modelType: 'roberta',
    vocabularySize: 100,
    hiddenSize: 64,
    layers: 2,
    heads: 2,
    intermediateSize: 128,
    activation: 'gelu',
    layerNormEpsilon: 1e-12,
    positionRows: 40,
    positionPadding: 1,
    tokenTypeRows: 2,
  };
  const beyond: readonly [Partial<BertConfig>, RegExp][] = [
    [{ layers: 4097 }, /num_hidden_layers of 1 to 4096, not 4097/],
    [{ hiddenSize: 65_600, heads: 1 }, /hidden_size of 16 to 65536, not 65600/],
    [{ intermediateSize: 65_552 }, /intermediate_size of 16 to 65536, not 65552/],
    [{ vocabularySize: 2 ** 24 + 1 }, /vocab_size of 1 to 16777216, not 16777217/],
    [{ positionRows: 2 ** 25 }, /max_position_embeddings of 1 to 16777216, not 33554432/],
    [{ tokenTypeRows: 2 ** 25 }, /type_vocab_size of 0 to 16777216, not 33554432/],
    [{ positionPadding: 2 ** 25 }, /pad_token_id of 0 to 16777216, not 33554432/],
    [{ activation: 'silu' }, /activations gelu, gelu-tanh, relu, not silu/],
  ];
  for (const [change, message] of beyond) {
    // The shape is checked before the weights are looked at.
    const weights = {} as BertWeights;
    assert.throws(
      () => bertNativeWeights({ ...config, ...change }, weights, 'bfloat16'),
      (error: Error) => {
        assert.match(error.message, message);
        assert.match(error.message, /Ask for float32 or int8/);
        return trawlError('CONFIG_INVALID')(error);
      },
    );
  }
});

test('TRAWL_ISA also chooses the instruction set of the encoder, and each gives the same bits', {
  skip: withoutEngine,
}, async (t) => {
  const weights = join(await tinyModel(t), 'model-bfloat16.bin');
  assertSameBitsWithEachIsa(weights, 'bfloat16', { serial: 'portable', avx2: 'avx2', 'avx512-vnni': 'avx512' });
});

test('what the native encoder does not compute is not imported in bfloat16, and nothing is written', async (t) => {
  const folder = await tempFolder(t);
  const refused = async (name: string, files: Record<string, Buffer>, message: RegExp): Promise<void> => {
    const source = await writeFiles(join(folder, name), files);
    const importing = importModel(source, { out: join(folder, `${name}-out`), precisions: ['bfloat16'] });
    await assert.rejects(importing, (error: Error) => {
      assert.match(error.message, message);
      return trawlError('CONFIG_INVALID')(error);
    });
    await assert.rejects(readFile(join(folder, `${name}-out`, 'trawl-model.json')));
  };
  await refused('scorer', tinyCrossEncoder(), /the model is a cross-encoder.*Ask for float32 or int8/s);
  const pooler = tinyCheckpoint();
  pooler['1_Pooling/config.json'] = Buffer.from(JSON.stringify({ pooling_mode_mean_tokens: true }));
  const config = JSON.parse(pooler['config.json']!.toString()) as object;
  pooler['config.json'] = Buffer.from(JSON.stringify({ ...config, num_attention_heads: 4 }));
  await refused('narrow', pooler, /multiples of 16, but the model has hidden_size 32, 8 values a head/);
});

test('damaged weights in bfloat16 are refused with their file', { skip: withoutEngine }, async (t) => {
  const model = await tinyModel(t);
  const path = join(model, 'model-bfloat16.bin');
  await truncate(path, 100);
  await assert.rejects(openEncoder(model, { precision: 'bfloat16' }), trawlError('MODEL_INVALID'));
  const description = join(model, 'trawl-model.json');
  const text = await readFile(description, 'utf8');
  const value = JSON.parse(text) as { files: { path: string; bytes: number; sha256: string }[] };
  // A description that agrees with the damaged file.
  const { createHash } = await import('node:crypto');
  const sha256 = createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
  value.files = value.files.map((file) =>
    file.path === 'model-bfloat16.bin' ? { ...file, bytes: 100, sha256 } : file,
  );
  await writeFile(description, JSON.stringify(value));
  await assert.rejects(openEncoder(model, { precision: 'bfloat16' }), (error: Error) => {
    assert.match(error.message, /model-bfloat16\.bin has no weights of an encoder.*import the model again/);
    return trawlError('MODEL_INVALID')(error);
  });
});

test('weights in bfloat16 that are truncated while they are in use fail every text, until the encoder is opened again', {
  skip: withoutEngine,
}, async (t) => {
  await assertNoticesTruncation(t, await tinyModel(t), 'bfloat16', 'model-bfloat16.bin');
});

test("the engine's own message says why a batch failed", { skip: withoutEngine }, async (t) => {
  const session = openNativeSession(join(await tinyModel(t), 'model-bfloat16.bin'), 'bfloat16');
  const [ids, tokens] = [Int32Array.of(2_000_000_000), Int32Array.of(1)];
  await assert.rejects(session.run({ rows: 1, length: 1, ids, tokens }, 1), (error: TrawlError) => {
    assert.deepEqual({ ...error.details }, { texts: 1, tokens: 1, outOfMemory: undefined });
    return trawlError('ENCODER_FAILED', /^The model failed on a text of 1 tokens: (?!\w*Error:)/)(error);
  });
  await session.close();
});

test('bfloat16 is refused on CUDA devices, and for a model without it', { skip: withoutEngine }, async (t) => {
  const model = await tinyModel(t);
  await assert.rejects(openEncoder(model, { precision: 'bfloat16', device: 'cuda' }), (error: Error) => {
    assert.match(error.message, /bfloat16 runs on CPUs only/);
    return trawlError('CONFIG_INVALID')(error);
  });
  await assert.rejects(openEncoder('token-average-256', { precision: 'bfloat16' }), trawlError('CONFIG_INVALID'));
});

test('an index records bfloat16; queries of another precision than the passages need --precision', {
  skip: withoutEngine,
}, async (t) => {
  const model = await tinyModel(t);
  const folder = await tempFolder(t);
  const built = async (precision: string): Promise<string> => {
    const out = join(folder, precision);
    const args = ['index', SAMPLE_PASSAGES, '--model', model, '--precision', precision, '--out', out];
    const { code, stderr } = await runTrawl([...args, '--quiet']);
    assert.equal(code, 0, stderr);
    return out;
  };
  const search = async (index: string, ...more: string[]) =>
    runTrawl(['search', index, 'a river in the north', '--k', '10', '--json', ...more]);
  const [whole, half] = [await built('float32'), await built('bfloat16')];
  assert.equal(
    jsonOf<{ model: { precision: string } }>(await runTrawl(['inspect', half, '--json'])).model.precision,
    'bfloat16',
  );
  // Each index takes its own precision.
  for (const index of [whole, half]) {
    const { code, stderr } = await search(index);
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /embedded in/);
  }
  const mixed = await search(whole, '--precision', 'bfloat16');
  assert.equal(mixed.code, 0, mixed.stderr);
  assert.match(mixed.stderr, /embedded in float32, but queries are embedded in bfloat16/);
});

const importedMini = importedMiniLm();
test('all-MiniLM-L6-v2 in bfloat16: 200 passages have a cosine of at least 0.9999 to those of float32', {
  skip: withoutEngine || withoutMiniLm() || withoutSharedData('pool_wiki_dev'),
}, async (t) => {
  const folder = await tempFolder(t);
  const { folder: half } = await importModel(miniLmFolder()!, { out: join(folder, 'half'), precisions: ['bfloat16'] });
  const texts = await wikiPassages();
  const whole = await opened(t, await importedMini(), 'float32', 2);
  const cosine = await smallestCosine(whole, await opened(t, half, 'bfloat16', 2), texts);
  assert.ok(cosine >= 0.9999, String(cosine));
});
