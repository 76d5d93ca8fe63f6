import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_SERVER_CONFIG } from '../../../src/server/server-config.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { filled, NAMES, SLOW_VALUES, shorter, VALUES } from '../large-values.ts';
import { articleIndex, ask, elasticsearch, type Reply, withoutWords } from './elasticsearch-server.ts';
import { MANUAL, ndjson, succeeded, writableServer } from './writable-server.ts';

const skip = withoutWords;
const SEED = 20_261_124;
/** An error that repeats its request is larger. */
const MAX_ERROR_CHARACTERS = 8_192;
/** One of this many values is of nearly the limit; the others are shorter, which takes less time. */
const FIELDS_PER_LONGEST = 4;
const COLUMNS = [
  { name: 'year', type: 'number' },
  { name: 'tag', type: 'string' },
] as const;
const ARTICLES = [
  { id: 'a', title: 'Vienna', text: 'Vienna, x and a: 1 of the words of the long queries.', year: 1, tag: 'a' },
  { id: 'b', title: 'x', text: 'x '.repeat(2_000), year: 2, tag: 'b' },
];

/** Searches with a place for a value, which has the marks around it. */
const SEARCHES = [
  '{"query":{"match":{"text":$}}}',
  '{"query":{"match":{"text":{"query":$,"operator":"and"}}}}',
  '{"query":{"match":{"text":{"query":"x","minimum_should_match":$}}}}',
  '{"query":{"multi_match":{"query":$,"fields":["title^2","text"]}}}',
  '{"query":{"multi_match":{"query":"x","fields":$}}}',
  '{"query":{"term":{"text":$}}}',
  '{"query":{"term":{"tag":$}}}',
  '{"query":{"terms":{"text":$}}}',
  '{"query":{"terms":{"year":$}}}',
  '{"query":{"range":{"year":{"gte":$}}}}',
  '{"query":{"range":{"year":{"gte":1,"format":$}}}}',
  '{"query":{"ids":{"values":$}}}',
  '{"query":{"exists":{"field":$}}}',
  '{"query":{"bool":{"must":[{"match":{"text":$}}]}}}',
  '{"query":{"bool":{"should":$,"minimum_should_match":1}}}',
  '{"query":{"dis_max":{"queries":$}}}',
  '{"query":$}',
  '{"knn":{"field":"vector","query_vector":$,"k":1,"num_candidates":1}}',
  '{"sort":$}',
  '{"sort":["year"],"search_after":$}',
  '{"_source":$}',
  '{"_source":{"includes":$}}',
  '{"fields":$}',
  '{"highlight":{"fields":$}}',
  '{"query":{"match":{"text":"x"}},"highlight":{"fields":{"text":{"pre_tags":$}}}}',
  '{"query":{"match":{"text":"x"}},"highlight":{"fields":{"text":{}},"fragment_size":$}}',
  '{"size":$}',
  '{"timeout":$}',
  '{"track_total_hits":$}',
  '{"x":$}',
];
const HIGHLIGHT = '"highlight":{"fields":{"*":{"number_of_fragments":0}},"require_field_match":false}';

/** Clauses of nearly the limit, with words that the passages have. */
const CLAUSES: Readonly<Record<string, string>> = {
  'one repeated word': `{"match":{"text":"${'vienna '.repeat(140_000)}"}}`,
  'one repeated word, all needed': `{"match":{"text":{"query":"${'vienna '.repeat(140_000)}","minimum_should_match":"100%"}}}`,
  'different words': `{"match":{"text":"x ${Array.from({ length: 60_000 }, (_, i) => `w${i}`).join(' ')}"}}`,
  'one long word': `{"match":{"text":"x ${'y'.repeat(900_000)}"}}`,
  'long texts in many clauses': `{"bool":{"should":[${Array(4)
    .fill(`{"match":{"text":"${'x vienna '.repeat(110_000)}"}}`)
    .join(',')}]}}`,
  'many clauses': `{"bool":{"should":[${Array(20_000).fill('{"match":{"text":"x"}}').join(',')}]}}`,
  'many needed clauses': `{"bool":{"must":[${Array(20_000).fill('{"match":{"text":"x"}}').join(',')}]}}`,
  'many terms': `{"terms":{"text":[${Array(190_000).fill('"x"').join(',')}]}}`,
};

/** Asserts an answer, or an error of the request that is short. */
function assertUnderstood({ status, text }: Pick<Reply, 'status' | 'text'>, what: string): void {
  assert.ok(status < 500, `${what}: ${status} ${text.slice(0, 300)}`);
  assert.ok(!text.includes('The server failed'), `${what}: ${text.slice(0, 300)}`);
  if (status >= 400) assert.ok(text.length <= MAX_ERROR_CHARACTERS, `${what}: an error of ${text.length} characters`);
}

test('a search with a value of nearly the body limit is answered or refused, and is never a 500', {
  skip,
}, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES, { columns: COLUMNS }));
  const random = seededRandom(SEED);
  for (const [i, search] of SEARCHES.entries()) {
    const name = NAMES[Math.floor(random() * NAMES.length)]!;
    const body = search.replace('$', () => VALUES[name]!(i % FIELDS_PER_LONGEST === 0 ? filled : shorter));
    assertUnderstood(await ask(app, 'POST', '/wiki_en/_search', body), `${search}: ${name}`);
    const text = search.replace('$', () => VALUES['a text']!(shorter));
    assertUnderstood(await ask(app, 'POST', '/wiki_en/_search', text), `${search}: a text`);
  }
  for (const [name, value] of Object.entries(SLOW_VALUES)) {
    assertUnderstood(await ask(app, 'POST', '/wiki_en/_search', `{"query":${value()}}`), name);
  }
  const deep = `{"query":${'{"bool":{"must":['.repeat(500_000)}`;
  assertUnderstood(await ask(app, 'POST', '/wiki_en/_search', deep), 'deep nesting');
});

test('highlighting answers queries of nearly the limit, alone and in a _msearch', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES, { columns: COLUMNS }));
  for (const [name, clause] of Object.entries(CLAUSES)) {
    const body = `{"query":{"bool":{"must":[${clause}]}},${HIGHLIGHT}}`;
    const reply = await ask(app, 'POST', '/wiki_en/_search', body);
    assertUnderstood(reply, name);
    if (reply.status === 200) assert.match(reply.text, /<em>/, name);
    if (!name.startsWith('one')) continue;
    const several = await ask(app, 'POST', '/wiki_en/_msearch', `{}\n${body}\n{}\n{}\n`);
    assertUnderstood(several, name);
    assert.deepEqual([several.json.responses![0]!.status, several.json.responses![1]!.status], [reply.status, 200]);
  }
});

test('a _msearch of nearly the body limit is answered or refused, and is never a 500', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES), { maxQueries: 1_000_000 });
  for (const [header, body] of [
    ['{}', `{"query":{"match":{"text":${VALUES['a text']!()}}}}`],
    [`{"index":${VALUES['a list of empty texts']!()}}`, '{}'],
    [`{"index":${VALUES['a text']!()}}`, '{}'],
    [VALUES['an object with a long name']!(), '{}'],
  ] as const) {
    assertUnderstood(await ask(app, 'POST', '/_msearch', `${header}\n${body}\n`), header.slice(0, 20));
  }
  const line = '{}\n{"size":0}\n';
  const many = line.repeat(2_000);
  assertUnderstood(await ask(app, 'POST', '/wiki_en/_msearch', many), 'many searches');
  const broken = '\n'.repeat(DEFAULT_SERVER_CONFIG.maxBodyBytes - 100);
  assertUnderstood(await ask(elasticsearch(t, await articleIndex(t, ARTICLES)), 'POST', '/_msearch', broken), 'lines');
});

test('a _bulk of nearly the body limit is stored or refused, and what it stored is found and highlighted', {
  skip,
}, async (t) => {
  const { app, failures } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/big', MANUAL));
  const action = '{"index":{"_index":"big","_id":"1"}}';
  const bodies: Readonly<Record<string, string>> = {
    'a long text': `${action}\n{"title":"v","text":${VALUES['a text']!()}}\n`,
    'a long sentence': `{"index":{"_index":"big","_id":"3"}}\n{"title":"v","text":"${'Vienna and some words '.repeat(100_000)}"}\n`,
    'many short sentences': `{"index":{"_index":"big","_id":"2"}}\n{"title":"v","text":"${'Vienna. '.repeat(200_000)}"}\n`,
    'a long name': `${action}\n${VALUES['an object with a long name']!()}\n`,
    'a long id': `{"index":{"_index":"big","_id":${VALUES['a text']!()}}}\n{"text":"x"}\n`,
    'a deep document': `${action}\n{"text":"x","a":${'['.repeat(7e6)}${']'.repeat(7e6)}}\n`,
    'a deep action': `{"index":${'{"a":'.repeat(2e6)}1${'}'.repeat(2e6)}}\n{"text":"x"}\n`,
    'a document of many fields': `${action}\n${SLOW_VALUES['an object of many fields']!()}\n`,
    'many operations': ndjson({ delete: { _index: 'big', _id: 'x' } }).repeat(99_000),
    'too many operations': ndjson({ delete: { _index: 'big', _id: 'x' } }).repeat(200_000),
    'operations without ids': ndjson({ delete: { _index: 'big' } }).repeat(99_000),
    'operations without indexes': ndjson({ delete: { _id: 'x' } }).repeat(99_000),
    'empty lines': '\n'.repeat(DEFAULT_SERVER_CONFIG.maxBodyBytes - 100),
  };
  for (const [name, body] of Object.entries(bodies)) {
    assertUnderstood(await ask(app, 'POST', '/_bulk', body), name);
  }
  succeeded(await ask(app, 'POST', '/big/_refresh'));
  const search = `{"query":{"match":{"text":"vienna"}},"_source":["title"],"highlight":{"fields":{"text":{}}}}`;
  const { json } = succeeded(await ask(app, 'POST', '/big/_search', search));
  const found = json.hits!.hits as unknown as { highlight: { text: string[] } }[];
  assert.deepEqual(
    found.map(({ highlight }) => highlight.text.length),
    [5, 5],
  );
  assert.deepEqual(failures, []);
});
