import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { OpenRetriever, RowScore } from '../../../src/search/retriever.ts';
import { fileFolder, runTrawl, SAMPLE_PASSAGES } from '../../cli/run-trawl.ts';
import { runs } from '../../helpers/runs.ts';

const folder = await fileFolder();
const TEXTS = ['who designed the Brooklyn Bridge', 'capital of Finland', 'the river', 'zzz qqq', ''];
let retriever: OpenRetriever;

async function run(...args: string[]): Promise<void> {
  const { code, stderr } = await runTrawl(args, { cwd: folder });
  assert.equal(code, 0, stderr);
}

before(async () => {
  await run('index', SAMPLE_PASSAGES, '--model', 'token-average-256', '--bm25', '--out', 'index', '--quiet');
  // Deleted rows are neither ranked nor counted.
  await run('remove', 'index', 's-0002', 's-0100');
  retriever = await openRetriever(join(folder, 'index'), { encoderThreads: 1 });
});

after(() => retriever.close());

/** The score and rank of every live row that a full search finds. */
async function fullSearch(mode: 'dense' | 'bm25', query: string): Promise<Map<number, RowScore>> {
  const { outcomes } = await retriever.retrieve({ queries: [query], k: retriever.info.rows, mode });
  assert.ok(outcomes[0]!.ok);
  return new Map(outcomes[0]!.hits.map(({ row, score }, i) => [row, { score, rank: i + 1 }]));
}

test('scores and ranks of any rows for any queries are those of a search through the whole index', async () => {
  const modes = ['dense', 'bm25'] as const;
  const full = new Map<string, Map<number, RowScore>>();
  for (const mode of modes) for (const text of TEXTS) full.set(`${mode} ${text}`, await fullSearch(mode, text));
  const live = [...full.get('dense ')!.keys()];
  assert.equal(live.length, retriever.info.rows - 2);
  const queries = fc.array(
    fc.record({ query: fc.constantFrom(...TEXTS), rows: fc.array(fc.constantFrom(...live), { maxLength: 8 }) }),
    { maxLength: 4 },
  );
  await fc.assert(
    fc.asyncProperty(
      queries,
      fc.constantFrom(...modes),
      fc.constantFrom(0, 1, 20, 100_000),
      async (asked, mode, maxRank) => {
        const { outcomes } = await retriever.score({ queries: asked, mode, maxRank });
        const expected = asked.map(({ query, rows }) => ({
          ok: true,
          scores: rows.map((row) => {
            const found = full.get(`${mode} ${query}`)!.get(row);
            const rank = found?.rank ?? null;
            return { score: found?.score ?? 0, rank: rank !== null && rank <= maxRank ? rank : null };
          }),
        }));
        assert.deepEqual(outcomes, expected);
      },
    ),
    { numRuns: runs(20, 60) },
  );
});

test('a mode that the index lacks is refused, and an aborted call is cancelled', async (t) => {
  await run('index', SAMPLE_PASSAGES, '--out', 'dense', '--quiet');
  const dense = await openRetriever(join(folder, 'dense'), { encoderThreads: 1 });
  t.after(() => dense.close());
  const queries = [{ query: 'a', rows: [0] }];
  await assert.rejects(dense.score({ queries, mode: 'bm25', maxRank: 0 }), { code: 'NOT_SUPPORTED' });
  await assert.rejects(retriever.score({ queries, mode: 'dense', maxRank: 0, signal: AbortSignal.abort() }), {
    code: 'CANCELLED',
  });
});
