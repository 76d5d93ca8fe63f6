import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { TrawlClient } from '../../src/client/client.ts';
import { freePort } from './free-port.ts';
import { fileFolder, jsonOf, runTrawl, serveIndex } from './run-trawl.ts';

const folder = await fileFolder();
const index = join(folder, 'news');
const views = join(folder, 'views.json');
const corpus = join(folder, 'news.jsonl');
const KEY = 'a-key-of-sixteen-or-more';
const ADMIN = 'an-admin-key-of-sixteen-or-more';

const ROWS = Array.from({ length: 8 }, (_, i) => ({
  id: `p${i}`,
  title: `Page ${i}`,
  text: `Passage ${i} about rivers.`,
  ...(i < 6 ? { date: `202${i}-01-01` } : {}),
}));

const TRAIN = { train: { blockIds: 'test-ids.txt' } };
const PAST = { past: { date: { column: 'date', before: '2023-01-01', undated: 'drop' } } };

before(async () => {
  writeFileSync(corpus, ROWS.map((row) => `${JSON.stringify(row)}\n`).join(''));
  writeFileSync(join(folder, 'test-ids.txt'), 'p1\np2\nunknown\n');
  writeFileSync(views, JSON.stringify({ ...TRAIN, ...PAST }));
  const options = ['--bm25', '--model', 'token-average-256', '--column', 'date:date', '--json'];
  jsonOf(await runTrawl(['index', corpus, '--out', index, ...options]));
});

interface Found {
  readonly hits: readonly { readonly document: { readonly id: string } }[];
}

async function found(...args: string[]): Promise<string> {
  const { hits } = jsonOf<Found>(await runTrawl(['search', index, 'rivers', '--k', '20', '--json', ...args]));
  return hits
    .map(({ document }) => document.id.slice(1))
    .sort()
    .join('');
}

/** The numbers of the passages that a server finds, and the views that its reply names. */
async function served(url: string, apiKey: string, prefix = ''): Promise<string> {
  const { results, view } = await new TrawlClient(`${url}${prefix}`, { apiKey }).search({ queries: ['rivers'], k: 20 });
  const [result] = results;
  assert.ok(result?.ok === true);
  const numbers = result.hits!.map(({ id }) => String(id).slice(1)).sort();
  return [numbers.join(''), ...(view === undefined ? [] : [view])].join(' ');
}

test('search --view finds only passages of the view, in every mode, and reports block list entries that match nothing', async () => {
  assert.equal(await found(), '01234567');
  for (const mode of ['dense', 'bm25', 'hybrid']) {
    assert.equal(await found('--views', views, '--view', 'train', '--mode', mode), '034567');
    assert.equal(await found('--views', views, '--view', 'past', '--mode', mode), '012');
  }
  assert.equal(await found('--views', views, '--view', 'train', '--filter', 'date < 2022-01-01'), '0');
  const { stderr } = await runTrawl(['search', index, 'rivers', '--views', views, '--view', 'train']);
  assert.match(
    stderr,
    /view train: 1 of 3 ids of \S*test-ids\.txt match no passage of news; the first is "unknown" in line 3/,
  );
});

test('eval --view measures what a server with the view returns', async () => {
  const questions = join(folder, 'gold.jsonl');
  writeFileSync(questions, `{"id":"1","question":"rivers","gold_ids":["p0","p1","p2","p3"]}\n`);
  const run = async (...args: string[]) =>
    jsonOf<{ metrics: Record<string, number> }>(
      await runTrawl(['eval', index, '--queries', questions, '--cutoffs', '10', '--json', ...args]),
    ).metrics['recall@10'];
  assert.equal(await run(), 1);
  assert.equal(await run('--views', views, '--view', 'train'), 0.5);
});

test('an unknown view, a view without its file and a file without a view end the command with code 2', async () => {
  const questions = join(folder, 'questions.jsonl');
  writeFileSync(questions, '{"id":"1","question":"rivers","gold_ids":["p1"]}\n');
  for (const command of [
    ['search', index, 'rivers'],
    ['eval', index, '--queries', questions],
    ['mcp', index],
    ['serve', index, '--port', '0'],
  ]) {
    const ended = async (...args: string[]): Promise<string> => {
      const { code, stderr } = await runTrawl([...command, ...args]);
      assert.equal(code, 2, stderr);
      return stderr;
    };
    assert.match(
      await ended('--views', views, '--view', 'dev'),
      /--view dev: \S*views\.json has no view "dev"; it has train, past/,
    );
    assert.match(await ended('--view', 'train'), /--view train needs --views FILE/);
  }
  const { code, stderr } = await runTrawl(['search', index, 'rivers', '--views', views]);
  assert.deepEqual([code, /--views has no effect without --view\. \S* has train, past/.test(stderr)], [2, true]);
});

test('serve refuses bindings to unknown views and views of indexes that are not served', async () => {
  const keys = join(folder, 'bad.keys');
  const other = join(folder, 'other.json');
  writeFileSync(keys, `read:${KEY} view=dev\n`);
  writeFileSync(other, JSON.stringify({ train: { blockIds: 'test-ids.txt', indexes: ['wiki'] } }));
  for (const [args, message] of [
    [['--views', views, '--listen', '0:view=dev'], /--listen …:view=dev: \S* has no view "dev"/],
    [['--views', views, '--keys-file', keys], /A key of --keys-file \(view=dev\): \S* has no view "dev"/],
    [['--keys-file', keys], /A key of --keys-file \(view=dev\) needs --views FILE/],
    [['--views', other], /view train is for the index "wiki", which is not served\. Expected news/],
  ] as const) {
    const { code, stderr } = await runTrawl(['serve', index, '--port', '0', '--quiet', ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
  }
});

test('serve binds views to keys, addresses and paths, and a reload reads the file and its lists again', async (t) => {
  const keys = join(folder, 'keys');
  const file = join(folder, 'served.json');
  writeFileSync(keys, `read:${KEY} view=train\nadmin:${ADMIN}\n`);
  writeFileSync(file, JSON.stringify({ ...TRAIN, ...PAST }));
  const port = await freePort();
  const { url, child } = await serveIndex(t, index, [
    '--views',
    file,
    '--keys-file',
    keys,
    '--listen',
    `${port}:view=past`,
  ]);
  const past = `http://127.0.0.1:${port}`;
  let log = '';
  child.stderr!.on('data', (text: string) => (log += text));
  assert.equal(await served(url, ADMIN), '01234567');
  assert.equal(await served(url, KEY), '034567 train');
  assert.equal(await served(url, ADMIN, '/views/train'), '034567 train');
  assert.equal(await served(past, ADMIN), '012 past');
  assert.equal(await served(past, KEY), '0 train,past');
  const reload = async (times: number, message: string): Promise<void> => {
    child.kill('SIGHUP');
    while (log.split(message).length <= times) await sleep(5);
  };
  // A longer list, a new view, and a new key for it.
  writeFileSync(join(folder, 'test-ids.txt'), 'p1\np2\np3\n');
  writeFileSync(file, JSON.stringify({ ...TRAIN, ...PAST, dev: { blockTitles: 'titles.txt' } }));
  writeFileSync(join(folder, 'titles.txt'), 'Page 0\n');
  writeFileSync(keys, `read:${KEY} view=dev\nadmin:${ADMIN}\n`);
  await reload(1, 'news: reloaded');
  assert.equal(await served(url, ADMIN, '/views/train'), '04567 train');
  assert.equal(await served(url, KEY), '1234567 dev');
  // The file lacks a view that a key is bound to: nothing of it counts.
  writeFileSync(file, JSON.stringify({ ...TRAIN, ...PAST }));
  await reload(1, '--views and --keys-file: reload failed, the old content stays in use');
  assert.equal(await served(url, KEY), '1234567 dev');
  // A view that the index cannot have: the index is not replaced.
  writeFileSync(file, JSON.stringify({ ...TRAIN, ...PAST, dev: { filter: 'sauce exists' } }));
  await reload(1, 'news: reload failed, the old index stays: View dev: The filter names the column');
  assert.equal(await served(url, KEY), '1234567 dev');
});
