import assert from 'node:assert/strict';
import { readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { withoutEngineInt8 } from '../../src/encoder/inference/int8-runner.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
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
const BOTH = { precisions: ['float32', 'int8'], int8: 'engine' } as const;
const GRAPH = { precisions: ['int8'], int8: 'onnxruntime' } as const;

test('a model in int8 gives nearly the vectors of its float32 graph', { skip: withoutEngine }, async (t) => {
  const model = await tinyBert(t, BOTH);
  const texts = [...textsOf(60), ''];
  const cosine = await smallestCosine(await opened(t, model, 'float32'), await opened(t, model, 'int8'), texts);
  assert.ok(cosine > 0.995 && cosine < 0.9999999, String(cosine));
});

test('in int8 a text has the same bits alone and with others, on one encoder thread and on two', {
  skip: withoutEngine,
}, async (t) => {
  await assertSameBitsInAnyBatch(t, await tinyBert(t, BOTH), 'int8');
});

test('TRAWL_ISA also chooses the instruction set of the encoder in int8, and each gives the same bits', {
  skip: withoutEngine,
}, async (t) => {
  const weights = join(await tinyBert(t, BOTH), 'model-int8.bin');
  assertSameBitsWithEachIsa(weights, 'int8', {
    serial: 'portable',
    avx2: 'avx2',
    'avx512-vnni': 'avx512-vnni',
    amx: 'amx',
  });
});

test('int8 is run by the engine if that is fast here, else by onnxruntime, and the import says why', async (t) => {
  const folder = await tempFolder(t);
  const source = await writeFiles(join(folder, 'checkpoint'), tinyCheckpoint());
  const {
    folder: model,
    description,
    remarks,
  } = await importModel(source, { out: join(folder, 'tiny'), precisions: ['int8'] });
  const reason = withoutEngineInt8();
  assert.equal(description.graph.path, reason === undefined ? 'model-int8.bin' : 'model-int8.onnx');
  assert.deepEqual(remarks, reason === undefined ? [] : [`int8 is a graph for onnxruntime, because ${reason}`]);
  assert.deepEqual((await readModelFolder(model)).enginePrecisions, reason === undefined ? ['int8'] : []);
});

test('what the engine does not compute is a graph for onnxruntime in int8', async (t) => {
  const folder = await tempFolder(t);
  const graphOf = async (name: string, files: Record<string, Buffer>): Promise<string> => {
    const source = await writeFiles(join(folder, name), files);
    const { description } = await importModel(source, {
      out: join(folder, `${name}-out`),
      precisions: ['int8'],
      int8: 'engine',
    });
    return description.graph.path;
  };
  assert.equal(await graphOf('scorer', tinyCrossEncoder()), 'model-int8.onnx');
  const narrow = tinyCheckpoint();
  const config = JSON.parse(narrow['config.json']!.toString()) as object;
  narrow['config.json'] = Buffer.from(JSON.stringify({ ...config, num_attention_heads: 4 }));
  assert.equal(await graphOf('narrow', narrow), 'model-int8.onnx');
});

test('weights in int8 that are damaged, or not of the precision in the description, are refused with their file', {
  skip: withoutEngine,
}, async (t) => {
  const model = await tinyBert(t, { precisions: ['int8', 'bfloat16'], int8: 'engine' });
  const described = join(model, 'trawl-model.json');
  const text = await readFile(described, 'utf8');
  const value = JSON.parse(text) as { graphs: { precision: string }[]; graph: { precision: string } };
  for (const graph of [value.graph, ...value.graphs])
    graph.precision = graph.precision === 'int8' ? 'bfloat16' : 'int8';
  await writeFile(described, JSON.stringify(value));
  await assert.rejects(openEncoder(model, { precision: 'bfloat16' }), (error: Error) => {
    assert.match(error.message, /model-int8\.bin has weights in int8, but the description says bfloat16/);
    return trawlError('MODEL_INVALID')(error);
  });
  await writeFile(described, text);
  await truncate(join(model, 'model-int8.bin'), 4096);
  await assert.rejects(openEncoder(model, { precision: 'int8' }), trawlError('MODEL_INVALID'));
});

test('int8 that the engine runs is refused on CUDA devices', { skip: withoutEngine }, async (t) => {
  const model = await tinyBert(t, BOTH);
  await assert.rejects(openEncoder(model, { precision: 'int8', device: 'cuda' }), (error: Error) => {
    assert.match(error.message, /int8 runs on CPUs only/);
    return trawlError('CONFIG_INVALID')(error);
  });
});

test("an index of onnxruntime's graph in int8 is not searched with the engine's, unless --precision accepts the difference", {
  skip: withoutEngine,
}, async (t) => {
  const [graph, engine] = [await tinyBert(t, GRAPH), await tinyBert(t, { precisions: ['int8'], int8: 'engine' })];
  const out = join(await tempFolder(t), 'index');
  const built = await runTrawl(['index', SAMPLE_PASSAGES, '--model', graph, '--out', out, '--quiet']);
  assert.equal(built.code, 0, built.stderr);
  const inspected = jsonOf<{ model: { precision: string } }>(await runTrawl(['inspect', out, '--json']));
  assert.equal(inspected.model.precision, 'int8');
  const search = (...more: string[]) =>
    runTrawl(['search', out, 'a river in the north', '--k', '3', '--json', ...more]);
  const same = await search();
  assert.equal(same.code, 0, same.stderr);
  assert.doesNotMatch(same.stderr, /int8/);
  const other = await search('--model', engine);
  assert.notEqual(other.code, 0);
  assert.match(other.stderr, /same weights in int8.*accept the difference with --precision int8/s);
  const accepted = await search('--model', engine, '--precision', 'int8');
  assert.equal(accepted.code, 0, accepted.stderr);
  assert.match(accepted.stderr, /embedded in int8 by another graph/);
});

const importedMini = importedMiniLm();
test("all-MiniLM-L6-v2 in int8: 200 passages are at least as near to those of float32 as with onnxruntime's graph", {
  skip: withoutEngine || withoutMiniLm() || withoutSharedData('pool_wiki_dev'),
}, async (t) => {
  const folder = await tempFolder(t);
  const imported = async (int8: 'engine' | 'onnxruntime') =>
    (await importModel(miniLmFolder()!, { out: join(folder, int8), precisions: ['int8'], int8 })).folder;
  const texts = await wikiPassages();
  const whole = await opened(t, await importedMini(), 'float32', 2);
  const engine = await smallestCosine(whole, await opened(t, await imported('engine'), 'int8', 2), texts);
  const graph = await smallestCosine(whole, await opened(t, await imported('onnxruntime'), 'int8', 2), texts);
  t.diagnostic(`smallest cosine: engine ${engine}, onnxruntime ${graph}`);
  assert.ok(engine >= graph, `engine ${engine}, onnxruntime ${graph}`);
});
