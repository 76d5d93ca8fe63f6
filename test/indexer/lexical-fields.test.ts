import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { mergeIndex } from '../../indexer/building/merge-index.ts';
import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import { compactIndex } from '../../indexer/update/compact-index.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { BM25_PROFILES, type Bm25Ranking } from '../../src/engine/lexical/bm25.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, job, writeCorpus } from './build.ts';
import { indexProblems } from './index-problems.ts';
import { update } from './update.ts';
import { kernel, skip } from './updated-index.ts';

const BM25 = bm25Settings({ analyser: 'standard', k1: 1.2, b: 0.75, fields: ['title', 'text'] });
const CONTENTS = { ...BM25, fields: ['contents'] as const };
const QUERIES = ['w0', 'w1 w2 w3', 'w5 w5 w9 unknown', 'page w20', ''];
const RANKINGS: readonly Bm25Ranking[] = [
  BM25_PROFILES.elasticsearch,
  { ...BM25_PROFILES.lucene, weights: { title: 2 }, tieBreaker: 0.3 },
];

interface Passage {
  readonly id: string;
  readonly title?: string;
  readonly text?: string;
  readonly contents?: string;
}

/** Words with the skew of language. Some passages have no title, and some have it as the first line of their contents. */
function passages(first: number, count: number): Passage[] {
  return Array.from({ length: count }, (_, i): Passage => {
    const id = `p${first + i}`;
    const random = seededRandom(first + i);
    const words = (most: number): string =>
      Array.from({ length: 1 + Math.floor(most * random()) }, () => `w${Math.floor(60 ** random()) - 1}`).join(' ');
    const [title, text] = [`page ${words(4)}`, words(40)];
    if (i % 5 === 1) return { id, text };
    return i % 3 === 0 ? { id, contents: `"${title}"\n${text}` } : { id, title, text };
  });
}

/** Ids and scores of all hits of all queries, which do not depend on how rows are cut into shards. */
async function ranking(folder: string): Promise<string[][]> {
  const retriever = await openRetriever(folder, { modes: ['bm25'] });
  try {
    const lists: string[][] = [];
    for (const bm25 of RANKINGS) {
      const { outcomes } = await retriever.retrieve({ queries: QUERIES, k: 1_000, mode: 'bm25', bm25 });
      for (const outcome of outcomes) {
        assert.ok(outcome.ok);
        lists.push(
          outcome.hits.map(({ score, document }) => `${score} ${(JSON.parse(document) as Passage).id}`).sort(),
        );
      }
    }
    return lists;
  } finally {
    await retriever.close();
  }
}

/** An index without vectors. */
async function indexed(t: TestContext, rows: readonly Passage[], more: object = {}) {
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  const corpus = writeCorpus(folder, { 'c.jsonl': rows });
  await build({ corpus, out, kernel, bm25: BM25, encoder: undefined, ...more });
  return { folder, out, corpus };
}

const quietly = { float16: false, onStep: () => undefined };

test('title and text are two inverted indexes, and eight shards or jobs give the bits of one', { skip }, async (t) => {
  const rows = passages(0, 320);
  const one = await indexed(t, rows);
  const eight = await indexed(t, rows, { shardRows: 40 });
  const { manifest, shards } = openIndexDirectory(eight.out);
  assert.deepEqual(manifest.bm25!.made.fields, ['title', 'text']);
  assert.equal(shards.length, 8);
  const [first] = openIndexDirectory(one.out).shards;
  const [title, text] = first!.manifest.bm25!.indexes;
  assert.deepEqual([title!.path, text!.path], ['title.bm25', 'text.bm25']);
  assert.deepEqual([title!.documents, text!.documents], [rows.filter((row) => row.title ?? row.contents).length, 320]);
  const expected = await ranking(one.out);
  assert.ok(expected.slice(0, 4).every((list) => list.length > 0));
  assert.deepEqual(await ranking(eight.out), expected);
  assert.deepEqual(await indexProblems(eight.out), []);

  const out = join(one.folder, 'merged');
  for (const index of [1, 2, 0]) {
    await job(index, 3, { corpus: one.corpus, encoder: undefined, kernel, out, bm25: BM25 });
  }
  await mergeIndex(out, { overwrite: false, uniqueIds: false });
  assert.deepEqual(await ranking(out), expected);
  assert.deepEqual(await indexProblems(out), []);
});

test('removals, updates and compactions of two fields leave the scores of a fresh build', { skip }, async (t) => {
  const { out, folder } = await indexed(t, passages(0, 240), { shardRows: 80 });
  const fresh = async (name: string, rows: readonly Passage[]): Promise<string[][]> => {
    const corpus = writeCorpus(folder, { [`${name}.jsonl`]: rows });
    await build({ corpus, out: join(folder, name), kernel, bm25: BM25, encoder: undefined });
    return ranking(join(folder, name));
  };
  const gone = ['p3', 'p76', 'p150', 'p239'];
  await removePassages(out, gone);
  assert.deepEqual(readdirSync(out).filter((name) => name.startsWith('deleted-')).length, 2);
  const left = passages(0, 240).filter(({ id }) => !gone.includes(id));
  assert.deepEqual(await ranking(out), await fresh('removed', left));

  const appended = passages(500, 30);
  const more = writeCorpus(folder, { 'more.jsonl': appended });
  await update({ type: 'append', corpus: more, out, kernel, encoder: undefined });
  assert.deepEqual(await ranking(out), await fresh('appended', [...left, ...appended]));

  const next = passages(40, 260);
  await update({ corpus: writeCorpus(folder, { 'next.jsonl': next }), out, kernel, encoder: undefined });
  const expected = await fresh('updated', next);
  assert.deepEqual(await ranking(out), expected);
  assert.deepEqual(await indexProblems(out), []);
  await compactIndex(out, kernel, quietly);
  assert.equal(openIndexDirectory(out).manifest.bm25!.deleted, null);
  assert.deepEqual(await ranking(out), expected);
  assert.deepEqual(await indexProblems(out), []);
});

test('optimize replaces one field by two and back, and weights need two', { skip }, async (t) => {
  const rows = passages(0, 100);
  const { out } = await indexed(t, rows, { bm25: CONTENTS, shardRows: 50 });
  await removePassages(out, ['p7']);
  await assert.rejects(ranking(out), trawlError('NOT_SUPPORTED', /one field, contents.*--bm25-fields title,text/s));
  const optimize = (bm25: typeof BM25) => optimizeIndex(out, kernel!, { ...quietly, bm25 });
  assert.equal((await optimize(BM25)).lexicalMade, 2);
  const names = readdirSync(join(out, 'shard-00000')).filter((name) => name.endsWith('.bm25'));
  assert.deepEqual(names.sort(), ['text.bm25', 'title.bm25']);
  const fresh = await indexed(
    t,
    rows.filter(({ id }) => id !== 'p7'),
  );
  assert.deepEqual(await ranking(out), await ranking(fresh.out));
  assert.deepEqual(await indexProblems(out), []);
  assert.equal((await optimize(BM25)).lexicalMade, 0);
  assert.equal((await optimize(CONTENTS)).lexicalMade, 2);
  assert.deepEqual([...openIndexDirectory(out).lexical.keys()], ['contents']);

  const retriever = await openRetriever(fresh.out);
  t.after(() => retriever.close());
  const search = (weights: Record<string, number>) =>
    retriever.retrieve({ queries: ['w0'], k: 3, bm25: { ...BM25_PROFILES.lucene, weights } });
  await assert.rejects(search({ title: 0, text: 0 }), trawlError('INVALID_REQUEST', /all fields are 0/));
  await assert.rejects(search({ contents: 2 }), trawlError('NOT_SUPPORTED', /title and text.*"contents"/));
});

test('a retriever opened with weights ranks by them unless a call sets others', { skip }, async (t) => {
  const { out, folder, corpus } = await indexed(t, passages(0, 200));
  const fieldRanking = { weights: { title: 3 }, tieBreaker: 0.4 };
  const [plain, weighted] = await Promise.all([openRetriever(out), openRetriever(out, { fieldRanking })]);
  t.after(() => Promise.all([plain.close(), weighted.close()]));
  const ask = async (retriever: typeof plain, bm25?: Bm25Ranking): Promise<unknown> => {
    const call = { queries: QUERIES, k: 20, mode: 'bm25', bm25 } as const;
    const hits = (await retriever.retrieve(call)).outcomes.map((outcome) => outcome.ok && outcome.hits);
    const rows = hits.map((list) => (list || []).slice(0, 2).map(({ row }) => row));
    const { explained } = await retriever.explain({
      queries: rows.map((some, i) => ({ query: QUERIES[i]!, rows: some })),
      bm25,
    });
    return { hits, explained };
  };
  const own = { ...BM25_PROFILES.lucene, k1: BM25.k1, b: BM25.b };
  const expected = await ask(plain, { ...own, ...fieldRanking });
  assert.deepEqual(await ask(weighted), expected);
  assert.notDeepEqual(await ask(plain), expected);
  assert.deepEqual(
    await ask(weighted, BM25_PROFILES.lucene),
    await ask(plain, { ...BM25_PROFILES.lucene, ...fieldRanking }),
  );
  const others = { ...own, weights: {}, tieBreaker: 0 };
  assert.deepEqual(await ask(weighted, others), await ask(plain, others));

  const one = join(folder, 'one');
  await build({ corpus, out: one, kernel, bm25: CONTENTS, encoder: undefined });
  await assert.rejects(openRetriever(one, { fieldRanking }), trawlError('NOT_SUPPORTED', /one field, contents/));
  await assert.rejects(
    openRetriever(out, { fieldRanking: { weights: { title: 0, text: 0 } } }),
    trawlError('INVALID_REQUEST', /all fields are 0/),
  );
});

test('a corpus without titles is refused, and a shard without titles is named', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const untitled = passages(0, 30).map(({ id }) => ({ id, text: `words of ${id}` }));
  const corpus = writeCorpus(folder, { 'c.jsonl': [...untitled, { id: 'last', title: ' ', text: 'x' }] });
  const refused = trawlError('CONFIG_INVALID', /no passage has a title.*--bm25-fields contents/);
  await assert.rejects(build({ corpus, out: join(folder, 'a'), kernel, bm25: BM25 }), refused);
  const plain = join(folder, 'b');
  await build({ corpus, out: plain, kernel, bm25: CONTENTS, encoder: undefined });
  await assert.rejects(optimizeIndex(plain, kernel!, { ...quietly, bm25: BM25 }), refused);
  assert.deepEqual([...openIndexDirectory(plain).lexical.keys()], ['contents'], 'the index is as it was');

  const mixed = writeCorpus(folder, { 'm.jsonl': [...untitled, ...passages(0, 30)] });
  const notes: string[] = [];
  for (const index of [0, 1]) {
    const onNote = (note: string): unknown => notes.push(note);
    await job(index, 2, { corpus: mixed, encoder: undefined, onNote, kernel, out: join(folder, 'jobs'), bm25: BM25 });
  }
  assert.equal(notes.length, 1);
  assert.match(notes[0]!, /shard-00000: no passage of this shard has a title/);
  await mergeIndex(join(folder, 'jobs'), { overwrite: false, uniqueIds: false });
  assert.ok((await ranking(join(folder, 'jobs')))[0]!.length > 0);
});

test('a build that was stopped between two fields resumes to the same files', { skip }, async (t) => {
  const { out, folder, corpus } = await indexed(t, passages(0, 2_000));
  const again = join(folder, 'again');
  const controller = new AbortController();
  const begun = build({
    corpus,
    out: again,
    kernel,
    bm25: BM25,
    encoder: undefined,
    signal: controller.signal,
    onProgress: ({ stage, passages: done }) => {
      // Half of the rows of the stage: the first index is complete.
      if (stage === 'words' && done > 1_000) controller.abort();
    },
  });
  await assert.rejects(begun, trawlError('CANCELLED'));
  const partial = join(folder, 'again.partial', 'shard-00000');
  assert.ok(existsSync(join(partial, 'title.bm25')) && !existsSync(join(partial, 'text.bm25')));
  writeFileSync(join(partial, 'text.bm25.tmp.run-0'), 'half');
  await build({ corpus, out: again, kernel, bm25: BM25, encoder: undefined });
  for (const name of ['title.bm25', 'text.bm25', 'shard.json']) {
    const bytes = (index: string): Buffer => readFileSync(join(index, 'shard-00000', name));
    assert.ok(bytes(again).equals(bytes(out)), name);
  }
  assert.ok(!readdirSync(join(again, 'shard-00000')).some((name) => /tmp|run/.test(name)));
  const other = build({
    corpus,
    out: join(folder, 'other'),
    kernel,
    bm25: BM25,
    onProgress: ({ stage }) => {
      if (stage === 'encode') throw new Error('stopped');
    },
  });
  await assert.rejects(other, /stopped/);
  const contents = build({ corpus, out: join(folder, 'other'), kernel, bm25: CONTENTS });
  await assert.rejects(contents, trawlError('BUILD_DIFFERS', /BM25 fields: \["title","text"\], now \["contents"\]/));
});
