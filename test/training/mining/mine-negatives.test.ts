import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readParquetRows } from '../../../corpus/read-parquet.ts';
import { type ErrorCode, TrawlError } from '../../../src/base/errors.ts';
import { type MineOptions, type MiningSummary, mineNegatives } from '../../../training/mining/mine-negatives.ts';
import type { MiningQuery } from '../../../training/mining/mined-query.ts';
import { FakeRetriever, type FakeRetrieverOptions } from '../../helpers/fake-retriever.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { miningQuery } from './mining-fixtures.ts';

const QUERIES = Array.from({ length: 20 }, (_, i) =>
  miningQuery({ id: `q${i}`, question: `Question ${i}?`, positiveIds: ['0'] }),
);

async function* streamOf(queries: readonly MiningQuery[]): AsyncGenerator<MiningQuery, void> {
  yield* queries;
}

function optionsFor(out: string, retriever: FakeRetriever): MineOptions {
  return {
    retriever,
    source: { queries: streamOf(QUERIES), excluded: [] },
    inputs: [],
    out,
    restart: false,
    format: 'triplet',
    outputScores: false,
    batch: {
      // Batches of 8 queries.
      search: { ranking: {}, depth: 1600, alsoBm25: false },
      rangeMin: 1,
      limits: { maxScore: null, minScore: null, absoluteMargin: null, relativeMargin: null },
      sampling: { strategy: 'top', seed: 0, count: 1 },
      minNegatives: 1,
      nearDuplicate: null,
      rerank: false,
      needScores: false,
      inputOf: ({ question }) => question,
    },
    settings: {},
  };
}

async function outIn(t: TestContext): Promise<string> {
  return join(await tempFolder(t), 'rows.jsonl');
}

function failingAt(question: string, code: ErrorCode): FakeRetrieverOptions {
  const error = new TrawlError(code, 'It failed.', { details: { exitCode: 1 } });
  return { outcome: (input) => (input === question ? { ok: false, error } : undefined) };
}

function mine(out: string, options: FakeRetrieverOptions = {}): Promise<MiningSummary> {
  return mineNegatives(optionsFor(out, new FakeRetriever(options)));
}

test('an error that is not of a query itself names the query, and the same command resumes there', async (t) => {
  const out = await outIn(t);
  await assert.rejects(mine(out, failingAt('Question 10?', 'ENCODER_FAILED')), (error: TrawlError) => {
    assert.deepEqual(error.details, { exitCode: 1, query: 'q10' });
    return trawlError(
      'ENCODER_FAILED',
      /^Query 11 of 20 \(id "q10"\): It failed\. The same command resumes there\.$/,
    )(error);
  });
  assert.deepEqual([existsSync(out), existsSync(`${out}.work`)], [false, true]);
  const asked = new FakeRetriever();
  const { queries } = await mineNegatives(optionsFor(out, asked));
  assert.equal(queries, 20);
  assert.equal(asked.calls[0]!.queries[0], 'Question 8?', 'the first batch is not searched again');
});

test('an error of a whole batch names its first query', async (t) => {
  let calls = 0;
  const before = (): void => {
    if (++calls === 2) throw new TrawlError('OVERLOADED', 'Too much waits.');
  };
  await assert.rejects(
    mine(await outIn(t), { before }),
    trawlError(
      'OVERLOADED',
      /^The batch from query 9 of 20 \(id "q8"\): Too much waits\. The same command resumes there\.$/,
    ),
  );
});

for (const code of ['ENCODING_FAILED', 'EMPTY_QUERY', 'QUERY_TOO_LONG', 'RERANK_REFUSED'] as const) {
  test(`a query that is itself the reason of its error (${code}) is counted, and the others get rows`, async (t) => {
    const { rows, unmined } = await mine(await outIn(t), failingAt('Question 10?', code));
    assert.deepEqual([rows, unmined.not_searchable], [19, 1]);
  });
}

test('a Parquet file that is continued after an error has the bytes of an undisturbed one', async (t) => {
  const folder = await tempFolder(t);
  const [out, whole] = [join(folder, 'rows.parquet'), join(folder, 'whole.PARQUET')];
  await assert.rejects(mine(out, failingAt('Question 10?', 'ENCODER_FAILED')), trawlError('ENCODER_FAILED'));
  assert.ok(readFileSync(`${out}.work`).includes('"pending":[{'), 'rows wait for the rest of their row group');
  const resumed = await mine(out);
  const { rows } = await mine(whole);
  assert.deepEqual([resumed.rows, rows], [20, 20]);
  assert.ok(readFileSync(out).equals(readFileSync(whole)));
  const ids: string[] = [];
  for await (const some of readParquetRows(out)) {
    ids.push(...some.map(({ row }) => (JSON.parse(row as string) as { anchor: string }).anchor));
  }
  assert.deepEqual(
    ids,
    QUERIES.map(({ question }) => question),
  );
});

test('a Parquet file of a format whose rows are no table is refused before anything is written', async (t) => {
  const out = join(await tempFolder(t), 'rows.parquet');
  const options = { ...optionsFor(out, new FakeRetriever()), format: 'tevatron' } as const;
  await assert.rejects(
    mineNegatives(options),
    trawlError(
      'USAGE',
      /rows of the format tevatron are written as JSON.*triplet, n-tuple, labeled-pair, labeled-list\./,
    ),
  );
  assert.equal(existsSync(`${out}.work`), false);
});
