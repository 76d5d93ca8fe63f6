import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mergeIndex } from '../../indexer/building/merge-index.ts';
import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import { compactIndex } from '../../indexer/update/compact-index.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import { openLexicalIndex } from '../../src/engine/lexical/open-lexical.ts';
import { withChecksum } from '../../src/index/manifest/write-manifest.ts';
import { SqlitePassageStore } from '../../src/index/passages/sqlite-passage-store.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, job, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';
import { indexProblems } from './index-problems.ts';
import { update } from './update.ts';
import { kernel, type Row, skip } from './updated-index.ts';

const BM25 = bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] });
const QUERIES = ['w0', 'w1 w2 w3', 'w5 w5 w9 unknown', 'title w20', ''];
const quietly = { float16: false, onStep: () => undefined };

/** Passages of words with the skew of language. */
function passages(first: number, count: number): Row[] {
  return Array.from({ length: count }, (_, i) => {
    const random = seededRandom(first + i);
    const words = Array.from({ length: 1 + Math.floor(40 * random()) }, () => `w${Math.floor(60 ** random()) - 1}`);
    return { id: `p${first + i}`, contents: `"Title ${first + i}"\n${words.join(' ')}` };
  });
}

/** Ids and scores by rank, which do not depend on how rows are cut into shards. Ties are in the order of ids. */
async function ranking(folder: string, k = 1_000): Promise<string[][]> {
  const { lexical, passages: shards } = openIndexDirectory(folder);
  const index = await openLexicalIndex(lexical.get('contents')!);
  const store = await SqlitePassageStore.open(shards);
  try {
    const { counts, rows, scores } = await index.search({ queries: QUERIES, k });
    const places = rows.length / counts.length;
    const lists: string[][] = [];
    for (let q = 0; q < QUERIES.length; q++) {
      const end = q * places + counts[q]!;
      const documents = await store.getMany(rows.slice(q * places, end));
      const list = documents.map((document, i) => `${scores[q * places + i]} ${(JSON.parse(document) as Row).id}`);
      lists.push(list.sort());
    }
    return lists;
  } finally {
    await Promise.all([index.close(), store.close()]);
  }
}

async function indexedTexts(t: Parameters<typeof tempFolder>[0], rows: readonly Row[], more: object = {}) {
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  const corpus = writeCorpus(folder, { 'c.jsonl': rows });
  await build({ corpus, out, kernel, bm25: BM25, ...more });
  return { folder, out, corpus };
}

test('an index of eight shards ranks and scores as one of a single shard', { skip }, async (t) => {
  const rows = passages(0, 400);
  const one = await indexedTexts(t, rows);
  const eight = await indexedTexts(t, rows, { shardRows: 50 });
  assert.equal(openIndexDirectory(eight.out).shards.length, 8);
  assert.deepEqual(await ranking(eight.out), await ranking(one.out));
  assert.deepEqual(await indexProblems(eight.out), []);
});

test('jobs and a merge make the inverted indexes of one build', { skip }, async (t) => {
  const rows = passages(0, 300);
  const whole = await indexedTexts(t, rows, { shardRows: 100 });
  const out = join(whole.folder, 'merged');
  for (const index of [2, 0, 1]) await job(index, 3, { corpus: whole.corpus, out, kernel, bm25: BM25 });
  await mergeIndex(out, { overwrite: false, uniqueIds: false });
  assert.deepEqual(await ranking(out), await ranking(whole.out));
  for (const shard of readdirSync(out).filter((name) => name.startsWith('shard-'))) {
    const bytes = (folder: string): Buffer => readFileSync(join(folder, shard, 'contents.bm25'));
    assert.ok(bytes(out).equals(bytes(whole.out)), shard);
  }
});

test('shards whose inverted indexes were made with other settings are not merged', { skip }, async (t) => {
  const { corpus, folder } = await indexedTexts(t, passages(0, 60));
  const out = join(folder, 'mixed');
  const jobWith = (index: number, bm25: Bm25Settings | undefined) => job(index, 2, { corpus, out, kernel, bm25 });
  await jobWith(0, BM25);
  await jobWith(1, { ...BM25, analyser: 'standard' });
  const merging = (): Promise<unknown> => mergeIndex(out, { overwrite: false, uniqueIds: false });
  await assert.rejects(
    merging(),
    trawlError('SHARDS_DIFFER', /BM25 analyser: "standard" here, "english" in shard-00000/),
  );
  rmSync(join(`${out}.partial`, 'shard-00001'), { recursive: true });
  await jobWith(1, undefined);
  await assert.rejects(merging(), trawlError('SHARDS_DIFFER', /BM25: without --bm25 here, with --bm25 in shard-00000/));
});

test('updates, removals and compactions leave the scores of a fresh build', { skip }, async (t) => {
  const { out, folder } = await indexedTexts(t, passages(0, 300), { shardRows: 100 });
  const freshRanking = async (name: string, rows: readonly Row[]): Promise<string[][]> => {
    const corpus = writeCorpus(folder, { [`${name}.jsonl`]: rows });
    await build({ corpus, out: join(folder, name), kernel, bm25: BM25 });
    return ranking(join(folder, name));
  };
  await removePassages(out, ['p3', 'p77', 'p150', 'p299']);
  const afterRemoval = passages(0, 300).filter(({ id }) => !['p3', 'p77', 'p150', 'p299'].includes(String(id)));
  assert.deepEqual(await ranking(out), await freshRanking('removed', afterRemoval));
  assert.deepEqual(await indexProblems(out), []);

  const next = passages(40, 320);
  await update({ corpus: writeCorpus(folder, { 'next.jsonl': next }), out, kernel });
  const expected = await freshRanking('updated', next);
  assert.deepEqual(await ranking(out), expected);
  assert.deepEqual(await indexProblems(out), []);

  await compactIndex(out, kernel, quietly);
  assert.equal(openIndexDirectory(out).manifest.bm25!.deleted, null);
  const deleted = readdirSync(out).filter((name) => name.startsWith('deleted-'));
  assert.equal(deleted.length, 1, 'only the file of the last generation stays, for servers that have it open');
  assert.deepEqual(await ranking(out), expected);
  assert.deepEqual(await indexProblems(out), []);
});

test('an existing index gets inverted indexes, which a later call keeps or replaces', { skip }, async (t) => {
  const { out } = await indexedTexts(t, passages(0, 200), { shardRows: 100, bm25: undefined });
  const { generation } = openIndexDirectory(out).manifest;
  await removePassages(out, ['p5', 'p150']);
  const optimize = (bm25: Bm25Settings) => optimizeIndex(out, kernel!, { ...quietly, bm25 });
  assert.equal(openIndexDirectory(out).lexical.size, 0);
  assert.equal((await optimize(BM25)).lexicalMade, 2);
  const english = await ranking(out);
  assert.equal((await optimize(BM25)).lexicalMade, 0);
  assert.equal((await optimize({ ...BM25, k1: 1.2, b: 0.75 })).lexicalMade, 0, 'k1 and b need no other files');
  assert.deepEqual(await ranking(out), english);
  assert.equal(openIndexDirectory(out).manifest.bm25!.made.k1, 1.2);
  assert.equal((await optimize({ ...BM25, analyser: 'whitespace' })).lexicalMade, 2);
  assert.notDeepEqual(await ranking(out), english);
  assert.equal((await optimize(BM25)).lexicalMade, 2);
  assert.deepEqual(await ranking(out), english);
  assert.deepEqual(await indexProblems(out), []);
  assert.notEqual(openIndexDirectory(out).manifest.generation, generation, 'by the removal alone');
});

test('terms of another version of the stemmers get a new file of deleted texts, and the old one is removed', {
  skip,
}, async (t) => {
  const { out } = await indexedTexts(t, passages(0, 100), { bm25: undefined });
  await removePassages(out, ['p5']);
  // With an analyser that has no stemmer, so that this program writes both.
  const deletedTexts = async (stemmer: string, k1 = 0.9): Promise<string> => {
    await optimizeIndex(out, kernel!, { ...quietly, bm25: { ...BM25, analyser: 'whitespace', stemmer, k1 } });
    const { path } = openIndexDirectory(out).manifest.bm25!.deleted![0]!;
    assert.deepEqual(
      readdirSync(out).filter((name) => name.startsWith('deleted-')),
      [path],
    );
    return path;
  };
  const old = await deletedTexts('stemmers 1');
  const next = await deletedTexts('stemmers 2');
  assert.notEqual(next, old, 'a manifest that is not replaced yet names the old file');
  assert.equal(await deletedTexts('stemmers 2', 1.2), next, 'k1 does not affect the file');
});

test('inverted indexes stay until all shards have those that replace them, whatever stops the command', {
  skip,
}, async (t) => {
  for (const withVectors of [true, false]) {
    const { out } = await indexedTexts(t, passages(0, 150), {
      shardRows: 50,
      ...(withVectors ? {} : { encoder: undefined }),
    });
    await removePassages(out, ['p5', 'p120']);
    const english = await ranking(out);
    const optimize = (analyser: Bm25Settings['analyser'], stopAt?: number) => {
      const controller = new AbortController();
      let shards = 0;
      const onStep = (): void => void (shards++ === stopAt && controller.abort('SIGTERM'));
      const bm25 = { ...BM25, analyser };
      return optimizeIndex(out, kernel!, { ...quietly, bm25, onStep, signal: controller.signal });
    };
    for (const stopAt of [0, 1, 1]) {
      await assert.rejects(optimize('whitespace', stopAt), trawlError('CANCELLED'));
      assert.deepEqual(await ranking(out), english);
      assert.deepEqual(await indexProblems(out), []);
    }
    assert.deepEqual(
      readdirSync(join(out, 'shard-00001')).filter((name) => /tmp|run/.test(name)),
      [],
    );
    // Shards 0 and 1 have indexes with the analyser that is no longer wanted.
    await assert.rejects(optimize('standard', 1), trawlError('CANCELLED'));
    assert.deepEqual(await ranking(out), english);
    assert.equal((await optimize('whitespace')).lexicalMade, 3);
    assert.equal(openIndexDirectory(out).manifest.bm25!.made.analyser, 'whitespace');
    for (const { manifest, folder } of openIndexDirectory(out).shards) {
      assert.equal(manifest.nextBm25, undefined);
      assert.equal(readdirSync(folder).filter((name) => name.endsWith('.bm25')).length, 1);
    }
    assert.deepEqual(await indexProblems(out), []);
    // A stopped replacement is given up by a call with the settings that the index has.
    await assert.rejects(optimize('english', 2), trawlError('CANCELLED'));
    assert.equal((await optimize('whitespace')).lexicalMade, 0);
    await assert.rejects(optimize('english', 2), trawlError('CANCELLED'));
    assert.equal((await optimize('english')).lexicalMade, 1, 'it resumes at the shard that it was stopped at');
    assert.deepEqual(await ranking(out), english);
    assert.deepEqual(await indexProblems(out), []);
  }
});

test('optimize makes missing and damaged inverted indexes again, also with the settings that the index has', {
  skip,
}, async (t) => {
  const { out } = await indexedTexts(t, passages(0, 200), { shardRows: 100 });
  await removePassages(out, ['p5', 'p120']);
  const expected = await ranking(out);
  const optimize = async (bm25 = BM25): Promise<number> =>
    (await optimizeIndex(out, kernel!, { ...quietly, bm25 })).lexicalMade;
  const file = (shard: number): string => {
    const { folder, manifest } = openIndexDirectory(out).shards[shard]!;
    return join(folder, manifest.bm25!.indexes[0]!.path);
  };
  const damages: ((path: string) => void)[] = [
    (path) => rmSync(path),
    (path) => writeFileSync(path, readFileSync(path).subarray(0, -9)),
    (path) => {
      const bytes = readFileSync(path);
      bytes[Math.floor(bytes.length / 2)]! ^= 16;
      writeFileSync(path, bytes);
    },
  ];
  for (const [i, damage] of damages.entries()) {
    damage(file(i % 2));
    assert.equal(await optimize(), 1);
    assert.deepEqual(await ranking(out), expected);
    assert.deepEqual(await indexProblems(out), []);
    damage(join(out, openIndexDirectory(out).manifest.bm25!.deleted![0]!.path));
    assert.equal(await optimize(), 0, 'only the texts of the deleted rows were damaged');
    assert.deepEqual(await ranking(out), expected);
    assert.deepEqual(await indexProblems(out), []);
  }
  assert.equal(await optimize(), 0);
  // A file of other passages, with its checksum in the manifest.
  const [one, other] = openIndexDirectory(out).shards;
  const record = other!.manifest.files.find(({ path }) => path.endsWith('.bm25'))!;
  const swapped = {
    ...one!.manifest,
    bm25: other!.manifest.bm25!,
    files: [...one!.manifest.files.filter(({ path }) => !path.endsWith('.bm25')), record],
  };
  writeFileSync(join(one!.folder, record.path), readFileSync(join(other!.folder, record.path)));
  writeFileSync(join(one!.folder, 'shard.json'), JSON.stringify(withChecksum(swapped)));
  assert.notDeepEqual(await ranking(out), expected);
  assert.equal(await optimize(), 1);
  assert.deepEqual(await ranking(out), expected);
  // A damaged one does not stop a change of settings either.
  rmSync(file(0));
  assert.equal(await optimize({ ...BM25, k1: 1.2 }), 1);
  assert.equal(openIndexDirectory(out).manifest.bm25!.made.k1, 1.2);
  rmSync(file(1));
  assert.equal(await optimize({ ...BM25, analyser: 'whitespace' }), 2);
  assert.deepEqual(await indexProblems(out), []);
  for (const { folder } of openIndexDirectory(out).shards) {
    assert.equal(readdirSync(folder).filter((name) => name.endsWith('.bm25')).length, 1);
  }
});

test('a change of the index removes the inverted indexes that a stopped optimize left', { skip }, async (t) => {
  for (const bm25 of [BM25, undefined]) {
    const { out } = await indexedTexts(t, passages(0, 200), { shardRows: 100, bm25 });
    const controller = new AbortController();
    let steps = 0;
    const onStep = (): void => void (++steps === 2 && controller.abort('SIGTERM'));
    const wanted = { ...BM25, analyser: 'whitespace' } as const;
    const optimize = { ...quietly, bm25: wanted, onStep, signal: controller.signal };
    await assert.rejects(optimizeIndex(out, kernel!, optimize), trawlError('CANCELLED'));
    const files = (): string[] =>
      (readdirSync(out, { recursive: true }) as string[]).filter((name) => /shard.*\.bm25/.test(name));
    const before = bm25 === undefined ? 0 : 2;
    assert.equal(files().length, before + 1);
    await removePassages(out, ['p7']);
    assert.equal(files().length, before);
    for (const { manifest } of openIndexDirectory(out).shards) {
      assert.equal(manifest.nextBm25, undefined);
      assert.equal(manifest.bm25?.made.analyser, bm25?.analyser);
    }
    assert.deepEqual(await indexProblems(out), []);
    assert.equal((await optimizeIndex(out, kernel!, { ...quietly, bm25: wanted })).lexicalMade, 2);
  }
});

test('an update resumes after optimize changed the settings of its inverted indexes, and embeds nothing again', {
  skip,
}, async (t) => {
  for (const bm25 of [BM25, undefined]) {
    const { out, folder } = await indexedTexts(t, passages(0, 50), { bm25 });
    const next = passages(20, 250);
    const corpus = writeCorpus(folder, { 'next.jsonl': next });
    const last = next.at(-1)!.contents;
    const failing = new FakeTextEncoder({ failing: (text) => text === last });
    const options = { corpus, out, kernel, shardRows: 100 };
    await assert.rejects(update({ ...options, encoder: failing }), trawlError('ENCODING_FAILED'));
    const wanted = { ...BM25, analyser: 'standard', k1: 1.2 } as const;
    await optimizeIndex(out, kernel!, { ...quietly, bm25: wanted });
    const encoder = new FakeTextEncoder();
    const { added, resumedRows } = await update({ ...options, encoder });
    assert.deepEqual([added, resumedRows], [220, 220 - encoder.texts.length]);
    assert.ok(resumedRows > 140, `two of three shards were complete: ${resumedRows}`);
    const fresh = join(folder, 'fresh');
    await build({ corpus, out: fresh, kernel, bm25: wanted });
    assert.deepEqual(await ranking(out), await ranking(fresh));
    assert.deepEqual(await indexProblems(out), []);
    for (const shard of openIndexDirectory(out).shards) {
      assert.equal(readdirSync(shard.folder).filter((name) => name.endsWith('.bm25')).length, 1);
    }
  }
});

test('a build that is killed while it makes inverted indexes resumes to the same index', { skip }, async (t) => {
  const rows = passages(0, 200);
  const { out, folder, corpus } = await indexedTexts(t, rows);
  // As a killed process leaves them.
  const partial = join(folder, 'again.partial');
  const begun = build({
    corpus,
    out: join(folder, 'again'),
    kernel,
    bm25: BM25,
    onProgress: ({ stage, passages: done }) => {
      if (stage === 'encode' && done === rows.length) throw new Error('stopped');
    },
  });
  await assert.rejects(begun, /stopped/);
  writeFileSync(join(partial, 'shard-00000', 'contents.bm25.tmp'), 'half');
  writeFileSync(join(partial, 'shard-00000', 'contents.bm25.tmp.run-0'), 'half');
  await build({ corpus, out: join(folder, 'again'), kernel, bm25: BM25 });
  const names = readdirSync(join(folder, 'again', 'shard-00000'));
  assert.deepEqual(
    names.filter((name) => /tmp|run/.test(name)),
    [],
  );
  const bytes = (index: string): Buffer => readFileSync(join(index, 'shard-00000', 'contents.bm25'));
  assert.ok(bytes(join(folder, 'again')).equals(bytes(out)));
});

test('a build with other settings of BM25 does not resume one that was begun', { skip }, async (t) => {
  const { folder, corpus } = await indexedTexts(t, passages(0, 50));
  const out = join(folder, 'other');
  const stopped = (): void => {
    throw new Error('stopped');
  };
  const begun = build({
    corpus,
    out,
    kernel,
    bm25: BM25,
    onProgress: ({ stage }) => (stage === 'encode' ? stopped() : undefined),
  });
  await assert.rejects(begun, /stopped/);
  const other = build({ corpus, out, kernel, bm25: { ...BM25, analyser: 'cjk' } });
  await assert.rejects(other, trawlError('BUILD_DIFFERS', /BM25 analyser: "english", now "cjk"/));
  await assert.rejects(build({ corpus, out, kernel }), trawlError('BUILD_DIFFERS', /with --bm25/));
});

test('without the engine a build makes the same inverted indexes', { skip }, async (t) => {
  const { corpus, folder, out } = await indexedTexts(t, passages(0, 300), { shardRows: 200 });
  const plain = join(folder, 'plain');
  await build({ corpus, out: plain, bm25: BM25, shardRows: 200 });
  for (const shard of ['shard-00000', 'shard-00001']) {
    const bytes = (index: string): Buffer => readFileSync(join(index, shard, 'contents.bm25'));
    assert.ok(bytes(plain).equals(bytes(out)), shard);
  }
  assert.deepEqual(await ranking(plain), await ranking(out));
});

test('without the engine an existing index gets the same inverted indexes, and keeps its missing codes', {
  skip,
}, async (t) => {
  const { corpus, folder, out } = await indexedTexts(t, passages(0, 100));
  const later = join(folder, 'later');
  await build({ corpus, out: later });
  const summary = await optimizeIndex(later, undefined, { ...quietly, bm25: BM25 });
  assert.deepEqual([summary.lexicalMade, summary.codesMade], [1, 0]);
  const bytes = (index: string): Buffer => readFileSync(join(index, 'shard-00000', 'contents.bm25'));
  assert.ok(bytes(later).equals(bytes(out)));
  assert.equal(openIndexDirectory(later).shards[0]!.manifest.codes, null);
});

test('a missing, cut or changed inverted index is named', { skip }, async (t) => {
  const { out } = await indexedTexts(t, passages(0, 400));
  await removePassages(out, ['p9']);
  const path = join(out, 'shard-00000', 'contents.bm25');
  const sound = readFileSync(path);
  const changed = Buffer.from(sound);
  changed[Math.floor(changed.length / 2)]! ^= 4;
  writeFileSync(path, changed);
  assert.match((await indexProblems(out)).join('\n'), /contents\.bm25/);
  writeFileSync(path, sound.subarray(0, -1));
  assert.throws(() => openIndexDirectory(out), trawlError('INDEX_FILE_TRUNCATED', /contents\.bm25/));
  rmSync(path);
  assert.throws(() => openIndexDirectory(out), trawlError('INDEX_FILE_MISSING', /contents\.bm25/));
  writeFileSync(path, sound);
  const deleted = join(out, readdirSync(out).find((name) => name.startsWith('deleted-'))!);
  assert.ok(existsSync(deleted));
  rmSync(deleted);
  assert.throws(() => openIndexDirectory(out), trawlError('INDEX_FILE_MISSING', /deleted-contents/));
});
