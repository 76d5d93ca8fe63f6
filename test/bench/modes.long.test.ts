import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ModeRecord } from '../../bench/modes/bench-modes.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { importedCrossEncoder } from '../encoder/rerank/tiny-cross-encoder.ts';
import { buildSampleIndex } from '../helpers/sample-index.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const skip = loadKernel().ok ? false : 'the native engine is not built';
const QUESTIONS = join(SAMPLE, 'questions.jsonl');

test('bench modes measures recall and latency of each way to rank, reranked and filtered', { skip }, async (t) => {
  const reranker = await importedCrossEncoder(t);
  const models = ['--model', 'token-average-256', '--rerank', reranker, '--rerank-depth', '12'];
  const args = ['bench', 'modes', '--corpus', SAMPLE_PASSAGES, '--query-texts', QUESTIONS, ...models, '--quiet'];
  const records = jsonOf<ModeRecord[]>(await runTrawl([...args, '--json']));
  assert.deepEqual(
    records.map((record) => record.case),
    [
      ...['dense', 'bm25', 'hybrid', 'hybrid, depth 100'],
      ...['dense, reranked 12', 'bm25, reranked 12', 'hybrid, reranked 12'],
      ...['dense', 'bm25', 'hybrid'].flatMap((mode) => [50, 10, 1].map((percent) => `${mode}, ${percent} %`)),
    ],
  );
  const [dense] = records;
  const index = await buildSampleIndex(await tempFolder(t));
  const recall = jsonOf<{ metrics: Record<string, number>; judged: number }>(
    await runTrawl(['eval', index, '--queries', QUESTIONS, '--mode', 'dense', '--json', '--quiet']),
  );
  assert.deepEqual([dense!.recallAt10, dense!.judged], [recall.metrics['recall@10'], recall.judged]);
  for (const { passing, judged, recallAt10, p50Ms, p99Ms } of records) {
    assert.ok(passing <= dense!.passing && judged <= dense!.judged);
    assert.ok(recallAt10 >= 0 && recallAt10 <= 1 && p50Ms > 0 && p99Ms >= p50Ms);
  }
  const half = records.find((record) => record.case === 'bm25, 50 %')!;
  assert.ok(half.passing < dense!.passing && half.judged > 0);
  const some = await runTrawl([...args, '--questions', '3']);
  assert.match(some.stdout, /\| dense, reranked 12 +\| +[123] \|/);
});

test('bench modes needs questions with judged passages, and a model', { skip }, async () => {
  const { code, stderr } = await runTrawl(['bench', 'modes', '--model', 'token-average-256']);
  assert.equal(code, 2);
  assert.match(stderr, /--query-texts is missing: a file of questions with gold_ids for `trawl bench modes`/);
  const withoutModel = await runTrawl(['bench', 'modes', '--query-texts', QUESTIONS]);
  assert.match(withoutModel.stderr, /--model is missing: a model folder for `trawl bench modes`/);
});
