import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import Value from 'typebox/value';
import { buildApp } from '../../../src/server/app.ts';
import { DIALECTS } from '../../../src/server/dialects/dispatch.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { numbered } from '../../indexer/prepare/documents.ts';
import { build, errorOf, getFrom, postTo } from '../build.ts';

const URL_OF_A = 'https://example.org/a';

/** Document a in two passages with an overlap of two words, between which b ranks; b has no URL; c has no document. */
const ROWS = [
  {
    id: 'a-1',
    title: 'Ants',
    text: 'ants like sugar and honey',
    doc_id: 'a',
    passage: 1,
    url: URL_OF_A,
    overlap: 2,
  },
  { id: 'b-0', title: 'Bees', text: 'Bees fly.', doc_id: 7, passage: 0 },
  { id: 'a-0', title: 'Ants', text: 'There are many ants like', doc_id: 'a', passage: 0, url: URL_OF_A },
  { id: 'c', contents: '"Cows"\nCows eat grass.' },
  { text: 'No title.' },
].map((row) => JSON.stringify(row));
const ANTS = 'There are many ants like sugar and honey';

const scores = (...ranks: number[]): number[] => ranks.map((rank) => Math.fround(0.9 - rank / 10));

/** The reply's JSON, which must match the schema of its dialect. */
async function ask(rows: readonly string[], name: string, body: object, topk = 3): Promise<unknown> {
  const { method, path, reply, onlyIfNamed } = DIALECTS.find((dialect) => dialect.name === name)!;
  const app = buildApp(new FakeRetriever({ documents: rows }), {
    topk,
    dialects: onlyIfNamed ? [name] : [],
  });
  try {
    const { status, json, text } = method === 'GET' ? await getFrom(app, path, body) : await postTo(app, path, body);
    assert.equal(status, 200, text);
    assert.ok(Value.Check(reply, json), text);
    return json;
  } finally {
    await app.close();
  }
}

test('FoldAgent gets distinct documents with their text from its beginning, by their best passage', async () => {
  const { results, took_ms } = (await ask(ROWS, 'foldagent', { query: '', k: 4 })) as {
    results: object[];
    took_ms: number;
  };
  const [first, second, third, fourth] = scores(0, 1, 3, 4);
  assert.deepEqual(results, [
    { docid: 'a', url: URL_OF_A, text: ANTS, score: first },
    { docid: '7', url: 'trawl://fake-sample/b-0', text: 'Bees fly.', score: second },
    { docid: 'c', url: 'trawl://fake-sample/c', text: 'Cows eat grass.', score: third },
    { docid: 'row 4', url: 'trawl://fake-sample/row%204', text: 'No title.', score: fourth },
  ]);
  assert.ok(took_ms > 0);
  assert.deepEqual(((await ask(ROWS, 'foldagent', { query: '', k: 1 })) as { results: object[] }).results.length, 1);
  assert.deepEqual(((await ask(ROWS, 'foldagent', { query: '', k: 0 })) as { results: object[] }).results, []);
});

test('FoldAgent’s texts are cut to a thousand words, and a text of exactly that length has no notice', async () => {
  for (const [words, cut] of [
    [1_000, false],
    [1_001, true],
  ] as const) {
    const rows = [JSON.stringify({ id: 'x', text: numbered(words) })];
    const { results } = (await ask(rows, 'foldagent', { query: '', k: 1 })) as { results: { text: string }[] };
    assert.equal(results[0]!.text, `${numbered(1_000)}${cut ? '\n[Document is truncated.]' : ''}`);
    const open = (await ask(rows, 'foldagent-open', { docid: 'x' })) as { results: { text: string }[] };
    assert.equal(open.results[0]!.text, numbered(words));
  }
});

test('FoldAgent opens a document by its id, the id of a passage, a URL of a hit, and docid before url', async () => {
  const open = async (body: object): Promise<unknown> =>
    ((await ask(ROWS, 'foldagent-open', body)) as { results: unknown[] }).results[0];
  const ants = { docid: 'a', url: URL_OF_A, text: ANTS };
  assert.deepEqual(await open({ docid: 'a', url: null }), ants);
  assert.deepEqual(await open({ docid: 'a-1', url: null }), ants);
  assert.deepEqual(await open({ docid: null, url: URL_OF_A }), ants);
  assert.deepEqual(await open({ docid: 'a', url: 'trawl://fake-sample/c' }), ants);
  for (const row of [1, 3, 4]) {
    const { docid, url } = (
      (await ask(ROWS, 'foldagent', { query: '', k: 5 })) as { results: { docid: string; url: string }[] }
    ).results.at([0, 1, 1, 2, 3][row]!)!;
    const byUrl = await open({ url });
    assert.equal((byUrl as { docid: string }).docid, docid);
    assert.deepEqual(await open({ docid }), byUrl);
  }
});

test('an unknown document is a text for FoldAgent’s model', async () => {
  const open = async (body: object): Promise<unknown> =>
    ((await ask(ROWS, 'foldagent-open', body)) as { results: unknown[] }).results[0];
  assert.deepEqual(await open({ docid: 'z', url: null }), {
    docid: 'z',
    url: null,
    text: 'No document has the id "z". Open a docid of the search results.',
  });
  assert.deepEqual(await open({ docid: null, url: `${URL_OF_A}/` }), {
    docid: null,
    url: `${URL_OF_A}/`,
    text: `No document has the URL "${URL_OF_A}/". Open a URL of the search results.`,
  });
});

test('OpenResearcher gets URL, title and a short summary, and opens pages by URL or title', async () => {
  const long = JSON.stringify({
    id: 'l',
    title: 'Long',
    text: `${'filler '.repeat(100)}glacier ${'more '.repeat(100)}`,
  });
  const { results } = (await ask([...ROWS, long], 'openresearcher', { query: '', topn: 5 })) as {
    results: { url: string; summary: string }[];
  };
  assert.deepEqual(results[0], { url: URL_OF_A, title: 'Ants', summary: 'ants like sugar and honey' });
  assert.equal(results.length, 5);
  assert.ok(results[4]!.summary.length <= 180);
  const open = (url: string) => ask(ROWS, 'openresearcher-content', { url });
  for (const url of [URL_OF_A, 'trawl://fake-sample/a-0', 'Ants', 'https://en.wikipedia.org/wiki/Ants']) {
    assert.deepEqual(await open(url), { title: 'Ants', content: ANTS }, url);
  }
  assert.deepEqual(await open('trawl://fake-sample/row%204'), { title: 'row 4', content: 'No title.' });
});

test('a page that OpenResearcher does not find is a 404, and FoldAgent’s empty request a 422', async (t) => {
  const app = build(t, new FakeRetriever({ documents: ROWS }), { maxK: 100 });
  const cases: readonly [path: string, body: unknown, status: number, code: string][] = [
    ['/get_content', { url: 'https://example.org/none' }, 404, 'NOT_FOUND'],
    ['/get_content', {}, 422, 'INVALID_REQUEST'],
    ['/open', {}, 422, 'INVALID_REQUEST'],
    ['/open', { docid: 7 }, 422, 'INVALID_REQUEST'],
    ['/search', { query: 'a', k: 101 }, 422, 'K_TOO_LARGE'],
    ['/search', { query: 'a', k: -1 }, 422, 'INVALID_REQUEST'],
    ['/search', { query: ['a'], topn: 2 }, 422, 'INVALID_REQUEST'],
  ];
  for (const [path, body, status, code] of cases) {
    const answer = await postTo(app, path, body);
    assert.deepEqual([answer.status, errorOf(answer.json).code], [status, code], `${path} ${JSON.stringify(body)}`);
  }
  const bad = await getFrom(app, '/search', { k: 2 });
  assert.deepEqual([bad.status, errorOf(bad.json).code], [422, 'INVALID_REQUEST']);
  const large = await getFrom(app, '/search', { query: 'a', k: 101 });
  assert.deepEqual([large.status, errorOf(large.json).code], [422, 'K_TOO_LARGE']);
});

test('DeepResearchGym’s results are JSON in base64', async () => {
  const { results } = (await ask(ROWS, 'deep-research-gym', { query: '', k: '2' })) as { results: string[] };
  const pages = results.map((each) => JSON.parse(Buffer.from(each, 'base64').toString()) as unknown);
  const hash = (url: string): string => createHash('sha256').update(url).digest('hex').slice(0, 32).toUpperCase();
  assert.deepEqual(pages, [
    { URL: URL_OF_A, 'URL-hash': hash(URL_OF_A), 'ClueWeb22-ID': 'a', 'Clean-Text': `Ants\n${ANTS}` },
    {
      URL: 'trawl://fake-sample/b-0',
      'URL-hash': hash('trawl://fake-sample/b-0'),
      'ClueWeb22-ID': '7',
      'Clean-Text': 'Bees\nBees fly.',
    },
  ]);
});

test('BrowseComp-Plus gets a flat list of documents, as many as --topk, with the title of their front matter', async () => {
  const front = JSON.stringify({ id: 'f', text: '---\ntitle: In front\ndate: 2024\n---\nThe text.' });
  assert.deepEqual(await ask([...ROWS.slice(0, 3), front], 'browsecomp-plus', { query: '' }), {
    result: [
      { document: { title: 'Ants', text: ANTS }, docid: 'a' },
      { document: { title: 'Bees', text: 'Bees fly.' }, docid: '7' },
      { document: { title: 'In front', text: 'The text.' }, docid: 'f' },
    ],
  });
  const one = (await ask(ROWS, 'browsecomp-plus', { query: '' }, 1)) as { result: unknown[] };
  assert.equal(one.result.length, 1);
});

test('a search for documents goes deeper until it has found enough of them', async (t) => {
  const rows = Array.from({ length: 200 }, (_, i) =>
    JSON.stringify({ id: i, text: `text ${i}`, doc_id: Math.floor(i / 50), passage: i % 50 }),
  );
  const retriever = new FakeRetriever({ documents: rows });
  const app = build(t, retriever);
  const { json } = await postTo(app, '/search', { query: '', k: 4 });
  const { results } = json as { results: { docid: string; text: string }[] };
  assert.deepEqual(
    results.map(({ docid }) => docid),
    ['0', '1', '2', '3'],
  );
  assert.equal(results[0]!.text, Array.from({ length: 50 }, (_, i) => `text ${i}`).join(' '));
  assert.ok(retriever.calls.length > 1);
  const native = await postTo(app, '/v1/search', { queries: [''], k: 4, deduplicate: 'document' });
  assert.deepEqual(
    (native.json as { results: { hits: { id: number }[] }[] }).results[0]!.hits.map(({ id }) => id),
    [0, 50, 100, 150],
  );
});

test('passages with the same URL or title form a document if they have no id of one', async () => {
  const rows = [
    { id: 1, url: 'u', title: 'T', text: 'one' },
    { id: 2, title: 'V', text: 'two' },
    { id: 3, url: 'u', title: 'T', text: 'three' },
    { id: 4, contents: '"V"\nfour' },
  ].map((row) => JSON.stringify(row));
  const { results } = (await ask(rows, 'foldagent', { query: '', k: 4 })) as { results: { text: string }[] };
  assert.deepEqual(
    results.map(({ text }) => text),
    ['one\nthree', 'two\nfour'],
  );
});
