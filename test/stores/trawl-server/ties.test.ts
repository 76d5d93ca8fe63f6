import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isOfQuery } from '../../../src/search/calls/query-errors.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import { ServerRetriever } from '../../../src/stores/trawl-server/server-retriever.ts';
import { fileFolder, runTrawl } from '../../cli/run-trawl.ts';
import { serveRetriever } from '../../training/replay/recorded-server.ts';

const folder = await fileFolder();

test("more ties than Pyserini's order compares are an error of that query alone, also over HTTP", async (t) => {
  const corpus = join(folder, 'ties.jsonl');
  const index = join(folder, 'ties');
  const rows = Array.from({ length: 100_050 }, (_, i) => `{"id":"${i}","contents":"${i < 3 ? 'rare' : 'common'}"}`);
  writeFileSync(corpus, rows.join('\n'));
  const built = await runTrawl(['index', corpus, '--out', index, '--bm25', '--quiet']);
  assert.equal(built.code, 0, built.stderr);
  const here = await openRetriever(index, { encoderThreads: 1 });
  t.after(() => here.close());
  const server = await ServerRetriever.open(await serveRetriever(t, here));
  const call = { queries: ['common', 'rare'], k: 2, mode: 'bm25', bm25Order: 'pyserini' } as const;
  for (const source of [here, server]) {
    const [common, rare] = (await source.retrieve(call)).outcomes;
    assert.ok(common?.ok === false && rare?.ok === true);
    assert.equal(common.error.code, 'NOT_SUPPORTED');
    assert.ok(isOfQuery(common.error), 'a run searches for the other queries');
  }
});
