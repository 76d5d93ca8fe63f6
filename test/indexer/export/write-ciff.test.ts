import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { MessageBuffer } from '../../../indexer/export/ciff-messages.ts';
import { type ExportOptions, exportIndex } from '../../../indexer/export/export-index.ts';
import { bm25Settings } from '../../../indexer/lexical/make-lexical.ts';
import { removePassages } from '../../../indexer/update/remove-passages.ts';
import { analyser } from '../../../src/engine/lexical/analysis/analysers.ts';
import type { AnalyserName, LexicalField } from '../../../src/engine/lexical/lexical-settings.ts';
import { runTrawl } from '../../cli/run-trawl.ts';
import { type CiffList, readCiff } from '../../helpers/ciff.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { build, writeCorpus } from '../build.ts';
import { kernel, skip } from '../updated-index.ts';

interface Row {
  readonly id?: string;
  readonly contents: string;
}

interface Made {
  readonly analyser?: AnalyserName;
  readonly shardRows?: number;
  readonly fields?: readonly LexicalField[];
  /** Removed by id. */
  readonly removed?: readonly string[];
}

/** Builds an index of words alone. */
async function indexOf(
  t: TestContext,
  rows: readonly Row[],
  made: Made = {},
): Promise<{ folder: string; index: string }> {
  const folder = await tempFolder(t);
  const index = join(folder, 'index');
  const { analyser: name = 'standard', fields = ['contents'], shardRows, removed = [] } = made;
  const bm25 = bm25Settings({ analyser: name, k1: 0.9, b: 0.4, fields: [...fields] });
  const corpus = writeCorpus(folder, { 'c.jsonl': rows });
  await build({
    corpus,
    out: index,
    kernel,
    encoder: undefined,
    bm25,
    shardRows,
  });
  if (removed.length > 0) await removePassages(index, removed);
  return { folder, index };
}

/** Random texts: a few common words, many rare ones, an empty text, one long text with a frequent word. */
function randomRows(count: number, seed: number): Row[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, (_, i) => {
    const length = i % 17 === 3 ? 0 : i % 41 === 5 ? 700 : Math.floor(30 * random());
    const words = Array.from(
      { length },
      () => ['Wörter', '東京タワー', `w${Math.floor(300 ** random())}`][Math.floor(2.3 * random())] ?? 'é',
    );
    return { id: `id ${i}`, contents: words.join(' ') };
  });
}

/** The posting lists of the texts, counted one by one. */
function countedLists(texts: readonly string[], name: AnalyserName): { lists: CiffList[]; lengths: number[] } {
  const lists = new Map<string, Map<number, number>>();
  const lengths = texts.map((text, document) => {
    const terms = analyser(name)(text);
    for (const term of terms) {
      const postings = lists.get(term) ?? new Map<number, number>();
      postings.set(document, (postings.get(document) ?? 0) + 1);
      lists.set(term, postings);
    }
    return terms.length;
  });
  const byTerm = [...lists].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return {
    lengths,
    lists: byTerm.map(([term, postings]) => ({
      term,
      df: postings.size,
      cf: [...postings.values()].reduce((sum, tf) => sum + tf, 0),
      postings: [...postings],
    })),
  };
}

function assertCounts(bytes: Uint8Array, live: readonly Row[], name: AnalyserName): void {
  const { header, lists, documents } = readCiff(bytes);
  const expected = countedLists(
    live.map(({ contents }) => contents),
    name,
  );
  const tokens = expected.lengths.reduce((sum, length) => sum + length, 0);
  assert.deepEqual(lists, expected.lists);
  assert.deepEqual(
    documents,
    live.map(({ id }, number) => ({ number, id, length: expected.lengths[number]! })),
  );
  assert.deepEqual(header, {
    version: 1,
    lists: lists.length,
    documents: live.length,
    allLists: lists.length,
    allDocuments: live.length,
    tokens,
    averageLength: tokens / live.length,
    description: `Trawl: field contents, analyser ${name}, Unicode 12.1`,
  });
}

for (const [what, name, made] of [
  ['one shard', 'english', {}],
  ['four shards', 'standard', { shardRows: 90 }],
  ['four shards with deleted rows', 'cjk', { shardRows: 90, removed: [0, 1, 2, 5, 89, 90, 300, 359] }],
  [
    'a shard without a live row',
    'whitespace',
    { shardRows: 60, removed: Array.from({ length: 60 }, (_, i) => 60 + i) },
  ],
] as const) {
  test(`a CIFF file of ${what} has the lists, lengths and ids counted from the live texts`, { skip }, async (t) => {
    const rows = randomRows(360, what.length);
    const removed = ('removed' in made ? made.removed : []).map((row) => rows[row]!.id!);
    const { folder, index } = await indexOf(t, rows, { ...made, analyser: name, removed });
    const live = rows.filter(({ id }) => !removed.includes(id!));
    const [ciff, packed] = [join(folder, 'a.ciff'), join(folder, 'a.ciff.gz')];
    const shares: number[] = [];
    const summary = await exportIndex({ index, files: { ciff }, onProgress: ({ rows: done }) => shares.push(done) });
    await exportIndex({ index, files: { ciff: packed } });
    assertCounts(readFileSync(ciff), live, name);
    assert.deepEqual(gunzipSync(readFileSync(packed)), readFileSync(ciff));
    assert.equal(summary.rows, live.length);
    assert.deepEqual(
      summary.files.map(({ kind, bytes }) => [kind, bytes]),
      [['ciff', readFileSync(ciff).length]],
    );
    assert.ok(shares.every((share) => share <= live.length));
  });
}

test('the progress of an export without postings is a number', { skip }, async (t) => {
  const { folder, index } = await indexOf(t, [
    { id: 'a', contents: '…' },
    { id: 'b', contents: '' },
  ]);
  const done: number[] = [];
  await exportIndex({ index, files: { ciff: join(folder, 'a.ciff') }, onProgress: ({ rows }) => done.push(rows) });
  assert.ok(done.length > 0 && done.every(Number.isInteger), String(done));
});

test('a passage without an id has its row number, and the files of one --drop-removed export agree', {
  skip,
}, async (t) => {
  const rows = [{ id: 'a', contents: 'x' }, { contents: 'y' }, { id: 'a\nb', contents: '' }, { contents: 'x y' }];
  const { folder, index } = await indexOf(t, rows, { removed: ['a'] });
  const files = { ciff: join(folder, 'a.ciff'), 'row-numbers': join(folder, 'rows') };
  await assert.rejects(exportIndex({ index, files }), trawlError('USAGE', /--row-numbers.*Add --drop-removed/));
  await exportIndex({ index, files, dropRemoved: true });
  const { documents, lists } = readCiff(readFileSync(files.ciff));
  assert.deepEqual(
    documents.map(({ id }) => id),
    ['1', 'a\nb', '3'],
  );
  assert.deepEqual(lists[0], { term: 'x', df: 1, cf: 1, postings: [[2, 1]] });
  assert.equal(readFileSync(files['row-numbers'], 'utf8'), '1\n2\n3\n');
});

test('--ciff-field chooses the field; without contents the first one is exported', { skip }, async (t) => {
  const rows = [{ id: 'a', contents: '"Title one"\nsome text' }];
  const { folder, index } = await indexOf(t, rows, { fields: ['title', 'text'] });
  const termsOf = async (options: Partial<ExportOptions>): Promise<string[]> => {
    const ciff = join(folder, 'a.ciff');
    await exportIndex({ index, files: { ciff }, overwrite: true, ...options });
    return readCiff(readFileSync(ciff)).lists.map(({ term }) => term);
  };
  assert.deepEqual(await termsOf({}), ['one', 'title']);
  assert.deepEqual(await termsOf({ ciffField: 'text' }), ['some', 'text']);
  await assert.rejects(
    termsOf({ ciffField: 'contents' }),
    trawlError('NOT_SUPPORTED', /field contents, only of title, text/),
  );
});

test('an index without words, another extension and --ciff-field without --ciff are refused before writing', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const index = join(folder, 'index');
  await build({ corpus: writeCorpus(folder, { 'c.jsonl': [{ id: 0, contents: 'x' }] }), out: index });
  const before = readdirSync(folder);
  const ciff = join(folder, 'a.ciff');
  await assert.rejects(
    exportIndex({ index, files: { ciff } }),
    trawlError('NOT_SUPPORTED', /has no inverted index.*trawl optimize INDEX --bm25/),
  );
  await assert.rejects(
    exportIndex({ index, files: { npy: join(folder, 'a.npy') }, ciffField: 'text' }),
    trawlError('USAGE', /--ciff-field only applies to --ciff/),
  );
  assert.deepEqual(readdirSync(folder), before);
  const words = await indexOf(t, [{ id: 'a', contents: 'x' }]);
  for (const name of ['a.ciff.zst', 'a.pb', 'ciff']) {
    const refused = exportIndex({ index: words.index, files: { ciff: join(words.folder, name) } });
    await assert.rejects(refused, trawlError('USAGE', /must end in \.ciff or \.ciff\.gz/), name);
  }
  assert.deepEqual(readdirSync(words.folder).sort(), ['c.jsonl', 'index']);
});

test('postings that disagree with the stored lengths are refused, and no file is left', { skip }, async (t) => {
  const { folder, index } = await indexOf(t, [
    { id: 'a', contents: 'x x y' },
    { id: 'b', contents: 'y' },
  ]);
  const path = join(index, 'shard-00000', 'contents.bm25');
  const bytes = readFileSync(path);
  // The section of the length codes; its place is in the header.
  const lengths = Number(bytes.readBigUInt64LE(16 + 8 * 8));
  assert.deepEqual([bytes[lengths], bytes[lengths + 1]], [3, 1]);
  bytes[lengths + 1] = 7;
  writeFileSync(path, bytes);
  await assert.rejects(
    exportIndex({ index, files: { ciff: join(folder, 'a.ciff') } }),
    trawlError('INDEX_FILE_FOREIGN', /contents\.bm25: the postings of row 1 .* 1 tokens, but its length code is 7/),
  );
  assert.deepEqual(readdirSync(folder).sort(), ['c.jsonl', 'index']);
});

test('an aborted CIFF export leaves no file', { skip }, async (t) => {
  const { folder, index } = await indexOf(t, randomRows(50, 1));
  const controller = new AbortController();
  const stopped = exportIndex({
    index,
    files: { ciff: join(folder, 'a.ciff') },
    signal: controller.signal,
    onProgress: () => controller.abort('SIGINT'),
  });
  await assert.rejects(stopped, trawlError('CANCELLED'));
  assert.deepEqual(readdirSync(folder).sort(), ['c.jsonl', 'index']);
});

test('a list of any length is encoded whole, wherever the memory of the message has to grow', () => {
  for (let start = 0; start < 30; start++) {
    const [file, list, header] = [new MessageBuffer(), new MessageBuffer(), new MessageBuffer()];
    header.integer(2, 1);
    file.delimited(header);
    list.text(1, Buffer.from('x'.repeat(start)));
    const postings = Array.from({ length: 1_000 }, (_, i) => [i * (i % 40), 1 + (i % 300)] as const);
    for (const [gap, tf] of postings) list.pair(4, gap, tf);
    file.delimited(list);
    let document = 0;
    assert.deepEqual(
      readCiff(file.bytes).lists[0]!.postings,
      postings.map(([gap, tf]) => {
        document += gap;
        return [document, tf];
      }),
    );
  }
});

test('numbers above 2^31 are encoded whole', () => {
  for (const value of [0, 1, 127, 128, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 40 + 12345, 2 ** 53 - 1]) {
    const [message, file] = [new MessageBuffer(), new MessageBuffer()];
    message.integer(6, value);
    file.delimited(message);
    assert.equal(readCiff(file.bytes).header.tokens, value);
  }
});

test('trawl export --ciff says how many documents it wrote and that deleted rows are left out', { skip }, async (t) => {
  const rows = ['a', 'b', 'c'].map((id) => ({ id, contents: `text ${id}` }));
  const { folder, index } = await indexOf(t, rows, { removed: ['b'] });
  const ended = await runTrawl(['export', index, '--ciff', join(folder, 'a.ciff'), '--ciff-field', 'contents']);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stderr, /a\.ciff {2}\d+ B\n2 rows\n1 deleted row omitted/);
  const refused = await runTrawl(['export', index, '--ciff', join(folder, 'b.ciff'), '--ciff-field', 'body']);
  assert.deepEqual([refused.code, /--ciff-field.*contents/s.test(refused.stderr)], [2, true]);
});
