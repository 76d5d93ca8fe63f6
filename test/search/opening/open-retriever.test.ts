import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { buildIndex } from '../../../indexer/building/build-index.ts';
import type { TrawlError } from '../../../src/base/errors.ts';
import { openEncoder } from '../../../src/encoder/open-encoder.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import { toyModel } from '../../encoder/model-fixtures.ts';
import { runModule } from '../../helpers/run-module.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const TEXTS = ['the cat sat on the mat', 'a dog ran', 'what is a bridge', 'paris is in france', 'the dog and the cat'];

async function builtIndex(t: TestContext, model: string): Promise<string> {
  const folder = await tempFolder(t);
  const corpus = join(folder, 'corpus.jsonl');
  writeFileSync(corpus, TEXTS.map((contents, id) => `${JSON.stringify({ id, contents })}\n`).join(''));
  const encoder = await openEncoder(model, { workers: 1 });
  try {
    const built = await buildIndex({
      corpus: [corpus],
      corpusOptions: {},
      encoder,
      out: join(folder, 'tiny-index'),
      overwrite: false,
      passageTemplate: '{contents}',
      uniqueIds: true,
      onProgress: () => undefined,
    });
    return built.folder;
  } finally {
    await encoder.close();
  }
}

test('a built index opens with its model and finds each passage by its own text', async (t) => {
  const model = await toyModel(t);
  const folder = await builtIndex(t, model);
  const doing: string[] = [];
  const retriever = await openRetriever(folder, {
    model,
    encoderThreads: 1,
    searchThreads: 1,
    onProgress: (step) => doing.push(step),
  });
  t.after(() => retriever.close());
  assert.deepEqual(
    [retriever.info.index, retriever.info.rows, retriever.info.dimension, retriever.info.model!.name],
    ['tiny-index', 5, 10, 'toy'],
  );
  assert.equal(doing.length, 4);
  const { outcomes, timings } = await retriever.retrieve({ queries: TEXTS, k: 2 });
  for (const [row, outcome] of outcomes.entries()) {
    assert.ok(outcome.ok);
    assert.equal(outcome.hits.length, 2);
    const documents = outcome.hits.map(({ document }) => JSON.parse(document) as { id: number; contents: string });
    for (const [i, hit] of outcome.hits.entries()) assert.equal(documents[i]!.id, hit.row);
    assert.equal(outcome.hits[0]!.row, row);
    assert.ok(Math.abs(outcome.hits[0]!.score - 1) < 1e-6, 'a normalised text is its own nearest');
    assert.ok(outcome.hits[0]!.score > outcome.hits[1]!.score);
  }
  assert.ok(timings.embed > 0 && timings.search > 0 && timings.fetch > 0);
});

test('another model of the same shape is refused; the error names both and what differs', async (t) => {
  const folder = await builtIndex(t, await toyModel(t));
  const other = await toyModel(t, {
    graph: 'slow.onnx',
    change: (model) => Object.assign(model, { name: 'other-toy' }),
  });
  await assert.rejects(openRetriever(folder, { model: other, encoderThreads: 1 }), (error: TrawlError) => {
    assert.match(error.message, /built with toy, but the query encoder is other-toy\. They differ in sha256/);
    assert.deepEqual(error.details.fields, ['sha256']);
    return trawlError('MODEL_MISMATCH')(error);
  });
});

test('prefixes and limits come from the index, not from the model folder', async (t) => {
  const folder = await builtIndex(t, await toyModel(t));
  const changed = await toyModel(t, {
    change: (model) => {
      model.prefixes = { query: 'query: ', passage: 'passage: ' };
      model.maxTokens = { query: 8, passage: 8 };
      model.pooling = 'cls';
      model.normalize = false;
    },
  });
  const retriever = await openRetriever(folder, { model: changed, encoderThreads: 1 });
  t.after(() => retriever.close());
  const { outcomes } = await retriever.retrieve({ queries: [TEXTS[1]!], k: 1 });
  const outcome = outcomes[0]!;
  assert.ok(outcome.ok && Math.abs(outcome.hits[0]!.score - 1) < 1e-6, 'the query is encoded as the passage was');
});

test('a missing model and a missing index are different errors', async (t) => {
  const model = await toyModel(t);
  const folder = await builtIndex(t, model);
  await assert.rejects(openRetriever(folder, { model: join(folder, 'no-model') }), trawlError('MODEL_NOT_FOUND'));
  await assert.rejects(
    openRetriever(folder),
    trawlError('MODEL_NOT_FOUND', /toy/),
    'the manifest names no known model',
  );
  await assert.rejects(openRetriever(join(folder, 'gone'), { model }), trawlError('INDEX_NOT_FOUND'));
});

test('a damaged index is refused before the model is loaded', async (t) => {
  const folder = await builtIndex(t, await toyModel(t));
  rmSync(join(folder, 'shard-00000', 'passages.sqlite'));
  const doing: string[] = [];
  await assert.rejects(
    openRetriever(folder, { model: '/nowhere', onProgress: (step) => doing.push(step) }),
    trawlError('INDEX_FILE_MISSING', /passages\.sqlite/),
  );
  assert.deepEqual(doing, ['checking the index']);
});

test('with every value of TRAWL_ISA an index is built, and found in every mode, with the same hits', async (t) => {
  const loaded = loadKernel();
  if (!loaded.ok) return t.skip(loaded.reason);
  const folder = await tempFolder(t);
  const isas = loaded.kernel.isas().flatMap(({ name, available }) => (available ? [name] : []));
  const outputs = [...isas, 'reference'].map((isa) => {
    const code = `
      const { build, writeCorpus } = await import('#root/test/indexer/build.js');
      const { FakeTextEncoder } = await import('#root/test/indexer/fake-text-encoder.js');
      const { bm25Settings } = await import('#root/indexer/lexical/make-lexical.js');
      const { loadKernel } = await import('#root/src/engine/native/kernel.js');
      const { openRetriever } = await import('#root/src/search/opening/open-retriever.js');
      const rows = Array.from({ length: 300 }, (_, id) => ({ id, contents: 'river ' + (id % 7) + ' bridge ' + (id % 11) }));
      const { folder } = await build({
        corpus: writeCorpus(${JSON.stringify(folder)}, { '${isa}.jsonl': rows }),
        out: ${JSON.stringify(join(folder, `ix-${isa}`))},
        kernel: loadKernel().kernel,
        bm25: bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] }),
        columns: [{ name: 'id', type: 'number' }],
      });
      const retriever = await openRetriever(folder, { encoder: new FakeTextEncoder(), onWarning: console.log });
      for (const mode of ['dense', 'bm25', 'hybrid']) {
        const filter = { column: 'id', op: '>=', value: 20 };
        const { outcomes } = await retriever.retrieve({ queries: ['river 3', 'bridge 5'], k: 5, mode, filter });
        console.log(mode, JSON.stringify(outcomes.map(({ hits }) => hits.map(({ row, score }) => [row, score]))));
      }
      await retriever.close();
    `;
    const { status, stdout, stderr } = runModule(code, { TRAWL_ISA: isa });
    assert.equal(status, 0, `${isa}: ${stderr}`);
    return stdout;
  });
  assert.match(outputs[0]!, /^dense \[\[\[\d.*\nbm25 \[\[\[\d.*\nhybrid \[\[\[\d.*\n$/);
  assert.deepEqual(new Set(outputs).size, 1, [...isas, 'reference'].join());
});
