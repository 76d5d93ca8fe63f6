import { rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { currentIndex, type WantedIndex } from '../../indexer/building/is-current.ts';
import assert from '../helpers/assert.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, writeCorpus } from './build.ts';
import { FAKE_MODEL } from './fake-text-encoder.ts';

const FILES = {
  'a.jsonl': [
    { id: 1, contents: 'one' },
    { id: 2, contents: 'two' },
  ],
  'b.tsv': '3\tthree\n4\tfour\n',
};

/** An index of two files, and a check whether it is current for other options. */
async function indexed(
  t: TestContext,
  files: Parameters<typeof writeCorpus>[1] = FILES,
  corpusOptions: WantedIndex['corpusOptions'] = {},
): Promise<{
  folder: string;
  out: string;
  corpus: string[];
  current: (change?: Partial<WantedIndex>) => Promise<boolean>;
}> {
  const folder = await tempFolder(t);
  const out = join(folder, 'index');
  const corpus = writeCorpus(folder, files);
  const { manifest } = await build({ corpus, out, corpusOptions });
  const current = async (change: Partial<WantedIndex> = {}): Promise<boolean> => {
    const wanted = {
      corpus,
      corpusOptions,
      uniqueIds: false,
      encoder: { identity: FAKE_MODEL },
      passageTemplate: '{contents}',
      ...change,
    };
    const found = await currentIndex(out, wanted);
    if (found !== undefined) assert.deepEqual(found, manifest);
    return found !== undefined;
  };
  return { folder, out, corpus, current };
}

test('an index of the same files, model and options is current', async (t) => {
  const { current } = await indexed(t);
  assert.equal(await current(), true);
  assert.equal(await current({ uniqueIds: true, corpusOptions: { skipBadLines: true } }), true);
});

test('an index is not current for another template, model or limit of the model', async (t) => {
  const { current } = await indexed(t);
  assert.equal(await current({ passageTemplate: '{contents} ' }), false);
  assert.equal(await current({ encoder: { identity: { ...FAKE_MODEL, sha256: 'e'.repeat(64) } } }), false);
  assert.equal(
    await current({ encoder: { identity: { ...FAKE_MODEL, maxTokens: { query: 32, passage: 17 } } } }),
    false,
  );
  assert.equal(
    await current({ encoder: { identity: { ...FAKE_MODEL, prefixes: { query: '', passage: 'passage: ' } } } }),
    false,
  );
});

test('an index is not current for more, fewer, renamed or reordered files', async (t) => {
  const { folder, corpus, current } = await indexed(t);
  const [extra] = writeCorpus(folder, { 'c.jsonl': [{ contents: 'more' }] });
  const [renamed] = writeCorpus(folder, { 'z.jsonl': FILES['a.jsonl'] });
  assert.equal(await current({ corpus: [...corpus, extra!] }), false);
  assert.equal(await current({ corpus: [corpus[0]!] }), false);
  assert.equal(await current({ corpus: [renamed!, corpus[1]!] }), false);
  assert.equal(await current({ corpus: corpus.toReversed() }), false);
});

test('an index is not current for files with other bytes, also of the same length', async (t) => {
  const { corpus, current } = await indexed(t);
  writeFileSync(corpus[1]!, '3\tthree\n4\tfive\n');
  assert.equal(await current(), false);
  writeFileSync(corpus[1]!, '3\tthree\n4\tfour\n');
  assert.equal(await current(), true);
});

test('an index is not current if the options of reading would give other passages', async (t) => {
  const { current } = await indexed(t);
  assert.equal(await current({ corpusOptions: { tsvIdType: 'string' } }), false);
  assert.equal(await current({ corpusOptions: { tsvLayout: 'r1-searcher' } }), true);
  // The first rows are the same with it.
  assert.equal(await current({ corpusOptions: { columns: { text: 'contents' } } }), false);
});

test('an index is not current if a build would fail at lines that were skipped', async (t) => {
  const bad = await indexed(t, { 'a.jsonl': '{"contents": "x"}\nbroken\n' }, { skipBadLines: true });
  assert.equal(await bad.current(), true);
  assert.equal(await bad.current({ corpusOptions: {} }), false);
  const repeated = await indexed(t, {
    'a.jsonl': [
      { id: 1, contents: 'x' },
      { id: 1, contents: 'y' },
    ],
  });
  assert.equal(await repeated.current(), true);
  assert.equal(await repeated.current({ uniqueIds: true }), false);
});

test('a damaged or absent index is not current', async (t) => {
  const { out, current } = await indexed(t);
  truncateSync(join(out, 'shard-00000', 'vectors.faiss'), 60);
  assert.equal(await current(), false);
  rmSync(out, { recursive: true });
  assert.equal(await current(), false);
});

test('a missing corpus is an error, not a change', async (t) => {
  const { folder, current } = await indexed(t);
  await assert.rejects(current({ corpus: [join(folder, 'none.jsonl')] }), trawlError('CORPUS_NOT_FOUND'));
});
