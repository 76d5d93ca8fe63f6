import assert from 'node:assert/strict';
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { verifyIndex } from '../../indexer/verify/verify-index.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import { readIndexManifest, readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { withChecksum } from '../../src/index/manifest/write-manifest.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { sha256Of } from '../search/opening/sha256-of.ts';
import { build, writeCorpus } from './build.ts';
import { kernel, type Row, row, skip } from './updated-index.ts';

const BM25 = bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] });
const corpus = (count: number, word: string, repeats = 7): Row[] =>
  Array.from({ length: count }, (_, i) =>
    row(i, `"Title ${i}"\nevery ${word} has ${'words '.repeat(1 + (i % repeats))}and the number ${i} of ${i % 5}`),
  );

/** An index of words alone, with deleted rows. */
async function words(t: TestContext, rows = corpus(200, 'passage'), bm25: Bm25Settings = BM25): Promise<string> {
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  const files = writeCorpus(folder, { 'c.jsonl': rows });
  await build({ corpus: files, out, kernel, bm25, encoder: undefined, shardRows: 100 });
  await removePassages(out, ['3', '150']);
  return out;
}

async function messages(folder: string, sample = 0, quick = false): Promise<string[]> {
  const { problems } = await verifyIndex(folder, { sample, quick });
  for (const { file, message } of problems) assert.ok(message.startsWith(`${file}: `), message);
  return problems.map(({ message }) => message.replace(`${folder}/`, ''));
}

type Counts = { documents: number; tokens: number; terms: number; postings: number };

/** Changes a shard's record of its inverted index. */
function record(shard: string, change: (indexes: Counts) => Partial<Counts>): void {
  const manifest = readShardManifest(shard);
  const [index] = manifest.bm25!.indexes;
  const bytes = readFileSync(join(shard, index!.path));
  const changed = { ...manifest.bm25!, indexes: [{ ...index!, ...change(index!) }] };
  const files = [{ path: index!.path, bytes: bytes.length, sha256: sha256Of(bytes) }];
  const next = withChecksum({ ...manifest, bm25: changed, files });
  writeFileSync(join(shard, 'shard.json'), JSON.stringify(next));
}

/** Puts another file in the place of the deleted rows' inverted index, with its size and checksum in the manifest. */
function replaceDeleted(folder: string, bytes: Buffer): string {
  const manifest = readIndexManifest(folder);
  const [deleted] = manifest.bm25!.deleted!;
  writeFileSync(join(folder, deleted!.path), bytes);
  const changed = { ...deleted!, bytes: bytes.length, sha256: sha256Of(bytes) };
  const next = withChecksum({ ...manifest, bm25: { ...manifest.bm25!, deleted: [changed] } });
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(next));
  return deleted!.path;
}

test('intact inverted indexes have no problem, and passages analysed again have the stored scores', {
  skip,
}, async (t) => {
  const folder = await words(t);
  let share = 0;
  const report = await verifyIndex(folder, {
    sample: 50,
    onProgress: ({ doneBytes, totalBytes }) => {
      share = doneBytes / totalBytes;
    },
  });
  assert.deepEqual(report, { problems: [], notChecked: [], rows: 200, shards: 2, sample: null, analysed: 50 });
  assert.ok(share > 0.5 && share <= 1.001, `${share}`);
});

test('counts of an inverted index that differ from those of its shard are named, with --quick too', {
  skip,
}, async (t) => {
  const folder = await words(t);
  const shard = join(folder, 'shard-00001');
  const whole = readFileSync(join(shard, 'shard.json'));
  for (const count of ['documents', 'tokens', 'terms', 'postings'] as const) {
    record(shard, (counts) => ({ [count]: counts[count] + 1 }));
    for (const quick of [false, true]) {
      const [found, ...others] = await messages(folder, 0, quick);
      assert.match(
        found!,
        new RegExp(`^shard-00001/contents\\.bm25: it has \\d+ ${count}, the manifest says \\d+\\. Copy`),
      );
      assert.deepEqual(others, []);
    }
    writeFileSync(join(shard, 'shard.json'), whole);
  }
});

test('an inverted index of other rows or of another analyser is named', { skip }, async (t) => {
  const folder = await words(t);
  const shard = join(folder, 'shard-00001');
  const fewer = await words(t, corpus(150, 'passage'));
  copyFileSync(join(fewer, 'shard-00001', 'contents.bm25'), join(shard, 'contents.bm25'));
  record(shard, () => ({}));
  const found = await messages(folder);
  assert.match(found[0]!, /^shard-00001\/contents\.bm25: it has 75 rows, but the shard has 100\./);
  const other = await words(t, corpus(200, 'passage'), { ...BM25, analyser: 'whitespace' });
  copyFileSync(join(other, 'shard-00001', 'contents.bm25'), join(shard, 'contents.bm25'));
  record(shard, () => ({}));
  const analyser = /contents\.bm25: its analyser is whitespace, the manifest says english\./;
  assert.match((await messages(folder)).join('\n'), analyser);
});

test('an inverted index of other passages with the same counts is found by analysing a sample', { skip }, async (t) => {
  const folder = await words(t);
  const shard = join(folder, 'shard-00000');
  const others = await words(t, corpus(200, 'sentence'));
  copyFileSync(join(others, 'shard-00000', 'contents.bm25'), join(shard, 'contents.bm25'));
  record(shard, () => ({}));
  assert.deepEqual(await messages(folder), [], 'not seen without a sample');
  const found = await messages(folder, 20);
  assert.equal(found.length, 5, 'the first five rows are listed');
  for (const message of found) {
    assert.match(message, /^shard-00000\/contents\.bm25: row \d+ lacks the term "passag", which its passage has\./);
  }
  // Each row has its passage's terms, some of them another number of times.
  const repeated = await words(t, corpus(200, 'passage', 5));
  copyFileSync(join(repeated, 'shard-00000', 'contents.bm25'), join(shard, 'contents.bm25'));
  const { terms, postings, tokens, documents } = readShardManifest(join(repeated, 'shard-00000')).bm25!.indexes[0]!;
  record(shard, () => ({ terms, postings, tokens, documents }));
  assert.match(
    (await messages(folder, 200)).join('\n'),
    /another frequency of "\w+" than \d, or another length than \d+ terms/,
  );
});

test('of two inverted indexes of a shard, the sample is compared with the one that is searched', {
  skip,
}, async (t) => {
  const whitespace: Bm25Settings = { ...BM25, analyser: 'whitespace' };
  const folder = await words(t);
  // As `trawl optimize --bm25` leaves them if it is killed after manifest.json and before the first shard.json.
  const wanted = await words(t, corpus(200, 'passage'), whitespace);
  const { bm25 } = readIndexManifest(wanted);
  const { path } = bm25!.deleted![0]!;
  copyFileSync(join(wanted, path), join(folder, path));
  replaceDeletedRecord(folder, { ...readIndexManifest(folder), bm25: bm25! });
  for (const shard of ['shard-00000', 'shard-00001']) addNext(join(folder, shard), join(wanted, shard));
  const report = await verifyIndex(folder, { sample: 20 });
  assert.deepEqual([report.problems, report.analysed], [[], 20]);

  const others = await words(t, corpus(200, 'sentence'), whitespace);
  addNext(join(folder, 'shard-00000'), join(others, 'shard-00000'));
  const found = await messages(folder, 20);
  assert.equal(found.length, 5);
  for (const message of found) {
    assert.match(message, /^shard-00000\/contents\.2\.bm25: row \d+ lacks the term "passage", which its passage has\./);
  }
});

/** Gives a shard the inverted index of another as the one that is to replace its own. */
function addNext(shard: string, source: string): void {
  const manifest = readShardManifest(shard);
  const { made, indexes } = readShardManifest(source).bm25!;
  const path = 'contents.2.bm25';
  copyFileSync(join(source, 'contents.bm25'), join(shard, path));
  const bytes = readFileSync(join(shard, path));
  const others = manifest.files.filter((file) => file.path !== path);
  const files = [...others, { path, bytes: bytes.length, sha256: sha256Of(bytes) }];
  const nextBm25 = { made, indexes: [{ ...indexes[0]!, path }] };
  writeFileSync(join(shard, 'shard.json'), JSON.stringify(withChecksum({ ...manifest, nextBm25, files })));
}

test('the inverted index of deleted rows is checked as the others are', { skip }, async (t) => {
  const folder = await words(t);
  const copy = `${folder}-copy`;
  cpSync(folder, copy, { recursive: true });
  await removePassages(copy, ['5']);
  const [sound, more] = [folder, copy].map((index) => {
    const { path } = readIndexManifest(index).bm25!.deleted![0]!;
    return readFileSync(join(index, path));
  });
  const path = replaceDeleted(folder, more!);
  assert.match(
    (await messages(folder, 0, true)).join('\n'),
    new RegExp(`^${path}: it has 3 rows, but 2 rows are deleted\\.`),
  );
  // The term index, behind the checksums of both manifest and header.
  const changed = Buffer.from(sound!);
  changed[changed.length - 1]! ^= 1;
  replaceDeleted(folder, changed);
  assert.deepEqual(await messages(folder, 0, true), []);
  assert.match((await messages(folder)).join('\n'), new RegExp(`^${path}: the checksum of its .* does not match`));
  replaceDeleted(folder, sound!);
  assert.deepEqual(await messages(folder), []);
  const manifest = readIndexManifest(folder);
  const without = withChecksum({ ...manifest, bm25: { ...manifest.bm25!, deleted: [] } });
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(without));
  assert.match(
    (await messages(folder)).join('\n'),
    /^manifest\.json: 2 rows are deleted, but it names no inverted index of their field contents\./,
  );
  replaceDeletedRecord(folder, manifest);
  rmSync(join(folder, path));
  assert.match((await messages(folder)).join('\n'), new RegExp(`^${path}: cannot be read`));
});

function replaceDeletedRecord(folder: string, manifest: ReturnType<typeof readIndexManifest>): void {
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(withChecksum(manifest)));
}

test('passages are read one by one as they are analysed, not all of a shard at once', { skip }, async (t) => {
  const folder = await words(t);
  const read = t.mock.method(PassageFile.prototype, 'document');
  const counts: number[] = [];
  const explain = kernel!.explainLexical;
  t.mock.method(
    kernel as { explainLexical: typeof explain },
    'explainLexical',
    (...args: Parameters<typeof explain>) => {
      counts.push(read.mock.callCount());
      return explain(...args);
    },
  );
  await verifyIndex(folder, { sample: 80 });
  assert.deepEqual(
    counts,
    Array.from({ length: 80 }, (_, i) => i + 1),
  );
});
