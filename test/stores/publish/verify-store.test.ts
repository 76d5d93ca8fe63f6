import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifyStore, wordProblems } from '../../../src/stores/publish/verify-store.ts';
import type { PublishedIndex } from '../../../src/stores/published/open-stored.ts';

const DOCUMENTS = ['{"text":"river Danube"}', '{"text":"Vienna"}', '{"text":""}'];

/** An index whose store gives a row this score, and whose documents say that it is 2.5; row 2 has no words. */
function published(scoreOf: (row: number) => number, isExact = true): PublishedIndex {
  const index = {
    search: async ({ filter }: { filter: { next(row: number): number } }) => {
      const row = filter.next(0);
      return { counts: [row === 2 ? 0 : 1], scores: [scoreOf(row)], isExact: [isExact] };
    },
    explain: async ({ rows }: { rows: readonly number[] }) => [rows[0] === 2 ? [] : [{ score: 1.5 }, { score: 1 }]],
  };
  const close = async (): Promise<void> => undefined;
  return {
    manifest: { rows: DOCUMENTS.length, bm25: { made: { k1: 0.9, b: 0.4 } } },
    openWords: () => ({ indexes: new Map([['contents', index]]), close }),
    openPassages: () => ({ getMany: async (rows: readonly number[]) => rows.map((row) => DOCUMENTS[row]), close }),
  } as unknown as PublishedIndex;
}

test('rows whose score in the store is not that of their documents are named', async () => {
  const { signal } = new AbortController();
  assert.deepEqual(
    await wordProblems(
      published(() => 2.5),
      signal,
    ),
    [],
  );
  assert.deepEqual(
    await wordProblems(
      published((row) => 2.5 - row),
      signal,
    ),
    ['The words of contents of row 1 have the score 1.5; by its document it is 2.5.'],
  );
  assert.deepEqual(
    await wordProblems(
      published(() => 2.4999, false),
      signal,
    ),
    [],
    'a weight that the store rounds',
  );
});

test('after 20 problems no further rows are read, and the checksum, which lacks them, is not compared', async () => {
  const reads: number[] = [];
  const publication = {
    manifest: { rows: 5_000, dimension: 2, tombstones: null },
    ...{ pieces: 1, largestNorm: 1, contentSum: '' },
  };
  const close = async (): Promise<void> => undefined;
  const { problems } = await verifyStore(
    {
      address: 'milvus://h/c',
      close,
      find: async () => ({ name: 'c', publication }) as never,
      problems: async () => [],
      open: async () => ({ openWords: () => undefined, close }) as never,
      read: async (_, first) => {
        reads.push(first);
        return Array.from({ length: 15 }, (_, i) => ({
          ...{ row: first + i, vector: undefined, id: null, document: '{}', keys: [] },
        }));
      },
    },
    { quick: false, signal: new AbortController().signal, onProgress: () => undefined },
  );
  assert.equal(reads.length, 2);
  assert.equal(problems.length, 30);
  assert.ok(problems.every((problem) => /^Row \d+ has no vector\.$/.test(problem)));
});
