import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { buildApp } from '../../src/server/app.ts';
import { listen } from '../../src/server/connections/listen.ts';
import { NAMEABLE_DIALECTS, SEARCH_DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { FakeReranker } from '../helpers/fake-reranker.ts';
import { fileFolder, runTrawl } from './run-trawl.ts';

/** Every line has a word of its own, which is a golden answer. Every passage has the word of the questions. */
const PASSAGES = [
  { id: 'quoted', contents: '"Alphatitle"\nalphabody passage' },
  { id: 'unquoted', contents: 'Bravotitle\nbravobody passage\nbravolast' },
  { id: 'one line', contents: 'charlie passage' },
  { id: 'columns', title: 'Deltatitle', text: 'deltabody passage\ndeltalast' },
  {
    id: 'all columns',
    title: 'Hoteltitle',
    text: 'hotelbody passage\nhotellast',
    contents: 'hotelfirst\nhotelrest passage',
  },
  { id: 'text alone', text: 'echofirst passage\necholast' },
  { id: 'text alone, one line', text: 'india passage' },
  { id: 'title repeated', title: 'Foxtrottitle', text: 'Foxtrottitle\nfoxtrotbody passage' },
  { id: 'title repeated in quotes', title: 'Golftitle', text: '"Golftitle"\ngolfbody passage' },
];
const WORDS = [
  ...new Set(
    PASSAGES.flatMap(({ id: _, ...columns }) => Object.values(columns).flatMap((text) => text.match(/\w+/g) ?? [])),
  ),
].filter((word) => word !== 'passage');
/** Words that are only in titles, and only in a `contents` beside a `text`. */
const IN_TITLES = ['Alphatitle', 'Bravotitle', 'Deltatitle', 'Hoteltitle'];
const IN_CONTENTS_ALONE = ['hotelfirst', 'hotelrest'];

const cwd = await fileFolder();
const index = join(cwd, 'index');
const apps: ReturnType<typeof buildApp>[] = [];
let retriever: OpenRetriever;

function write(name: string, rows: readonly object[]): string {
  const path = join(cwd, name);
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return path;
}

before(async () => {
  const corpus = write('corpus.jsonl', PASSAGES);
  const built = await runTrawl(['index', corpus, '--out', index, '--model', 'token-average-256', '--bm25', '--quiet']);
  assert.equal(built.code, 0, built.stderr);
  retriever = await openRetriever(index, { encoderThreads: 1, reranker: new FakeReranker({ score: () => 1 }) });
});

after(async () => {
  for (const app of apps) {
    app.server.closeAllConnections();
    await app.close();
  }
  await retriever.close();
});

test('the same answers stand in the texts of an index and of its servers, whatever columns the passages have', async () => {
  const dialects = SEARCH_DIALECTS.filter(({ client }) => !client.hit.includes('excerpt'));
  const questions = write(
    'questions.jsonl',
    WORDS.map((word) => ({ id: word, question: 'passage', golden_answers: [word] })),
  );
  const k = PASSAGES.length;
  const compared: string[] = [];
  for (const { name } of dialects) {
    const app = buildApp(retriever, { topk: k, dialects: NAMEABLE_DIALECTS.includes(name) ? [name] : [] });
    apps.push(app);
    const url = await listen(app, { host: '127.0.0.1', port: 0 });
    const place = name === 'elasticsearch' ? `${url}/${retriever.info.index}` : url;
    compared.push('--compare', `${name}=${place}?dialect=${name}`);
  }
  const file = join(cwd, 'per-question.jsonl');
  const asked = ['eval', index, '--queries', questions, '--cutoffs', String(k), '--per-question', file];
  const ended = await runTrawl([...asked, ...compared, '--json']);
  assert.equal(ended.code, 0, ended.stderr);

  const found = new Map<string, string[]>();
  for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) {
    const { system, id, metrics } = JSON.parse(line) as { system: string; id: string; metrics: Record<string, number> };
    const words = found.get(system) ?? [];
    found.set(system, words);
    if (metrics[`answer_hit@${k}`] === 1) words.push(id);
  }
  const own = WORDS.filter((word) => !IN_TITLES.includes(word) && !IN_CONTENTS_ALONE.includes(word));
  assert.deepEqual(found.get(index), own);
  for (const { name, client } of dialects)
    assert.deepEqual(found.get(name), client.hit.includes('contents') ? oneText(name) : own, name);
});

/**
 * The words found where a hit has one text that is `contents` or `text`, and does not show which: the first of several lines counts as the
 * title, and of a passage with `contents`, `title` and `text` the hit has `contents`.
 */
function oneText(name: string): string[] {
  const asColumn = name === 'ds-serve';
  const missing = [...IN_TITLES, 'hotelbody', 'hotellast', ...(asColumn ? [] : ['echofirst', 'hotelfirst'])];
  return WORDS.filter((word) => !missing.includes(word) || (asColumn && word === 'Bravotitle'));
}
