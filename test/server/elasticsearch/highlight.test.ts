import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LexicalQuery } from '../../../src/engine/lexical/lexical-query.ts';
import { fragmentsOf } from '../../../src/server/elasticsearch/highlight/highlight-passage.ts';
import { analysedQuery, matchedWords } from '../../../src/server/elasticsearch/highlight/matched-words.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { type Article, articleIndex, ask, elasticsearch, type Json, withoutWords } from './elasticsearch-server.ts';

const skip = withoutWords;
const LONG =
  'The Danube rises in Germany. It flows through Vienna, and later through Budapest. Nothing of note follows here. ' +
  'Other rivers are shorter. Vienna is old; Vienna is large.';
const ARTICLES: readonly Article[] = [
  { id: 'a', title: 'Danube river', text: "  The river's name is <Danube> & old.\n" },
  { id: 'b', title: 'Vienna', text: LONG },
  { id: 'c', title: 'river', text: 'no match' },
];

async function highlights(
  app: Parameters<typeof ask>[0],
  query: object,
  highlight: object,
): Promise<Record<string, Json>> {
  const { status, json, text } = await ask(app, 'POST', '/wiki_en/_search', { query, highlight, _source: false });
  assert.equal(status, 200, text);
  const hits = json.hits!.hits as unknown as { _id: string; highlight?: Json }[];
  return Object.fromEntries(hits.flatMap(({ _id, highlight: found }) => (found === undefined ? [] : [[_id, found]])));
}

const whole = { number_of_fragments: 0, fields: { '*': {} } };

test('the words of the clauses that match are highlighted, in the field of the clause', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const text = (found: Record<string, Json>, id = 'a'): unknown => found[id]?.text?.[0];
  const river = await highlights(app, { match: { text: 'DANUBE old' } }, whole);
  assert.equal(text(river), "  The river's name is <<em>Danube</em>> & <em>old</em>.\n");
  assert.deepEqual(Object.keys(river.a as object), ['text'], 'the title has the word, too');
  const multi = await highlights(app, { multi_match: { query: 'danube' } }, whole);
  assert.deepEqual(multi.a, {
    title: ['<em>Danube</em> river'],
    text: ["  The river's name is <<em>Danube</em>> & old.\n"],
  });
  const bool = {
    should: [
      { bool: { must: [{ term: { text: 'danube' } }, { term: { text: 'absent' } }] } },
      { term: { text: 'name' } },
    ],
    filter: [{ term: { title: 'danube' } }],
    must_not: [{ term: { text: 'vienna' } }],
  };
  assert.equal(text(await highlights(app, { bool }, whole)), "  The river's <em>name</em> is <Danube> & old.\n");
  const filtered = { bool: { filter: [{ terms: { text: ['name', 'old', 'x'] } }] } };
  assert.equal(
    text(await highlights(app, filtered, whole)),
    "  The river's <em>name</em> is <Danube> & <em>old</em>.\n",
  );
  assert.deepEqual(await highlights(app, { match_all: {} }, whole), {});
  assert.deepEqual(await highlights(app, { ids: { values: ['a'] } }, whole), {});
  const ids = { bool: { must: [{ ids: { values: ['a'] } }], should: { match: { text: 'name' } } } };
  assert.equal(text(await highlights(app, ids, whole)), "  The river's <em>name</em> is <Danube> & old.\n");
});

test('tags, HTML, and words of other fields are options, of one field or all', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const query = { match: { title: 'danube' } };
  const options = { pre_tags: ['<b>', '<i>'], post_tags: ['</b>'], encoder: 'html', number_of_fragments: 0 };
  const both = {
    ...options,
    require_field_match: false,
    fields: [{ text: {} }, { title: { pre_tags: '[', post_tags: ']' } }],
  };
  assert.deepEqual((await highlights(app, query, both)).a, {
    title: ['[Danube] river'],
    text: ['  The river&#x27;s name is &lt;<b>Danube</b>&gt; &amp; old.\n'],
  });
  assert.deepEqual(await highlights(app, query, { ...options, fields: { text: {} } }), {});
});

test('fragments are sentences of about the wanted size, the best ones in the order of the text', {
  skip,
}, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const query = { match: { text: 'vienna budapest' } };
  const fragments = async (options: object): Promise<unknown> =>
    (await highlights(app, query, { fields: { text: { fragment_size: 30, ...options } } })).b!.text;
  const [second, last] = [
    'flows through <em>Vienna</em>, and later through <em>Budapest</em>.',
    '<em>Vienna</em> is old; <em>Vienna</em> is large.',
  ];
  assert.deepEqual(await fragments({ fragment_size: 0 }), [`It ${second}`, last]);
  assert.deepEqual(await fragments({ fragment_size: 0, number_of_fragments: 1 }), [`It ${second}`]);
  const found = (await fragments({})) as string[];
  assert.ok(found.length >= 2 && found.every((each) => each.replace(/<\/?em>/g, '').length <= 60), found.join('|'));
  assert.equal(found.join('').split('<em>').length - 1, 4, 'every word is in one fragment');
  const byScore = (await fragments({ fragment_size: 0, order: 'score' })) as string[];
  assert.deepEqual(byScore, [`It ${second}`, last]);
});

test('fragments of short sentences are those of Elasticsearch 8.17.1, without space at their ends', {
  skip,
}, async (t) => {
  const text = ' \n a b c. Second a sentence here. \n ';
  const app = elasticsearch(t, await articleIndex(t, [{ id: '1', title: 't', text }]));
  for (const [options, expected] of [
    [{}, ['<em>a</em> b c. Second <em>a</em> sentence here.']],
    [{ fragment_size: 8 }, ['<em>a</em> b c.', 'Second <em>a</em>']],
    [{ fragment_size: 0 }, ['<em>a</em> b c.', 'Second <em>a</em> sentence here.']],
  ] as const) {
    const found = await highlights(app, { match: { text: 'a' } }, { fields: { text: options } });
    assert.deepEqual(found['1']!.text, expected, JSON.stringify(options));
  }
});

test('fragments do not overlap, hold all of their marks, and begin and end within the text', () => {
  const text = LONG.repeat(3);
  const marks = [...text.matchAll(/\b(?:Vienna|is|Other)\b/g)].map(({ index, 0: term }) => ({
    start: index,
    end: index + term.length,
    term,
  }));
  for (const size of [0, 1, 10, 40, 100, 250, 5_000]) {
    const fragments = fragmentsOf(text, marks, size);
    assert.equal(
      fragments.reduce((sum, fragment) => sum + fragment.marks.length, 0),
      marks.length,
    );
    let end = 0;
    for (const fragment of fragments) {
      assert.ok(fragment.start >= end && fragment.end <= text.length, `size ${size}`);
      assert.ok(fragment.marks.every(({ start }) => start >= fragment.start && start < fragment.end));
      end = fragment.end;
    }
  }
});

test('a text that repeats a word more often than a call may have arguments is highlighted', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const text = 'danube '.repeat(140_000);
  for (const clause of ['must', 'should', 'filter']) {
    const bool = { [clause]: [{ match: { text: { query: text, minimum_should_match: '100%' } } }] };
    const found = await highlights(app, { bool }, whole);
    assert.deepEqual(found['a']!.text, ["  The river's name is <<em>Danube</em>> & old.\n"], clause);
  }
});

test('a text of a query is analysed once, however many clauses have it, and its words are returned once', async () => {
  const match = { type: 'match', field: 'text', text: 'old river old' } as const;
  const query = { type: 'bool', must: [match, { type: 'dis-max', queries: [match, match] }] } as const;
  const texts = await analysedQuery(query, 'standard', new AbortController().signal);
  assert.deepEqual(Object.fromEntries(texts.get('old river old')!), { old: 2, river: 1 });
  const passage = { row: 0, has: (_: string, term: string) => term === 'old' };
  assert.deepEqual(matchedWords(match, texts, passage), [{ field: 'text', term: 'old' }]);
  assert.equal(
    matchedWords({ ...match, minimumShouldMatch: 2 }, texts, passage)?.length,
    1,
    'repeated ones count each',
  );
  assert.equal(matchedWords({ ...match, minimumShouldMatch: 3 }, texts, passage), undefined);
  const aborted = analysedQuery({ type: 'bool', must: manyTexts() }, 'standard', AbortSignal.abort());
  await assert.rejects(aborted, trawlError('CANCELLED'));
});

/** Texts whose analysis takes more than a time slice. */
function manyTexts(): readonly LexicalQuery[] {
  return Array.from({ length: 200 }, (_, i) => ({ type: 'match', field: 'text', text: `${i} `.repeat(1_000) }));
}

test('fragments of one sentence of a million characters take linear time', () => {
  const text = 'Vienna and some words '.repeat(50_000);
  const marks = [...text.matchAll(/Vienna/g)].map(({ index }) => ({ start: index, end: index + 6, term: 'vienna' }));
  const before = process.cpuUsage();
  const fragments = fragmentsOf(text, marks, 100);
  const { user } = process.cpuUsage(before);
  assert.ok(fragments.length > 5_000);
  // In quadratic time, the words of the rest of the sentence were looked for again for each fragment: 10 minutes.
  assert.ok(user < 20e6, `${user} µs`);
});

test('options that are not known or not supported are refused by name', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  for (const [highlight, type, reason] of [
    [{ fields: { text: {} }, foo: 1 }, 'parsing_exception', /\[highlight\] query does not support \[foo\]/],
    [{ fields: { text: { type: 'plain' } } }, 'illegal_argument_exception', /\[type\].*\[plain\], expected unified/],
    [{ fields: { text: { boundary_scanner: 'chars' } } }, 'illegal_argument_exception', /\[boundary_scanner\]/],
    [{ fields: { text: {} }, no_match_size: 100 }, 'illegal_argument_exception', /\[no_match_size\]/],
    [{ fields: { text: {} }, fragment_size: -1 }, 'illegal_argument_exception', /\[fragment_size\].*-1/],
    [{ fields: { text: {} }, boost: 1 }, 'parsing_exception', /\[boost\]/],
    [
      { fields: { text: {} }, post_tags: ['x'.repeat(101)] },
      'illegal_argument_exception',
      /\[post_tags\] of \[highlight\] has 101 characters; .* 100/,
    ],
    [{ fields: { text: {} }, pre_tags: ['\u0001'] }, 'illegal_argument_exception', /\[pre_tags\].* control character/],
    [{ fields: 'text' }, 'parsing_exception', /\[fields\] of \[highlight\]/],
    [[], 'parsing_exception', /\[highlight\]/],
  ] as const) {
    const { status, json } = await ask(app, 'POST', '/wiki_en/_search', { highlight });
    assert.deepEqual([status, json.error!.type], [400, type], JSON.stringify(highlight));
    assert.match(String(json.error!.reason), reason);
  }
});
