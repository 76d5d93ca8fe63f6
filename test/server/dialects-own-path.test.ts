import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, postTo } from './build.ts';
import { BRIDGE, CONTENTS, type Pair, SCORES, testPairs, WALKER } from './dialect-pairs.ts';

/** Dialects with a path of their own. */
const PAIRS: readonly Pair[] = [
  {
    what: 'R1-Searcher: lines of a TSV corpus with the id before the tab, and the queries of the request',
    dialect: 'r1-searcher',
    body: { queries: [''] },
    reply: {
      answers: [
        [
          '0\tPaul Walker   An American actor.',
          '1\tBrooklyn Bridge   A bridge.',
          '9007199254740993\t12 bridges   Bridges with\ttabs.',
        ],
      ],
      queries: [''],
    },
    k: 3,
  },
  {
    what: 'R1-Searcher: k 0',
    dialect: 'r1-searcher',
    body: { queries: ['a'], k: 0 },
    reply: { answers: [[]], queries: ['a'] },
  },
  {
    what: 'R1-Searcher: no queries',
    dialect: 'r1-searcher',
    body: { queries: [], k: 5 },
    reply: { answers: [], queries: [] },
    k: 5,
  },
  {
    what: 'ReSearch: only id and contents, ids as strings, ten passages',
    dialect: 'research',
    body: { query: '\u00a0x', top_n: 10 },
    k: 10,
  },
  {
    what: 'ReSearch: with scores an array of two',
    dialect: 'research-batch',
    body: { query: [''], top_n: 2, return_score: true },
    reply: [
      [
        [
          { id: '0', contents: CONTENTS[0] },
          { id: '1', contents: CONTENTS[1] },
        ],
      ],
      [[SCORES[0], SCORES[1]]],
    ],
    k: 2,
  },
  {
    what: 'ReSearch: a blank query in a batch is a query',
    dialect: 'research-batch',
    body: { query: [''], top_n: 3 },
    reply: [
      [
        { id: '0', contents: CONTENTS[0] },
        { id: '1', contents: CONTENTS[1] },
        { id: '9007199254740993', contents: CONTENTS[2] },
      ],
    ],
    k: 3,
  },
  {
    what: 'ReSearch: no queries',
    dialect: 'research-batch',
    body: { query: [] },
    reply: [],
    k: 10,
  },
  {
    what: 'ReSearch: no queries, with scores',
    dialect: 'research-batch',
    body: { query: [], return_score: true },
    reply: [[], []],
    k: 10,
  },
  {
    what: 'ReSearch: top_n 0 returns nothing',
    dialect: 'research',
    body: { query: 'a', top_n: 0 },
    reply: [],
  },
  {
    what: 'ReSearch: top_n 0 with scores',
    dialect: 'research-batch',
    body: { query: ['a', 'b'], top_n: 0, return_score: true },
    reply: [
      [[], []],
      [[], []],
    ],
  },
  {
    what: 'ASearcher’s pages: by URL, by title and by the title in a wiki’s URL; null for an unknown page',
    dialect: 'asearcher-access',
    body: {
      urls: [
        'https://example.org/wiki/Brooklyn_Bridge',
        'Brooklyn Bridge',
        'https://en.wikipedia.org/wiki/Paul_Walker#Life',
        'http://localhost/index.php/Paul%20Walker',
        'http://localhost/w/index.php?oldid=1&title=Paul_Walker',
        'https://example.org/other',
        'nothing',
      ],
    },
    reply: { result: [BRIDGE, BRIDGE, WALKER, WALKER, WALKER, null, null] },
  },
  {
    what: 'ASearcher’s pages: no URLs',
    dialect: 'asearcher-access',
    body: { urls: [] },
    reply: { result: [] },
  },
  {
    what: 'SearchAgent-X: texts, and timings in seconds',
    dialect: 'searchagent-x',
    body: { prompts: ['', ''], top_k: 1, anns_search_range: 100, request_id: 7 },
    reply: {
      neighbor_texts: [[CONTENTS[0]], [CONTENTS[0]]],
      active_threads: 0,
      queued_tasks: 0,
      is_stop_by_stall: false,
      t_embed: 0.00125,
      t_ann: 0.00075,
      t_thread: 0.002,
    },
    k: 1,
  },
  {
    what: 'SearchAgent-X: top_k 0 returns nothing; prompts may be empty',
    dialect: 'searchagent-x',
    body: { prompts: ['a', ''], top_k: 0 },
    reply: {
      neighbor_texts: [[], []],
      active_threads: 0,
      queued_tasks: 0,
      is_stop_by_stall: false,
      t_embed: 0,
      t_ann: 0,
      t_thread: 0,
    },
  },
  {
    what: 'verl-tool: a search, an answer, the end of a trajectory, and an action without a tool',
    dialect: 'verl-tool',
    body: {
      trajectory_ids: ['a', 'b', 'c', 'd'],
      actions: ['<search> </search>', '<answer>Oslo</answer>', '', 'no tags'],
      finish: [false, false, true, false],
      is_last_step: [false, false, true, false],
      extra_fields: [{}, null, { images: ['data:'] }, {}],
    },
    reply: {
      observations: [
        '\n\n<information>Doc 1(Title: "Paul Walker") An American actor.\nDoc 2(Title: "Brooklyn Bridge") A bridge.\n' +
          'Doc 3(Title: 12 bridges   Bridges with\ttabs.)</information>\n\n',
        '',
        '',
        { obs: '', invalid_reason: 'no valid tool found for action' },
      ],
      dones: [false, true, true, false],
      valids: [true, false, true, false],
      processing_time_ms: 4,
    },
    k: 3,
  },
  {
    what: 'TEI: a vector of each text without a prefix; one text has a list too',
    dialect: 'tei-embed',
    body: { inputs: 'abc', truncate: true },
    reply: [[3, 97, 98, 99]],
  },
  {
    what: 'TEI at the root: prompt_name chooses the prefix',
    dialect: 'tei-embed-root',
    body: { inputs: ['abc', 'äbc'], prompt_name: 'document' },
    reply: [
      [12, 112, 97, 115],
      [12, 112, 97, 115],
    ],
  },
  {
    what: 'Serper: a page by the link of a hit, once more as markdown on request',
    dialect: 'serper-scrape',
    body: { url: 'https://example.org/wiki/Brooklyn_Bridge#history', includeMarkdown: true },
    reply: { text: 'A bridge.', markdown: 'A bridge.', metadata: { title: 'Brooklyn Bridge' }, credits: 1 },
  },
  {
    what: 'Serper: a page of a passage without a URL',
    dialect: 'serper-scrape',
    body: { url: 'trawl://fake-sample/0' },
    reply: { text: 'An American actor.', metadata: { title: 'Paul Walker' }, credits: 1 },
  },
  {
    what: 'Serper: a search of papers has links where its clients read them',
    dialect: 'serper-scholar',
    body: { q: '', num: 1, page: 2 },
    reply: {
      searchParameters: { q: '', type: 'scholar', num: 1, page: 2 },
      organic: [
        {
          title: 'Brooklyn Bridge',
          link: 'https://example.org/wiki/Brooklyn_Bridge',
          pdfUrl: 'https://example.org/wiki/Brooklyn_Bridge',
          snippet: 'A bridge.',
        },
      ],
    },
    k: 2,
  },
  {
    what: 'verl-tool: no actions',
    dialect: 'verl-tool',
    body: { trajectory_ids: [], actions: [] },
    reply: { observations: [], dones: [], valids: [], processing_time_ms: 4 },
    k: 3,
  },
  {
    what: 'ReSearch: numbers and booleans are parsed laxly, unknown fields are ignored',
    dialect: 'research',
    body: { query: 'a', top_n: '0', return_score: 'yes', user: 'x' },
    reply: [[], []],
  },
  {
    what: 'ReSearch: ten passages by default',
    dialect: 'research-batch',
    body: { query: ['a', 'b'], return_score: false },
    k: 10,
  },
  {
    what: 'R1-Searcher: an empty, a blank and a repeated query have a list each',
    dialect: 'r1-searcher',
    body: { queries: ['', '', ''], k: 1 },
    reply: { answers: Array(3).fill(['0\tPaul Walker   An American actor.']), queries: ['', '', ''] },
    k: 1,
  },
];

testPairs(PAIRS);

test('R1-Searcher: a line of R1-Searcher’s corpora is returned character for character', async (t) => {
  const lines = [
    '0\tTitle: 1984 Text:  1984 is a novel.',
    '1\t"Title: ""Quoted"" Text:  He said ""no"" twice."',
    '2\tA   A A (named , plural As',
    '3\t   leading, trailing and    many spaces   ',
    '4\ta tab\there, \u2028 and \u0085 there',
    '5\t',
  ];
  const documents = lines.map((line) => {
    const [id, ...rest] = line.split('\t');
    return JSON.stringify({ id: Number(id), contents: rest.join('\t') });
  });
  const app = build(t, new FakeRetriever({ documents }));
  const { json } = await postTo(app, '/queries', { queries: [''], k: 6 });
  assert.deepEqual((json as { answers: string[][] }).answers, [lines]);
});

test('ReSearch: a passage without an id gets its row number, and other columns are left out', async (t) => {
  const documents = ['{"text":"a","title":"A","url":"u"}', '{"id":null,"contents":"b"}', '{"id":1.5,"contents":"c"}'];
  const app = build(t, new FakeRetriever({ documents }));
  const { json } = await postTo(app, '/batch_search', { query: [''], top_n: 3 });
  assert.deepEqual(json, [
    [
      { id: '0', contents: '"A"\na' },
      { id: '1', contents: 'b' },
      { id: '1.5', contents: 'c' },
    ],
  ]);
});

test('passages with the same URL form one page under their title', async (t) => {
  const url = 'https://example.org/p';
  const rows = ['One.', 'Two.'].map((words, i) => JSON.stringify({ id: i, url, contents: `"Page"\n${words}` }));
  const apart = [JSON.stringify({ id: 'x', url: 'u', contents: 'No title.' }), JSON.stringify({ url: 'u', text: 'B' })];
  const app = build(t, new FakeRetriever({ documents: [...rows, ...apart] }));
  const { json } = await postTo(app, '/access', { urls: [url, 'u', 'Page'] });
  const page = { url, title: 'Page', contents: '"Page"\nOne.\nTwo.', passages: [0, 1] };
  assert.deepEqual(json, { result: [page, { url: 'u', contents: 'No title.\nB', passages: ['x', null] }, page] });
});

test('/health has the fields that all its clients read, and is a 503 until the index is open', async (t) => {
  const holder = new IndexRegistry();
  const app = build(t, holder);
  const starting = await app.inject('/health');
  assert.equal(starting.statusCode, 503);
  assert.deepEqual(starting.json(), {
    status: 'starting',
    retrievers: { total: 1, available: 0 },
    index_loaded: false,
  });
  holder.ready(new FakeRetriever());
  const ready = await app.inject('/health');
  assert.equal(ready.statusCode, 200);
  assert.deepEqual(ready.json(), {
    status: 'healthy',
    retrievers: { total: 1, available: 1 },
    index_loaded: true,
    corpus_size: 5,
    retrieval_method: 'fake-encoder',
  });
});

test('Serper: the year of a paper comes from its date', async (t) => {
  const dates = ['2024-03-01', '1999', 'March 2001', '20240301'];
  const documents = dates.map((date, i) => JSON.stringify({ id: `${i}`, title: 'T', text: 'x', date }));
  const { json } = await postTo(build(t, new FakeRetriever({ documents })), '/scholar', { q: '' });
  const { organic } = json as { organic: { year?: number }[] };
  assert.deepEqual(
    organic.map(({ year }) => year),
    [2024, 1999, undefined, undefined],
  );
});
