import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agreement, runLexicalCase } from '../../../bench/lexical/lexical-case.ts';
import type { LexicalEngine } from '../../../bench/lexical/lexical-engine.ts';
import type { Hits } from '../../../bench/lexical/text-file.ts';
import { EngineUnavailable } from '../../../bench/script-process.ts';

const hits = (...rows: number[]): Hits => ({
  rows: Uint32Array.from(rows),
  scoreBits: Uint32Array.from(rows, (row) => 100 - row),
});

const QUERIES = { name: 'list', queries: ['a', 'b'], texts: '', terms: '' };

/** An engine that takes `ms` per query. */
function engine(
  name: LexicalEngine['name'],
  ms: number,
  calls: string[],
  answers = [hits(1, 2), hits()],
): LexicalEngine {
  return {
    name,
    version: name,
    build: { seconds: 1, bytes: 1, analysisMs: null, openMs: 1, postings: null },
    useQueries: async () => (name === 'trawl' ? 4 : null),
    lone: async (_k, threads) => {
      calls.push(`${name} lone ${threads}`);
      return [ms, 3 * ms];
    },
    batch: async (_k, threads) => {
      calls.push(`${name} batch ${threads}`);
      return { queries: 2, ms: 2 * ms, ...(name === 'trawl' ? { postings: { all: 10, read: 4 } } : {}) };
    },
    answer: async () => answers,
    processBytes: () => null,
    close: async () => undefined,
  };
}

const run = (engines: readonly LexicalEngine[], threads: number, onLost = (): void => undefined) =>
  runLexicalCase({ corpus: 'c', queries: QUERIES, k: 10, threads, runs: 2, limitMs: 1_000 }, engines, {
    signal: new AbortController().signal,
    pauseMs: 0,
    onLost,
  });

test('engines alternate and their figures are compared with those of Trawl', async () => {
  const calls: string[] = [];
  const [trawl, lucene] = await run([engine('trawl', 1, calls), engine('lucene', 5, calls)], 1);
  assert.deepEqual(calls.slice(0, 4), ['trawl lone 1', 'trawl batch 1', 'lucene lone 1', 'lucene batch 1']);
  assert.equal(calls.length, 4 * (3 + 2));
  assert.equal(trawl!.case, 'bm25/c/list/k10/t1');
  assert.deepEqual([trawl!.meanMs, trawl!.p50Ms, trawl!.loneQueries], [2, 2, 4]);
  assert.deepEqual([trawl!.queriesPerS, trawl!.ratioToTrawl, trawl!.analysisMs], [1_000, 1, 2]);
  assert.deepEqual([trawl!.postingsReadShare, trawl!.agreement], [0.4, null]);
  assert.deepEqual([lucene!.queriesPerS, lucene!.ratioToTrawl, lucene!.analysisMs], [200, 5, null]);
  assert.deepEqual([lucene!.postingsReadShare, lucene!.agreement], [null, 1]);
});

test('with several threads baselines search only many queries at once', async () => {
  const calls: string[] = [];
  const [trawl, lucene] = await run([engine('trawl', 1, calls), engine('lucene', 5, calls)], 2);
  assert.ok(calls.includes('trawl lone 2') && calls.includes('lucene batch 2') && !calls.includes('lucene lone 2'));
  assert.equal(trawl!.meanMs, 2);
  assert.deepEqual([lucene!.meanMs, lucene!.p99Ms, lucene!.agreement], [null, null, null]);
});

test('a baseline that stops working has no record', async () => {
  const lost: string[] = [];
  const broken = {
    ...engine('sqlite', 1, []),
    batch: () => Promise.reject(new EngineUnavailable('out of memory')),
  };
  const engines = [engine('trawl', 1, []), broken];
  const records = await runLexicalCase(
    { corpus: 'c', queries: QUERIES, k: 10, threads: 1, runs: 1, limitMs: 1_000 },
    engines,
    { signal: new AbortController().signal, pauseMs: 0, onLost: (name, reason) => lost.push(`${name}: ${reason}`) },
  );
  assert.deepEqual(lost, ['sqlite: out of memory']);
  assert.deepEqual(
    records.map(({ engine: name }) => name),
    ['trawl'],
  );
});

test('lists agree if rows and score bits are equal', () => {
  const other = { rows: Uint32Array.from([1, 2]), scoreBits: Uint32Array.from([99, 97]) };
  assert.equal(agreement([hits(1, 2), hits(3)], [hits(1, 2), hits(3)]), 1);
  assert.equal(agreement([hits(1, 2), hits(3)], [other, hits(3)]), 0.5);
  assert.equal(agreement([hits(1, 2)], [hits(2, 1)]), 0);
  assert.equal(agreement([hits(1, 2), hits(3)], [hits(1, 2)]), 1);
  assert.equal(agreement([], [hits(1)]), null);
});
