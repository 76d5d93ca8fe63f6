import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { freePort } from './free-port.ts';
import { fileFolder, jsonOf, postJson, runTrawl, serveIndex } from './run-trawl.ts';

const folder = await fileFolder();
const corpus = join(folder, 'news.jsonl');
const index = join(folder, 'news');

const ROWS = Array.from({ length: 10 }, (_, i) => ({
  id: `p${i}`,
  text: `Passage ${i} about rivers.`,
  meta: { source: i % 2 === 0 ? 'wiki' : 'news' },
  year: 2010 + i,
}));

before(async () => {
  writeFileSync(corpus, ROWS.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const columns = ['--column', 'meta.source:string', '--column', 'year:number'];
  jsonOf(
    await runTrawl(['index', corpus, '--out', index, '--bm25', '--model', 'token-average-256', ...columns, '--json']),
  );
});

interface Found {
  readonly hits: readonly { readonly document: { readonly id: string } }[];
}

async function found(...args: string[]): Promise<string[]> {
  const { hits } = jsonOf<Found>(await runTrawl(['search', index, 'rivers', '--k', '20', '--json', ...args]));
  return hits.map(({ document }) => document.id).sort();
}

test('search --filter finds only passages that pass, in both modes', async () => {
  const filter = "meta.source = 'wiki' and year >= 2014";
  assert.deepEqual(await found('--filter', filter), ['p4', 'p6', 'p8']);
  assert.deepEqual(await found('--mode', 'bm25', '--filter', filter), ['p4', 'p6', 'p8']);
  assert.deepEqual(await found('--filter', 'year > 2050'), []);
  assert.equal((await found()).length, ROWS.length);
});

test('a filter with a fault, an unknown column or another type ends search, eval and serve with code 2', async () => {
  for (const [filter, message] of [
    ['year >', /--filter: The filter cannot be read at character 7: found the end, expected a value/],
    ['yeer > 1', /--filter: .*"yeer", but the index \S*news has meta\.source \(string\), year \(number\)/],
    ["year > '2010'", /--filter: .*"year" is a number/],
  ] as const) {
    const questions = join(folder, 'questions.jsonl');
    writeFileSync(questions, '{"id":"1","question":"rivers","gold_ids":["p1"]}\n');
    for (const args of [
      ['search', index, 'rivers'],
      ['eval', index, '--queries', questions],
      ['mcp', index],
    ]) {
      const { code, stderr } = await runTrawl([...args, '--filter', filter]);
      assert.equal(code, 2, `${args[0]} ${filter}: ${stderr}`);
      assert.match(stderr, message);
    }
  }
});

test('eval --filter measures the filtered search', async () => {
  const questions = join(folder, 'gold.jsonl');
  const ids = JSON.stringify(ROWS.map(({ id }) => id));
  writeFileSync(questions, `{"id":"1","question":"rivers","gold_ids":${ids}}\n`);
  const run = async (...args: string[]) =>
    jsonOf<{ metrics: Record<string, number> }>(
      await runTrawl(['eval', index, '--queries', questions, '--cutoffs', '10', '--json', ...args]),
    ).metrics['recall@10'];
  assert.equal(await run(), 1);
  assert.equal(await run('--filter', "meta.source in ('wiki')"), 0.5);
});

test('optimize --column and --drop-column change the columns, and inspect shows them', async () => {
  const optimized = jsonOf<{ columnsMade: number }>(
    await runTrawl(['optimize', index, '--column', 'id:string', '--drop-column', 'year', '--json', '--quiet']),
  );
  assert.equal(optimized.columnsMade, 1);
  const { stdout } = await runTrawl(['inspect', index]);
  assert.match(stdout, /^ {2}columns {7}\d+ B on disk: meta\.source \(string\), id \(string\)$/m);
  assert.deepEqual(await found('--filter', "id in ('p3', 'p4')"), ['p3', 'p4']);
  const { code, stderr } = await runTrawl(['optimize', index, '--column', 'id']);
  assert.equal(code, 2);
  assert.match(stderr, /--column is "id"; expected NAME:TYPE with the type string, number, boolean or date/);
  jsonOf(await runTrawl(['optimize', index, '--column', 'year:number', '--drop-column', 'id', '--json', '--quiet']));
});

test('--column cannot be combined with --update, and names a bad value with its line', async () => {
  const update = await runTrawl(['index', corpus, '--out', index, '--update', '--column', 'year:number']);
  assert.equal(update.code, 2);
  assert.match(update.stderr, /--update changes an existing index and cannot be combined with --column/);
  const bad = await runTrawl(['index', corpus, '--out', join(folder, 'bad'), '--column', 'year:string', '--quiet']);
  assert.equal(bad.code, 1);
  assert.match(bad.stderr, /news\.jsonl:1: the column "year" is a string, but found the number 2010/);
  const twice = await runTrawl([
    'index',
    corpus,
    '--out',
    join(folder, 'bad'),
    '--column',
    'a:date',
    '--column',
    'a:string',
  ]);
  assert.match(twice.stderr, /--column names "a" twice/);
});

test('serve --filter narrows searches, and an index without its columns is not served', async (t) => {
  const { url } = await serveIndex(t, index, ['--filter', "meta.source = 'wiki'"]);
  const response = await fetch(`${url}/v1/search`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ queries: ['rivers'], k: 20, filter: 'year < 2015' }),
  });
  const { results } = (await response.json()) as { results: { hits: { id: string }[] }[] };
  assert.deepEqual(results[0]!.hits.map(({ id }) => id).sort(), ['p0', 'p2', 'p4']);
  await assert.rejects(serveIndex(t, index, ['--filter', 'yeer > 1']), /the index news has meta\.source/);
});

test('a filter of a --listen address limits that address in addition to --filter, and its columns are checked too', async (t) => {
  const port = await freePort();
  const listen = `${port}:filter=year < 2015 and meta.source in ('wiki', 'a:b')`;
  const { url } = await serveIndex(t, index, ['--filter', "meta.source = 'wiki'", '--listen', listen]);
  const ids = async (address: string): Promise<string[]> => {
    const { body } = await postJson<{ result: { id: string }[][] }>(address, { queries: ['rivers'], topk: 20 });
    return body.result[0]!.map(({ id }) => id).sort();
  };
  assert.deepEqual(await ids(url), ['p0', 'p2', 'p4', 'p6', 'p8']);
  assert.deepEqual(await ids(`http://127.0.0.1:${port}`), ['p0', 'p2', 'p4']);
  await assert.rejects(serveIndex(t, index, ['--listen', '0:filter=yeer > 1']), /the index news has meta\.source/);
});
