import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorCode, TrawlError } from '../../../src/base/errors.ts';
import { SearchFailure } from '../../../src/search/calls/query-errors.ts';
import { searchCandidates } from '../../../training/mining/search-candidates.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';

/** A retriever that fails on the second query, in one of the modes. */
function failing(code: ErrorCode, mode?: 'bm25'): FakeRetriever {
  const retriever: FakeRetriever = new FakeRetriever({
    outcome: (_, position) =>
      position === 1 && retriever.calls.at(-1)!.mode === mode
        ? { ok: false, error: new TrawlError(code, 'It failed.') }
        : undefined,
  });
  return retriever;
}

const SEARCH = { ranking: {}, depth: 3, alsoBm25: false };

for (const code of ['EMPTY_QUERY', 'QUERY_TOO_LONG', 'ENCODING_FAILED'] as const) {
  test(`a query that cannot be searched itself (${code}) has its error, and the others their candidates`, async () => {
    for (const [mode, alsoBm25] of [
      [undefined, false],
      ['bm25', true],
    ] as const) {
      const searched = await searchCandidates(failing(code, mode), ['a', 'b', 'c'], { ...SEARCH, alsoBm25 });
      assert.deepEqual(
        searched.map((query) => (query.ok ? query.candidates.length > 0 : query.error.code)),
        [true, code, true],
      );
    }
  });
}

for (const code of ['ENCODER_FAILED', 'OVERLOADED', 'INTERNAL'] as const) {
  test(`${code} of one query ends the run: the same query may be searchable later`, async () => {
    const dense = searchCandidates(failing(code), ['a', 'b', 'c'], SEARCH);
    const isOfSecond = (error: unknown): boolean =>
      error instanceof SearchFailure && error.place === 1 && error.error.code === code;
    await assert.rejects(dense, isOfSecond);
    const words = searchCandidates(failing(code, 'bm25'), ['a', 'b', 'c'], { ...SEARCH, alsoBm25: true });
    await assert.rejects(words, isOfSecond);
  });
}
