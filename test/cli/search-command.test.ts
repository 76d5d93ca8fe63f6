import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { tempFolder } from '../helpers/temp-folder.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE, sampleIndex } from './run-trawl.ts';

const folder = await fileFolder();
let index: string;
before(async () => {
  index = await sampleIndex(folder);
});

interface SearchReport {
  readonly tokens: number;
  readonly truncated: boolean;
  readonly timings: { readonly queue: number; readonly embed: number; readonly search: number; readonly fetch: number };
  readonly hits: readonly {
    readonly row: number;
    readonly score: number;
    readonly document: { readonly id: string; readonly title: string; readonly text: string };
  }[];
}

const QUERY = 'designer of the Brooklyn Bridge';

test('search prints ranked passages with score, title, id and text, and the times on stderr', async () => {
  const { code, stdout, stderr } = await runTrawl(['search', index, QUERY, '--k', '2']);
  assert.equal(code, 0);
  const [first, text, second, , end] = stdout.split('\n');
  assert.match(first!, /^1\. 0\.\d{4} {2}Brooklyn Bridge {2}\(id s-0001\)$/);
  assert.match(text!, /^ {3}The Brooklyn Bridge is /);
  assert.match(second!, /^2\. 0\.\d{4} /);
  assert.equal(end, '');
  assert.match(stderr, /^embed .*ms, search .*ms, fetch .*ms\n$/);
});

test('--json prints the documents as they are in the corpus', async () => {
  const { tokens, truncated, timings, hits } = jsonOf<SearchReport>(
    await runTrawl(['search', index, QUERY, '--k', '3', '--json', '--quiet']),
  );
  assert.ok(tokens > 2);
  assert.equal(truncated, false);
  assert.deepEqual(Object.keys(timings), ['queue', 'embed', 'search', 'fetch', 'rerank']);
  assert.equal(hits.length, 3);
  const corpus = readFileSync(join(SAMPLE, 'passages.jsonl'), 'utf8').split('\n');
  for (const { row, score, document } of hits) {
    assert.deepEqual(document, JSON.parse(corpus[row]!));
    assert.equal(score, Math.fround(score));
  }
  assert.ok(hits[0]!.score >= hits[1]!.score && hits[1]!.score >= hits[2]!.score);
});

test('a k larger than the index returns every passage once', async () => {
  const { hits } = jsonOf<SearchReport>(await runTrawl(['search', index, QUERY, '--k', '9007199254740991', '--json']));
  assert.equal(new Set(hits.map(({ row }) => row)).size, 270);
  assert.equal(hits.length, 270);
});

test('--question embeds "question [SEP] query"', async () => {
  const question = 'Where was the designer of the Sydney Opera House born?';
  const run = async (...args: string[]): Promise<SearchReport['hits']> =>
    jsonOf<SearchReport>(await runTrawl(['search', index, ...args, '--json'])).hits;
  const pair = await run('birthplace of the architect', '--question', question);
  assert.deepEqual(pair, await run(`${question} [SEP] birthplace of the architect`));
  assert.notDeepEqual(pair, await run('birthplace of the architect'));
});

test('a query that is too long is truncated with a warning', async () => {
  const { stderr } = await runTrawl(['search', index, 'word '.repeat(1000), '--k', '1']);
  assert.match(stderr, /The query was truncated to 256 tokens\.\n$/);
});

test('--queries writes one line of hits per query, equal to the hits of single searches', async (t) => {
  const cwd = await tempFolder(t);
  const questions = [
    { id: 'a', question: 'Who designed the Brooklyn Bridge?' },
    { id: 7, question: 'Where was he born?', query: 'birthplace of John A. Roebling' },
  ];
  writeFileSync(join(cwd, 'q.jsonl'), questions.map((question) => `${JSON.stringify(question)}\n`).join(''));
  const args = ['search', index, '--queries', 'q.jsonl', '--out', 'hits.jsonl', '--k', '2'];
  const text = await runTrawl(args, { cwd });
  const stderr = 'searching\nhits.jsonl: hits of 2 queries\n';
  assert.deepEqual(text, { code: 0, signal: null, stdout: '', stderr });
  const report = { out: 'hits.jsonl', queries: 2, k: 2, resumed: 0, failed: 0 };
  assert.deepEqual(jsonOf(await runTrawl([...args, '--json', '--restart'], { cwd })), report);
  const found = readFileSync(join(cwd, 'hits.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
  const single = async (...query: string[]): Promise<unknown> => {
    const { hits } = jsonOf<SearchReport>(await runTrawl(['search', index, ...query, '--k', '2', '--json']));
    return hits.map(({ row, score, document }) => ({ row, id: document.id, score }));
  };
  assert.deepEqual(found, [
    { id: 'a', hits: await single('Who designed the Brooklyn Bridge?') },
    { id: '7', hits: await single('birthplace of John A. Roebling', '--question', 'Where was he born?') },
  ]);
});

test('a queries file that is missing or lacks sub-queries is refused before the output is written', async (t) => {
  const cwd = await tempFolder(t);
  const missing = await runTrawl(['search', index, '--queries', 'none.jsonl', '--out', 'hits.jsonl'], { cwd });
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /Cannot read none\.jsonl: .*no such file/);
  assert.equal(existsSync(join(cwd, 'hits.jsonl')), false);
  writeFileSync(join(cwd, 'q.jsonl'), '{"id": "a", "question": "q"}\n');
  const form = ['search', index, '--queries', 'q.jsonl', '--out', 'hits.jsonl', '--query-form', 'query'];
  const { code, stderr } = await runTrawl(form, { cwd });
  assert.equal(code, 2);
  assert.match(stderr, /Question a has no "query", which --query-form query needs on every line/);
});

test('an output file that cannot be written is named with the reason', async () => {
  const args = ['search', index, '--queries', join(SAMPLE, 'questions.jsonl'), '--out'];
  const missing = await runTrawl([...args, '/nonexistent/hits.jsonl']);
  assert.equal(missing.code, 1);
  assert.match(
    missing.stderr,
    /^trawl: \/nonexistent\/hits\.jsonl cannot be written: .*parent folder.*\[OUTPUT_NOT_WRITABLE\]\n$/,
  );
  if (existsSync('/dev/full')) {
    assert.match(
      (await runTrawl([...args, '/dev/full'])).stderr,
      /^(?:searching\n)?trawl: \/dev\/full: no space left.*\[DISK_FULL\]\n$/,
    );
  }
});

test('an encoder other than that of the index is refused, and the error names both', async (t) => {
  const { toyModel } = await import('../encoder/model-fixtures.ts');
  const { code, stderr } = await runTrawl(['search', index, QUERY, '--model', await toyModel(t)]);
  assert.equal(code, 1);
  assert.match(stderr, /built with token-average-256, but the query encoder is toy\. .*sha256.*\[MODEL_MISMATCH\]/);
});
