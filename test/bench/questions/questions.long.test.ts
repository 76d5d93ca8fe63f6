import assert from 'node:assert/strict';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { benchQuestions } from '../../../bench/questions/bench-questions.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES } from '../../cli/run-trawl.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const skip = loadKernel().ok ? false : 'the native engine is not built';
const QUESTIONS = join(SAMPLE, 'questions.jsonl');
const MODES = ['dense', 'bm25', 'hybrid'] as const;

test('Trawl answers questions over HTTP in each mode with the recall of trawl eval, and its libraries as the server', {
  skip,
}, async (t) => {
  const cache = await tempFolder(t);
  const index = join(cache, 'index');
  assert.equal(
    (await runTrawl(['index', SAMPLE_PASSAGES, '--bm25', '--model', 'token-average-256', '--out', index, '--quiet']))
      .code,
    0,
  );
  const { records, skipped, passages } = await benchQuestions({
    ...{ index, corpus: SAMPLE_PASSAGES, queryTexts: QUESTIONS, questions: 1_000, words: ['bm25s'], runs: 1, seed: 1 },
    efforts: [16],
    ...{ model: 'token-average-256', baselineModel: undefined, against: ['search-r1'], threads: 1, cache },
    python: '/nonexistent/python',
    scratch: await mkdtemp(join(cache, 'scratch-')),
    signal: new AbortController().signal,
    note: () => undefined,
  });
  assert.deepEqual(
    records.map(({ engine, mode, over }) => `${engine} ${mode} ${over}`),
    [...MODES.map((mode) => `trawl ${mode} http`), 'trawl dense library', 'trawl bm25 library'],
  );
  assert.deepEqual(
    skipped.map(({ engine }) => engine),
    ['search-r1', 'faiss', 'faiss-hnsw', 'usearch-hnsw', 'bm25s'],
  );
  assert.equal(passages, 270);
  for (const [i, mode] of MODES.entries()) {
    const args = ['eval', index, '--queries', QUESTIONS, '--mode', mode, '--cutoffs', '10', '--json', '--quiet'];
    const { metrics } = jsonOf<{ metrics: Record<string, number> }>(await runTrawl(args));
    assert.ok(Math.abs(records[i]!.recallAt10 - metrics['recall@10']!) < 1e-12, mode);
    assert.ok(records[i]!.p50Ms > 0 && records[i]!.p99Ms >= records[i]!.p50Ms);
  }
  for (const [library, server] of [
    [3, 0],
    [4, 1],
  ] as const) {
    assert.equal(records[library]!.recallAt10, records[server]!.recallAt10, 'the library finds what the server finds');
  }
});
