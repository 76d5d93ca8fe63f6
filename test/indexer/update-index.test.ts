import { existsSync, lstatSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { currentIndex } from '../../indexer/building/is-current.ts';
import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import { recordedReading } from '../../indexer/update/last-reading.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { planShards } from '../../indexer/update/update-index.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import assert from '../helpers/assert.ts';
import { runs } from '../helpers/runs.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, writeCorpus } from './build.ts';
import { FAKE_MODEL, FakeTextEncoder } from './fake-text-encoder.ts';
import { indexProblems } from './index-problems.ts';
import { filesOf, searchIndex, update } from './update.ts';
import { indexed, kernel, liveIds, row, rows, skip, withoutRow } from './updated-index.ts';

test('of the recorded reading, only the options of a corpus are taken', () => {
  const options = { tsvLayout: 'auto', tsvIdType: 'auto', skipBadLines: true };
  const manifest = { shards: [], lastUpdate: { reading: { ...options, format: null, later: 1 } } };
  assert.deepEqual(recordedReading('', manifest as unknown as IndexManifest), options);
});

test('known passages keep their rows, new ones follow, missing ones are deleted', async (t) => {
  const { out, to } = await indexed(t, rows(0, 1, 2, 3));
  const encoder = new FakeTextEncoder();
  const old = filesOf(join(out, 'shard-00000'));
  const summary = await to([row(3), row(9), row(1, 'another text'), row(0)], { encoder });
  assert.deepEqual(
    [summary.kept, summary.added, summary.removed, summary.restored, summary.changed],
    [2, 2, 2, 0, true],
  );
  assert.deepEqual(encoder.texts, ['passage 9', 'another text'], 'nothing else is embedded');
  assert.deepEqual(await liveIds(out), { 0: 0, 3: 3, 4: 9, 5: 1 });
  const { manifest } = summary;
  assert.deepEqual(manifest, readIndexManifest(out));
  assert.deepEqual(
    manifest.shards.map(({ path, firstRow, rows: count }) => [path, firstRow, count]),
    [
      ['shard-00000', 0, 4],
      ['shard-00001', 4, 2],
    ],
  );
  assert.equal(manifest.tombstones?.rows, 2);
  assert.equal(manifest.tombstones.path, `tombstones-${manifest.generation}.bin`);
  assert.deepEqual(filesOf(join(out, 'shard-00000')), old, 'no file of an old shard is touched');
  assert.deepEqual(await indexProblems(out), []);
  assert.equal(existsSync(`${out}.partial`), false);
});

test('the manifest names the corpus of the index and the last update', async (t) => {
  const { out, to } = await indexed(t, rows(0, 1, 2));
  const before = readIndexManifest(out).generation;
  const { manifest } = await to(`${JSON.stringify(row(1))}\nnot JSON\n${JSON.stringify(row(5))}\n`, {
    corpusOptions: { skipBadLines: true },
  });
  assert.deepEqual(
    manifest.corpus.files.map(({ name, passages }) => [name, passages]),
    [['corpus-1.jsonl', 2]],
  );
  assert.equal(manifest.corpus.skippedLines, 1);
  assert.deepEqual(manifest.lastUpdate, {
    kind: 'update',
    before,
    reading: { format: null, tsvLayout: 'auto', tsvIdType: 'auto', skipBadLines: true },
  });
  const appended = await to(rows(1, 7), { type: 'append' });
  assert.deepEqual(
    appended.manifest.corpus.files.map(({ name, passages }) => [name, passages]),
    [
      ['corpus-1.jsonl', 2],
      ['corpus-2.jsonl', 2],
    ],
  );
  assert.equal(appended.manifest.lastUpdate?.before, manifest.generation);
});

test('append adds missing passages and deletes none, and a second run finds nothing to do', async (t) => {
  const { out, corpusOf } = await indexed(t, rows(0, 1, 2));
  const corpus = corpusOf(rows(2, 3, 3));
  const { added, kept, removed } = await update({ corpus, out, kernel, type: 'append' });
  assert.deepEqual([added, kept, removed], [2, 1, 0]);
  assert.deepEqual(await liveIds(out), { 0: 0, 1: 1, 2: 2, 3: 3, 4: 3 });
  const files = filesOf(out);
  const again = await update({ corpus, out, kernel, type: 'append' });
  assert.deepEqual([again.added, again.kept, again.changed], [0, 3, false]);
  assert.deepEqual(filesOf(out), files);
});

test('a deleted passage that returns gets its old row and vector', async (t) => {
  const { out, to } = await indexed(t, rows(0, 1, 2));
  const { generation } = readIndexManifest(out);
  await to(rows(0, 2));
  const encoder = new FakeTextEncoder();
  const { restored, added, manifest } = await to(rows(0, 1, 2), { encoder });
  assert.deepEqual([restored, added, encoder.texts.length], [1, 0, 0]);
  assert.equal(manifest.tombstones, null);
  assert.equal(manifest.generation, generation, 'equal content, equal generation');
  await removePassages(out, ['2']);
  assert.deepEqual(await liveIds(out), { 0: 0, 1: 1 });
  assert.equal((await to(rows(2), { type: 'append' })).restored, 1);
});

test('equal passages are counted: the index has as many rows as the corpus has passages', async (t) => {
  const same = row('same');
  const { out, to } = await indexed(t, [same, row(1), same, same]);
  assert.equal((await to([row(1), same])).removed, 2);
  assert.deepEqual(await liveIds(out), { 0: 'same', 1: 1 }, 'the first one stays');
  const more = await to([same, same, row(1), same, same]);
  assert.deepEqual([more.restored, more.added, more.kept], [2, 1, 4]);
  assert.deepEqual(await liveIds(out), { 0: 'same', 1: 1, 2: 'same', 3: 'same', 4: 'same' });
  assert.equal(more.duplicates.count, 3);
  assert.equal(more.manifest.corpus.duplicateIds, 3);
});

test('an update to the same corpus changes nothing and reads no passage', async (t) => {
  const { out, to, corpusOf } = await indexed(t, rows(0, 1, 2));
  const corpus = corpusOf(rows(2, 5));
  await update({ corpus, out, kernel });
  const files = filesOf(out);
  const stages: string[] = [];
  const { changed, kept } = await update({ corpus, out, onProgress: ({ stage }) => stages.push(stage) });
  assert.deepEqual([changed, kept, stages.includes('compare')], [false, 2, false]);
  assert.deepEqual(filesOf(out), files);
  assert.equal(existsSync(`${out}.partial`), false);
  // The same passages in another file: compared, nothing embedded, and the manifest names the new file.
  const other = await to(rows(5, 2));
  assert.deepEqual(
    [other.changed, other.added, other.manifest.generation],
    [false, 0, readIndexManifest(out).generation],
  );
  assert.equal(readIndexManifest(out).corpus.files[0]!.name, 'corpus-2.jsonl');
});

test('all rows of a shard, and all but one of the index, can be deleted', async (t) => {
  const { out, to } = await indexed(t, rows(0, 1, 2, 3, 4, 5), { shardRows: 2 });
  await to(rows(0, 1, 4, 5));
  for (const engine of ['fastest', 'reference'] as const) {
    assert.equal((await searchIndex(out, 'any', 3, engine)).length, 3);
    assert.equal((await searchIndex(out, 'any', 1_000, engine)).length, 4, 'k is larger than the number of live rows');
  }
  await to(rows(9));
  assert.deepEqual(await liveIds(out), { 6: 9 });
  await removePassages(out, ['9']);
  for (const engine of ['fastest', 'reference'] as const) {
    assert.deepEqual(await searchIndex(out, 'any', 3, engine), []);
  }
});

test('new passages are cut into shards of at most --shard-rows, whose numbers follow', async (t) => {
  const { out, to } = await indexed(t, rows(0, 1, 2, 3), { shardRows: 2 });
  await to(rows(0, 1, 2, 3, 4, 5, 6, 7, 8), { shardRows: 2 });
  assert.deepEqual(
    readIndexManifest(out).shards.map(({ path, rows: count }) => `${path} ${count}`),
    ['shard-00000 2', 'shard-00001 2', 'shard-00002 1', 'shard-00003 2', 'shard-00004 2'],
  );
});

test('new passages are distributed evenly, each to one shard, however far apart they are', () => {
  const cases = fc.tuple(fc.array(fc.boolean(), { minLength: 1, maxLength: 200 }), fc.integer({ min: 1, max: 30 }));
  fc.assert(
    fc.property(cases, ([isNew, shardRows]) => {
      const added = new RowBitmap(isNew.length);
      for (const [position, yes] of isNew.entries()) if (yes) added.add(position);
      const places = planShards(added, shardRows, (shard) => `${shard}`);
      const within = places.map(({ first, end }) =>
        [...added].filter((position) => position >= first && position < end),
      );
      assert.deepEqual(within.flat(), [...added]);
      assert.deepEqual(
        within.map(({ length }) => length),
        places.map(({ rows: count }) => count),
      );
      for (const { rows: count } of places) assert.ok(count > 0 && count <= shardRows);
      assert.equal(places.length, Math.ceil(added.count() / shardRows));
    }),
  );
});

test('after any sequence of updates, appends and removals, searches are as in a fresh build', async (t) => {
  const passage = fc.record(
    { id: fc.nat(11), contents: fc.constantFrom('', ' a', ' b').map((end) => `text${end}`), note: fc.constant('n') },
    { requiredKeys: ['id', 'contents'] },
  );
  const corpus = fc.array(passage, { minLength: 1, maxLength: 15 });
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ type: fc.constant('update' as const), corpus }) },
    { weight: 2, arbitrary: fc.record({ type: fc.constant('append' as const), corpus }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant('remove' as const), ids: fc.array(fc.nat(11), { maxLength: 3 }) }),
    },
  );
  const cases = fc.tuple(corpus, fc.array(step, { minLength: 2, maxLength: 5 }), fc.integer({ min: 4, max: 12 }));
  await fc.assert(
    fc.asyncProperty(cases, async ([first, steps, shardRows]) => {
      const { folder, out, to } = await indexed(t, first, { shardRows });
      let expected = first.map((one) => JSON.stringify(one));
      for (const change of steps) {
        if (change.type === 'remove') {
          const isGone = (document: string): boolean =>
            change.ids.includes((JSON.parse(document) as { id: number }).id);
          const { removed } = await removePassages(out, change.ids.map(String));
          assert.equal(removed, expected.filter(isGone).length);
          expected = expected.filter((document) => !isGone(document));
        } else {
          const documents = change.corpus.map((one) => JSON.stringify(one));
          const before = [...expected];
          const missing = documents.filter((document) => !takeOne(before, document));
          const { added, restored, kept } = await to(change.corpus, { type: change.type, shardRows });
          assert.deepEqual([added + restored, kept - restored + added + restored], [missing.length, documents.length]);
          expected = change.type === 'append' ? [...expected, ...missing] : documents;
        }
        const found = await searchIndex(out, 'any', 100);
        assert.deepEqual(found.map(({ document }) => document).sort(), [...expected].sort());
      }
      assert.deepEqual(await indexProblems(out), []);
      if (expected.length === 0) return;
      const fresh = join(folder, 'fresh');
      const text = expected.map((document) => `${document}\n`).join('');
      const { duplicates } = await build({ corpus: writeCorpus(folder, { 'fresh.jsonl': text }), out: fresh, kernel });
      const { manifest } = openIndexDirectory(out);
      assert.equal(manifest.corpus.duplicateIds, duplicates.count);
      for (const engine of ['fastest', 'reference'] as const) {
        const wanted = await searchIndex(fresh, 'a query', 100, engine);
        assert.deepEqual((await searchIndex(out, 'a query', 100, engine)).map(withoutRow), wanted.map(withoutRow));
        // Of two equal scores at the end of the results, either may be included.
        assert.deepEqual(
          (await searchIndex(out, 'a query', 3, engine)).map(({ score }) => score),
          wanted.slice(0, 3).map(({ score }) => score),
        );
      }
    }),
    { numRuns: runs(3, 6), seed: 20_261_121 },
  );
});

function takeOne(list: string[], document: string): boolean {
  const at = list.indexOf(document);
  if (at >= 0) list.splice(at, 1);
  return at >= 0;
}

test('another model is refused, and the error names what differs', async (t) => {
  const { out, to } = await indexed(t, rows(0, 1));
  const files = filesOf(out);
  const others = [
    [{ sha256: 'e'.repeat(64) }, /sha256: "0+", now "e+"/],
    [{ prefixes: { query: '', passage: 'passage: ' } }, /prefixes: \{.*now \{"query":"","passage":"passage: "\}/],
    [{ maxTokens: { query: 32, passage: 17 } }, /maxTokens/],
    [{ precision: 'float16' }, /precision: "float32", now "float16"/],
    [{ batchInvariant: false }, /batchInvariant: true, now false/],
  ] as const;
  for (const [model, message] of others) {
    await assert.rejects(
      to(rows(2), { encoder: new FakeTextEncoder({ model }) }),
      trawlError('MODEL_MISMATCH', message),
    );
  }
  assert.deepEqual(filesOf(out), files);
  assert.equal(existsSync(`${out}.partial`), false);
  // A folder of another name is the same model.
  const { manifest } = await to(rows(2), { encoder: new FakeTextEncoder({ model: { name: 'renamed' } }) });
  assert.equal(manifest.model!.name, FAKE_MODEL.name);
  openIndexDirectory(out);
});

test('without an index, a corpus or a passage, the update fails and changes nothing', async (t) => {
  const { folder, out, to } = await indexed(t, rows(0, 1));
  const files = filesOf(out);
  await assert.rejects(
    update({ corpus: writeCorpus(folder, { 'c.jsonl': rows(1) }), out: join(folder, 'none') }),
    trawlError('INDEX_NOT_FOUND'),
  );
  await assert.rejects(update({ corpus: [join(folder, 'no.jsonl')], out }), trawlError('CORPUS_NOT_FOUND'));
  await assert.rejects(to(''), trawlError('CORPUS_EMPTY'));
  await assert.rejects(to('{"id": 1, "contents": 3}\n'), trawlError('CORPUS_BAD_LINE'));
  await assert.rejects(to([{ id: 7, text: 'no contents', title: 4 }]), trawlError('CORPUS_BAD_LINE'));
  assert.deepEqual(filesOf(out), files);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('ix') || name === 'none'),
    ['ix'],
  );
});

test('--unique-ids counts live rows, not deleted ones', async (t) => {
  const { out, to } = await indexed(t, rows(0, 1, 2));
  // A changed passage keeps its id: the row with the old text does not count.
  const { added, removed } = await to([row(0), row(1, 'new text'), row(2)], { uniqueIds: true });
  assert.deepEqual([added, removed], [1, 1]);
  const { generation } = readIndexManifest(out);
  const encoder = new FakeTextEncoder();
  await assert.rejects(
    to([row(2, 'other')], { type: 'append', uniqueIds: true, encoder }),
    trawlError('CORPUS_DUPLICATE_ID', /"2" on lines/),
  );
  assert.equal(encoder.batches.length, 0, 'before anything is embedded');
  assert.equal(readIndexManifest(out).generation, generation);
});

test('an index behind a link is updated in place', async (t) => {
  const { folder, out, corpusOf } = await indexed(t, rows(0, 1));
  const link = join(folder, 'latest');
  symlinkSync(out, link);
  await update({ corpus: corpusOf(rows(1, 2)), out: link });
  await removePassages(link, ['1']);
  assert.deepEqual(await liveIds(out), { 2: 2 });
  assert.deepEqual([lstatSync(link).isSymbolicLink(), existsSync(`${link}.partial`)], [true, false]);
});

test('an updated index gets codes, prefilters and float16 rows like any other, with the same results', {
  skip,
}, async (t) => {
  const many = Array.from({ length: 300 }, (_, i) => row(i));
  const { out, to } = await indexed(t, many.slice(0, 200), { kernel: undefined });
  await to(many.slice(50), { kernel: undefined });
  const before = await searchIndex(out, 'any', 20, 'reference');
  const { codesMade, rewritten } = await optimizeIndex(out, kernel!, { float16: true, onStep: () => undefined });
  assert.deepEqual([codesMade, rewritten], [2, 2]);
  assert.deepEqual(await searchIndex(out, 'any', 20), before);
  const { kept, added } = await to(many.slice(40));
  assert.deepEqual([kept, added], [260, 0], 'what was removed comes back');
  assert.deepEqual(await indexProblems(out), []);
});

test('an updated index is current for its new corpus, and for no other', async (t) => {
  const { out, to, corpusOf } = await indexed(t, rows(0, 1, 2));
  const corpus = corpusOf(rows(2, 5));
  const current = async (files = corpus): Promise<boolean> => {
    const wanted = {
      corpusOptions: {},
      uniqueIds: false,
      encoder: { identity: FAKE_MODEL },
      passageTemplate: '{contents}',
    };
    return (await currentIndex(out, { ...wanted, corpus: files })) !== undefined;
  };
  assert.equal(await current(), false);
  await update({ corpus, out });
  assert.equal(await current(), true);
  await removePassages(out, ['5']);
  assert.equal(await current(), false, 'a passage of it was removed');
  await update({ corpus, out });
  assert.equal(await current(), true);
  await to(rows(8), { type: 'append' });
  assert.equal(await current(), false);
});
