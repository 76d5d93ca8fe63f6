import assert from 'node:assert/strict';
import { cpSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { bm25Settings } from '../../../indexer/lexical/make-lexical.ts';
import { optimizeIndex } from '../../../indexer/optimize/optimize-index.ts';
import { openLexicalFields } from '../../../src/engine/lexical/open-lexical-index.ts';
import { readIndexManifest } from '../../../src/index/manifest/read-manifest.ts';
import { openIndexDirectory, openShard } from '../../../src/search/opening/index-directory.ts';
import { openUnchanged } from '../../../src/search/opening/open-unchanged.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { build, writeCorpus } from '../../indexer/build.ts';
import { rows } from '../../indexer/updated-index.ts';

const BM25 = bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] });

/** An index of words, and a function that makes its inverted indexes with another analyser. */
async function words(t: TestContext) {
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  const corpus = writeCorpus(folder, { 'c.jsonl': rows(0, 1, 2, 3) });
  await build({ corpus, out, bm25: BM25, encoder: undefined, shardRows: 2 });
  const optimized = join(folder, 'optimized');
  cpSync(out, optimized, { recursive: true });
  const bm25 = { ...BM25, analyser: 'whitespace' } as const;
  await optimizeIndex(optimized, undefined, { float16: false, onStep: () => undefined, bm25 });
  return {
    out,
    /** Replaces the index by its optimized copy. */
    replace() {
      renameSync(out, join(folder, 'before'));
      renameSync(optimized, out);
    },
  };
}

test('an index that is optimized between the reading of its manifests is read again', async (t) => {
  const { out, replace } = await words(t);
  let calls = 0;
  const analysers = openUnchanged(out, () => {
    const manifest = readIndexManifest(out);
    if (calls++ === 0) replace();
    const shards = manifest.shards.map((entry) => openShard(out, manifest, entry));
    return shards.map((shard) => shard.manifest.bm25!.made.analyser);
  });
  assert.deepEqual(analysers, ['whitespace', 'whitespace']);
  assert.equal(calls, 2);
});

test('an index whose inverted indexes are replaced before they are opened is read again', async (t) => {
  const { out, replace } = await words(t);
  let calls = 0;
  const fields = await openUnchanged(out, () => {
    const { lexical } = openIndexDirectory(out);
    if (calls++ === 0) replace();
    return openLexicalFields(lexical);
  });
  assert.equal(fields.indexes.get('contents')!.analyser, 'whitespace');
  assert.equal(calls, 2);
  await fields.close();
});

test('a damaged index is opened twice at most, and an error that is not of its files is not retried', async (t) => {
  const { out } = await words(t);
  const manifest = readIndexManifest(out);
  let calls = 0;
  const open = (): unknown => {
    calls++;
    return openShard(out, { ...manifest, dimension: 3 }, manifest.shards[0]!);
  };
  assert.throws(() => openUnchanged(out, open), trawlError('INDEX_FILE_FOREIGN'));
  assert.equal(calls, 2);
  const wrong = new TypeError('wrong');
  calls = 0;
  const throwing = (): void => {
    calls++;
    throw wrong;
  };
  assert.throws(() => openUnchanged(out, throwing), wrong);
  assert.equal(calls, 1);
  writeFileSync(join(out, 'manifest.json'), '{');
  assert.throws(() => openIndexDirectory(out), trawlError('INDEX_MANIFEST_INVALID'));
});

test('an index that changes whenever it is opened ends with the error', async (t) => {
  const { out } = await words(t);
  let calls = 0;
  const open = (): void => {
    const path = join(out, 'shard-00001', 'shard.json');
    writeFileSync(path, `${readFileSync(path, 'utf8')} `);
    calls++;
    openShard(out, { ...readIndexManifest(out), dimension: 3 }, readIndexManifest(out).shards[0]!);
  };
  assert.throws(() => openUnchanged(out, open), trawlError('INDEX_FILE_FOREIGN'));
  assert.equal(calls, 11);
});
