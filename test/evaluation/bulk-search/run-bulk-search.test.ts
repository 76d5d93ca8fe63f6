import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeEncoder } from '../../../evaluation/bulk-search/outputs/output-format.ts';
import type { BulkQuery, QuerySource } from '../../../evaluation/bulk-search/query-file.ts';
import { type BulkSearch, type Progress, runBulkSearch } from '../../../evaluation/bulk-search/run-bulk-search.ts';
import { ERROR_CODES, type ErrorCode, TrawlError } from '../../../src/base/errors.ts';
import { ResumableOutput } from '../../../src/base/system/resumable-output.ts';
import { isOfQuery } from '../../../src/search/calls/query-errors.ts';
import type { QueryOutcome } from '../../../src/search/calls/query-outcome.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

/** Queries q0, q1, … in pieces of odd lengths. */
function sourceOf(count: number, onRead: (queries: number) => void = () => undefined): QuerySource {
  return {
    count,
    hasRounds: false,
    hashes: {},
    async *read(first, end) {
      for (let at = first; at < end; ) {
        const length = Math.min(end - at, 1 + (at % 13));
        const piece = Array.from({ length }, (_, i): BulkQuery => ({ id: `q${at + i}`, query: `q${at + i}` }));
        at += length;
        onRead(length);
        yield piece;
      }
    },
    close: () => undefined,
  };
}

const FAILURE = new TrawlError('ENCODING_FAILED', 'It cannot be embedded.', { details: { column: 0, tokens: 3 } });

/** Query qN finds the rows N, N + 1 and N + 2; every query that ends in 77 fails. */
function outcomeOf(query: unknown): QueryOutcome {
  const number = Number(String(query).slice(1));
  if (number % 100 === 77) return { ok: false, error: FAILURE };
  const hits = [0, 1, 2].map((i) => ({ row: number + i, score: 1 / (i + 1), document: '' }));
  const certificate = { exact: true, rescored: null } as const;
  return { ok: true, hits, tokens: 1, truncated: false, text: '', cut: 'nothing', vector: null, certificate };
}

interface Given {
  readonly out: string;
  readonly source: QuerySource;
  readonly search?: BulkSearch['search'];
  readonly signal?: AbortSignal;
  /** Default: after every batch. */
  readonly saveMs?: number;
}

async function run({ out, source, search, signal = new AbortController().signal, saveMs = 0 }: Given) {
  const output = await ResumableOutput.open<Progress>([out], {
    settings: {},
    restart: false,
    replaces: true,
  });
  const shape = { queries: source.count, k: 3, hasRounds: false, isGroup: false, hasScoreFile: false, tag: '' };
  try {
    return await runBulkSearch({
      source,
      range: { first: 0, end: source.count },
      batchQueries: 10,
      search: search ?? (async (queries) => queries.map(outcomeOf)),
      ids: undefined,
      output,
      encoder: () => makeEncoder('npy', shape, undefined),
      saveMs,
      onProgress: () => undefined,
      signal,
    });
  } finally {
    await output.close();
  }
}

test('queries that fail are counted, the others are searched all the same', async (t) => {
  const out = join(await tempFolder(t), 'rows.npy');
  const result = await run({ out, source: sourceOf(1_003) });
  assert.deepEqual(result, { queries: 1_003, resumed: 0, failed: 10, firstError: FAILURE });
  const bytes = readFileSync(out);
  const at = 10 + bytes.readUInt16LE(8);
  const rowsOf = (query: number): number[] =>
    [0, 1, 2].map((i) => Number(bytes.readBigInt64LE(at + 8 * (3 * query + i))));
  for (let query = 0; query < 1_003; query++) {
    assert.deepEqual(rowsOf(query), query % 100 === 77 ? [-1, -1, -1] : [query, query + 1, query + 2]);
  }
});

test('however many queries there are, only a few batches of them are read ahead of the results', async (t) => {
  const out = join(await tempFolder(t), 'rows.npy');
  let [read, found, most] = [0, 0, 0];
  const source = sourceOf(5_000, (queries) => {
    read += queries;
    most = Math.max(most, read - found);
  });
  await run({
    out,
    source,
    search: async (queries) => {
      await sleep(0);
      found += queries.length;
      return queries.map(outcomeOf);
    },
  });
  assert.equal(found, 5_000);
  // Four batches at work, one that is being filled, and a piece of the file.
  assert.ok(most <= 6 * 10 + 13, `${most} queries were read ahead`);
});

test('a stopped run keeps what it found, and the next one has the same output as an undisturbed one', async (t) => {
  const folder = await tempFolder(t);
  const [out, whole] = [join(folder, 'rows.npy'), join(folder, 'whole.npy')];
  await run({ out: whole, source: sourceOf(500) });
  const stop = new AbortController();
  let batches = 0;
  const search: BulkSearch['search'] = async (queries, signal) => {
    if (++batches === 20) stop.abort();
    if (signal.aborted) throw new TrawlError('CANCELLED', 'The operation was cancelled.');
    return queries.map(outcomeOf);
  };
  await assert.rejects(run({ out, source: sourceOf(500), search, signal: stop.signal }), (error: TrawlError) => {
    assert.equal(error.details['resumable'], true);
    return trawlError('CANCELLED', /after \d+0 of 500 queries/)(error);
  });
  assert.equal(existsSync(out), false);
  const resumed = await run({ out, source: sourceOf(500) });
  assert.ok(resumed.resumed > 0 && resumed.resumed < 500, `resumed after ${resumed.resumed}`);
  // Those before and after.
  assert.equal(resumed.failed, 5);
  assert.ok(readFileSync(out).equals(readFileSync(whole)));
});

test('an error of the search ends the run, and what was saved before stays for the next one', async (t) => {
  const folder = await tempFolder(t);
  const out = join(folder, 'rows.npy');
  let batches = 0;
  const search: BulkSearch['search'] = async (queries) => {
    await sleep(1);
    if (++batches === 30) throw new TrawlError('RERANK_FAILED', 'The server is gone.');
    return queries.map(outcomeOf);
  };
  const message =
    /^The batch from query 291 of 500 \(id "q290"\): The server is gone\. The same command resumes after 290 of 500 queries\.$/;
  await assert.rejects(run({ out, source: sourceOf(500), search }), trawlError('RERANK_FAILED', message));
  assert.deepEqual(readdirSync(folder).sort(), ['rows.npy.lock', 'rows.npy.partial', 'rows.npy.progress']);
  const { resumed, queries } = await run({ out, source: sourceOf(500) });
  assert.ok(resumed > 0 && resumed % 10 === 0 && queries === 500);
  assert.deepEqual(readdirSync(folder).sort(), ['rows.npy', 'rows.npy.report.json']);
});

test('a query that fails for a reason outside of it ends the run, and the next run searches for it again', async (t) => {
  const folder = await tempFolder(t);
  const [out, whole] = [join(folder, 'rows.npy'), join(folder, 'whole.npy')];
  await run({ out: whole, source: sourceOf(500) });
  for (const error of [
    new TrawlError('RERANK_FAILED', 'The rerank server failed: no connection.'),
    new TrawlError('ENCODER_FAILED', 'An encoder thread ended.', { details: { exitCode: 1 } }),
    new TrawlError('ENCODER_FAILED', 'The model failed on a text.', { details: { texts: 1, tokens: 5 } }),
    new TrawlError('INDEX_FILE_TRUNCATED', 'A file is too short.'),
  ]) {
    const search: BulkSearch['search'] = async (queries) =>
      queries.map((query) => (query === 'q203' ? { ok: false, error } : outcomeOf(query)));
    // Nothing is saved while it runs, so what it found is saved at its end.
    await assert.rejects(run({ out, source: sourceOf(500), search, saveMs: 3_600_000 }), (thrown: TrawlError) => {
      assert.ok(thrown.message.startsWith(`Query 204 of 500 (id "q203"): ${error.message} `), thrown.message);
      assert.match(thrown.message, /The same command resumes after 200 of 500 queries\.$/);
      return trawlError(error.code)(thrown);
    });
    assert.equal(existsSync(out), false);
    assert.equal(existsSync(`${out}.progress`), true);
    const { resumed, failed } = await run({ out, source: sourceOf(500) });
    assert.deepEqual([resumed, failed], [200, 5]);
    assert.ok(readFileSync(out).equals(readFileSync(whole)));
    rmSync(out);
  }
});

test('a failure in the first batch leaves nothing, and says that the command begins again', async (t) => {
  const folder = await tempFolder(t);
  const search: BulkSearch['search'] = async () => {
    throw new TrawlError('RERANK_FAILED', 'The server is gone.');
  };
  await assert.rejects(
    run({ out: join(folder, 'rows.npy'), source: sourceOf(20), search }),
    trawlError('RERANK_FAILED', /gone\. The same command begins with the first query\.$/),
  );
  assert.deepEqual(readdirSync(folder), []);
});

test('only errors of the own text or vector of a query are its result', () => {
  const of = (code: ErrorCode, details = {}): boolean => isOfQuery(new TrawlError(code, '', { details }));
  const own = (Object.keys(ERROR_CODES) as ErrorCode[]).filter((code) => of(code));
  assert.deepEqual(own.sort(), [
    'EMPTY_QUERY',
    'ENCODING_FAILED',
    'ENDPOINT_REFUSED',
    'NON_FINITE_QUERY',
    'QUERY_TOO_LONG',
    'RERANK_REFUSED',
    'SCORE_OVERFLOW',
  ]);
  assert.equal(of('NOT_SUPPORTED', { maxTied: 1_000 }), true, 'too long a tie');
});
