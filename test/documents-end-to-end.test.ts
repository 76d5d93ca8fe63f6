import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import Database from 'better-sqlite3';
import { openRetriever } from '../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../src/search/retriever.ts';
import { fileFolder, runTrawl, SAMPLE_PASSAGES } from './cli/run-trawl.ts';
import { build, postTo } from './server/build.ts';

interface Source {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  readonly url: string;
}

const folder = await fileFolder();
/** Documents of several sample passages each, with different lengths. */
const DOCUMENTS: readonly Source[] = makeDocuments();
let retriever: OpenRetriever;

function makeDocuments(): Source[] {
  const texts = readFileSync(SAMPLE_PASSAGES, 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { text: string }).text);
  return Array.from({ length: 30 }, (_, i) => ({
    id: `doc ${i}`,
    title: `Page ${i % 20}`,
    text: texts.slice(i * 5, i * 5 + 1 + (i % 5)).join(' '),
    url: `https://example.org/${i}`,
  }));
}

async function run(...args: string[]): Promise<void> {
  const { code, stderr } = await runTrawl(args, { cwd: folder });
  assert.equal(code, 0, stderr);
}

before(async () => {
  const lines = DOCUMENTS.map((document) => `${JSON.stringify(document)}\n`);
  writeFileSync(join(folder, 'documents.jsonl'), lines.join(''));
  const split = ['--rule', 'words', '--size', '30', '--overlap', '10'];
  await run('prepare', 'documents.jsonl', ...split, '--out', 'passages.jsonl', '--quiet');
  await run('index', 'passages.jsonl', '--out', 'index', '--quiet');
  retriever = await openRetriever(join(folder, 'index'), { encoderThreads: 1 });
});

after(() => retriever.close());

const words = (text: string): string => text.split(/\s+/).filter(Boolean).join(' ');

test('documents that were split with an overlap come back whole, by id, by the id of a passage and by URL', async (t) => {
  const app = build(t, retriever);
  const open = async (body: object): Promise<{ docid: string; url: string; text: string }> => {
    const { status, json, text } = await postTo(app, '/open', body);
    assert.equal(status, 200, text);
    return (json as { results: { docid: string; url: string; text: string }[] }).results[0]!;
  };
  for (const { id, url, text } of DOCUMENTS) {
    const expected = { docid: id, url, text: words(text) };
    assert.deepEqual(await open({ docid: id, url: null }), expected);
    assert.deepEqual(await open({ docid: null, url }), expected);
  }
  assert.equal((await open({ docid: '0' })).docid, DOCUMENTS[0]!.id);
});

test('a search returns as many distinct documents as asked for, by their best passage', async (t) => {
  const app = build(t, retriever);
  const query = 'who designed the bridge';
  const { outcomes } = await retriever.retrieve({ queries: [query], k: retriever.info.rows });
  assert.ok(outcomes[0]!.ok);
  const best = new Map<string, { row: number; score: number }>();
  for (const { row, score, document } of outcomes[0]!.hits) {
    const { doc_id } = JSON.parse(document) as { doc_id: string };
    if (!best.has(doc_id)) best.set(doc_id, { row, score });
  }
  const expected = [...best].slice(0, 20);
  const found = (await postTo(app, '/search', { query, k: 20 })).json as {
    results: { docid: string; text: string; score: number }[];
  };
  assert.deepEqual(
    found.results.map(({ docid, score }) => [docid, score]),
    expected.map(([docid, { score }]) => [docid, score]),
  );
  for (const { docid, text } of found.results) {
    assert.equal(text, words(DOCUMENTS.find(({ id }) => id === docid)!.text));
  }
  const native = (await postTo(app, '/v1/search', { queries: [query], k: 20, deduplicate: 'document' })).json as {
    results: { hits: { row: number }[] }[];
  };
  assert.deepEqual(
    native.results[0]!.hits.map(({ row }) => row),
    expected.map(([, { row }]) => row),
  );
});

test('an index without the look-up by document finds documents by their URL', async (t) => {
  await run('index', 'passages.jsonl', '--out', 'older', '--quiet');
  const database = new Database(join(folder, 'older', 'shard-00000', 'passages.sqlite'));
  database.exec('DROP INDEX passages_by_document; VACUUM');
  database.close();
  const older = await openRetriever(join(folder, 'older'), { encoderThreads: 1 });
  t.after(() => older.close());
  const app = build(t, older);
  const { id, url, text } = DOCUMENTS[4]!;
  const opened = async (body: object): Promise<string> =>
    ((await postTo(app, '/open', body)).json as { results: { text: string }[] }).results[0]!.text;
  assert.equal(await opened({ url }), words(text));
  assert.match(await opened({ docid: id }), /No document has the id/);
});
