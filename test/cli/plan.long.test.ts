import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { SearchForecast } from '../../evaluation/speed/search-forecast.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { jsonOf, runTrawl, SAMPLE_PASSAGES } from './run-trawl.ts';

const skip = loadKernel().ok ? false : 'the native engine is not built';

function checkForecast(search: SearchForecast | null, rows: readonly string[]): void {
  assert.ok(search !== null && search.encoder !== null);
  assert.deepEqual(
    search.expected.map((part) => part.rows),
    rows,
  );
  const { loneMs, queriesPerS: encoded, tokensPerQuery } = search.encoder;
  for (const { searches, queriesPerS: combined } of search.expected) {
    const batch = searches.find(({ queries }) => queries === 64)!;
    assert.ok(Math.abs(combined! * (1 / encoded + 1 / batch.queriesPerS) - 1) < 1e-9);
    assert.deepEqual(
      searches.map(({ queries }) => queries),
      [1, 16, 64, 256, 512],
    );
    for (const { ms, queriesPerS } of searches) assert.ok(ms > 0 && queriesPerS > 0);
  }
  assert.ok(loneMs > 0 && tokensPerQuery > 2);
}

/** 10,000 short passages in a new folder: the fewest for which a plan expects searches. */
async function shortPassages(t: TestContext): Promise<string> {
  const path = join(await tempFolder(t), 'short.jsonl');
  const lines = Array.from({ length: 10_000 }, (_, i) => JSON.stringify({ id: String(i), contents: `Passage ${i}` }));
  await writeFile(path, lines.join('\n'));
  return path;
}

test('trawl index --plan expects searches and the encoder, in JSON and in words', { skip }, async (t) => {
  const out = join(await tempFolder(t), 'index');
  const args = ['index', await shortPassages(t), '--out', out, '--plan'];
  const { search } = jsonOf<{ search: SearchForecast | null }>(await runTrawl([...args, '--json']));
  checkForecast(search, ['without prefilters']);
  const { stdout } = await runTrawl(args);
  assert.match(stdout, /searches, expected from a trial on this machine \([\d.]+ GB\/s of memory, \S+, \d+ threads?\)/);
  assert.match(stdout, /embedding and searching +about [\d,.]+ queries\/s/);
  assert.deepEqual(await readdir(join(out, '..')), [], 'nothing was written');
  const words = jsonOf<{ search: null }>(await runTrawl([...args, '--bm25', '--json']));
  assert.equal(words.search, null, 'an index of words alone has no vectors');
  const few = jsonOf<{ search: null }>(await runTrawl(['index', SAMPLE_PASSAGES, '--out', out, '--plan', '--json']));
  assert.equal(few.search, null, 'searches of 270 passages take no time worth a trial');
});

test('trawl serve --plan says what searches need and how long they should take, and opens no port', {
  skip,
}, async (t) => {
  const index = join(await tempFolder(t), 'index');
  assert.equal((await runTrawl(['index', await shortPassages(t), '--out', index])).code, 0);
  const ended = await runTrawl(['serve', index, '--index', `again=${index}`, '--port', '1', '--plan', '--json']);
  const { indexes, residentBytes, memoryLimitBytes, problems } = jsonOf<{
    indexes: { rows: number; dimension: number; residentBytes: number; search: SearchForecast | null }[];
    residentBytes: number;
    memoryLimitBytes: number;
    problems: string[];
  }>(ended);
  assert.deepEqual(problems, []);
  assert.equal(indexes.length, 2);
  for (const { rows, dimension, search } of indexes) {
    assert.deepEqual([rows, dimension], [10_000, 256]);
    checkForecast(search, ['this index']);
  }
  assert.ok(residentBytes === 2 * indexes[0]!.residentBytes && residentBytes < memoryLimitBytes);
  const { stdout, code } = await runTrawl(['serve', index, '--plan', '--mode', 'dense']);
  assert.equal(code, 0);
  assert.match(stdout, /10,000 passages × 256; searches read [\d.]+ [kKM]i?B/);
  assert.match(stdout, /memory for searching: /);
});

test('trawl serve --plan without an index, or with a bundle, is refused', async (t) => {
  const { code, stderr } = await runTrawl(['serve', '--plan']);
  assert.equal(code, 2);
  assert.match(stderr, /<index> is missing/);
  const folder = await tempFolder(t);
  const writable = await runTrawl(['serve', '--plan', '--writable', folder, '--dialect', 'elasticsearch']);
  assert.equal(writable.code, 2);
  assert.match(writable.stderr, /--plan needs an index/);
});
