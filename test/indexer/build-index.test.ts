import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { BuildProgress } from '../../indexer/building/stages.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import assert from '../helpers/assert.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, readIndex, vectorsOf, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';
import { indexProblems } from './index-problems.ts';

const ROWS = [
  { id: 'a', contents: '"Alpha"\nThe first of all.' },
  { id: 'b', title: 'Beta', text: 'The second one.', url: 'https://example.org' },
  { id: 'c', contents: 'A passage without a title.' },
] as const;

/** Folder for a corpus and an index beside it. */
async function places(t: TestContext): Promise<{ folder: string; out: string }> {
  const folder = await tempFolder(t);
  return { folder, out: join(folder, 'index') };
}

/** Neither the index nor an unfinished build of it exists. */
function assertNothingLeft(out: string): void {
  const left = readdirSync(dirname(out)).filter((name) => name.startsWith(basename(out)));
  assert.deepEqual(left, []);
}

test('each row has the vector of its text, and the document as the corpus has it', async (t) => {
  const { folder, out } = await places(t);
  const encoder = new FakeTextEncoder();
  const summary = await build({ corpus: writeCorpus(folder, { 'c.jsonl': ROWS }), out, encoder });
  const texts = ['"Alpha"\nThe first of all.', '"Beta"\nThe second one.', 'A passage without a title.'];
  assert.deepEqual(encoder.texts, texts);
  const { manifest, vectors, documents } = readIndex(out);
  assert.deepEqual(
    vectors,
    texts.map((text) => encoder.vectorOf(text)),
  );
  assert.deepEqual(
    documents,
    ROWS.map((row) => JSON.stringify(row)),
  );
  assert.deepEqual([manifest.rows, manifest.dimension, manifest.metric], [3, 8, 'inner-product']);
  assert.deepEqual(manifest, summary.manifest);
  assert.equal(summary.folder, out);
  assert.equal(summary.tokens, texts.join(' ').split(/\s+/).length);
  assert.deepEqual(readdirSync(out).sort(), ['manifest.json', 'shard-00000']);
  assert.deepEqual(readdirSync(join(out, 'shard-00000')).sort(), ['passages.sqlite', 'shard.json', 'vectors.faiss']);
  assert.equal(existsSync(`${out}.partial`), false);
  assert.deepEqual(await indexProblems(out), []);
});

test('with a real encoder each row has the vector of its text embedded alone, bit for bit', async (t) => {
  const { folder, out } = await places(t);
  const encoder = await openEncoder('token-average-256', { workers: 2 });
  t.after(() => encoder.close());
  const rows = Array.from({ length: 700 }, (_, i) => ({
    id: i,
    contents: `Passage ${i}: ${'words and rivers '.repeat(i % 9)}`,
  }));
  await build({ corpus: writeCorpus(folder, { 'c.jsonl': rows }), out, encoder });
  const { vectors } = readIndex(out);
  for (const row of [0, 1, 255, 256, 511, 699]) {
    assert.deepEqual([vectors[row]], await vectorsOf(encoder, [rows[row]!.contents]));
  }
});

test('JSONL, gzip, TSV and folders are read in the given order', async (t) => {
  const { folder, out } = await places(t);
  writeCorpus(folder, {
    'first.tsv': 'id\ttext\ttitle\n1\tfrom tsv\tT\n',
    'dir/b.jsonl.gz': [{ id: 'gz', contents: 'from gzip' }],
    'dir/a.jsonl': [{ id: 'dir', contents: 'from the directory' }],
    'last.tsv.gz': '7\tfrom the last, two fields\n',
  });
  const corpus = ['last.tsv.gz', 'dir', 'first.tsv'].map((name) => join(folder, name));
  await build({ corpus, out });
  const { manifest, documents } = readIndex(out);
  assert.deepEqual(
    documents.map((text) => JSON.parse(text) as unknown),
    [
      { id: 7, contents: 'from the last, two fields' },
      { id: 'dir', contents: 'from the directory' },
      { id: 'gz', contents: 'from gzip' },
      { id: '1', title: 'T', text: 'from tsv' },
    ],
  );
  assert.deepEqual(
    manifest.corpus.files.map(({ name, passages, bytes }) => [name, passages, bytes]),
    ['last.tsv.gz', 'dir/a.jsonl', 'dir/b.jsonl.gz', 'first.tsv'].map((name) => [
      name.replace('dir/', ''),
      1,
      statSync(join(folder, name)).size,
    ]),
  );
});

test('rows keep their order whichever batch is embedded first', async (t) => {
  const { folder, out } = await places(t);
  const rows = Array.from({ length: 2_500 }, (_, i) => ({ id: i, contents: `passage ${i}` }));
  let batch = 0;
  let inFlight = 0;
  let most = 0;
  const encoder = new FakeTextEncoder({
    before: async () => {
      most = Math.max(most, ++inFlight);
      // Later batches finish first.
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, 30 - 10 * (batch++ % 4))));
      inFlight--;
    },
  });
  await build({ corpus: writeCorpus(folder, { 'c.jsonl': rows }), out, encoder });
  const { vectors, documents } = readIndex(out);
  for (const [row, { contents }] of rows.entries()) {
    assert.deepEqual(vectors[row], encoder.vectorOf(contents));
    assert.equal(documents[row], JSON.stringify(rows[row]));
  }
  // Memory is bounded by a few batches, but no encoder thread waits for the disk.
  assert.ok(most > 1 && most <= 4, `${most} batches at once`);
  assert.ok(encoder.batches.every((texts) => texts.length <= 256));
});

test('the template makes the embedded texts, and the manifest records it', async (t) => {
  const { folder, out } = await places(t);
  const encoder = new FakeTextEncoder();
  const corpus = writeCorpus(folder, { 'c.jsonl': [{ id: 1, title: 'T', text: 'x', year: 1999 }] });
  await build({ corpus, out, encoder, passageTemplate: '{year}: {title} / {text}' });
  assert.deepEqual(encoder.texts, ['1999: T / x']);
  assert.equal(readIndex(out).manifest.corpus.passageTemplate, '{year}: {title} / {text}');
});

test('a bad template, or one with a column that a late passage lacks, stops the build before embedding', async (t) => {
  const { folder, out } = await places(t);
  const encoder = new FakeTextEncoder();
  const corpus = writeCorpus(folder, {
    'c.jsonl': [...Array.from({ length: 600 }, () => ({ text: 'x', y: 'z' })), { text: 'no y' }],
  });
  await assert.rejects(build({ corpus, out, encoder, passageTemplate: '{' }), trawlError('TEMPLATE_INVALID'));
  await assert.rejects(
    build({ corpus, out, encoder, passageTemplate: '{y}' }),
    trawlError('TEMPLATE_INVALID', /c\.jsonl:601.*y/),
  );
  assert.equal(encoder.batches.length, 0);
  assertNothingLeft(out);
});

test('a bad line at the end stops the build before embedding, and leaves no file', async (t) => {
  const { folder, out } = await places(t);
  const encoder = new FakeTextEncoder();
  const good = Array.from({ length: 1_000 }, (_, i) => `{"id": ${i}, "contents": "x"}\n`).join('');
  const corpus = writeCorpus(folder, { 'c.jsonl': `${good}{"id": 1000}\n` });
  await assert.rejects(build({ corpus, out, encoder }), trawlError('CORPUS_BAD_LINE', /c\.jsonl:1001: .*contents/));
  assert.equal(encoder.batches.length, 0);
  assertNothingLeft(out);
});

test('a corpus file that grows while its passages are read is an error, and leaves no file', async (t) => {
  const { folder, out } = await places(t);
  const corpus = writeCorpus(folder, { 'c.jsonl': ROWS });
  for (const shardRows of [1, 10]) {
    const onProgress = ({ stage }: BuildProgress): void => {
      if (stage === 'read') appendFileSync(corpus[0]!, '{"contents":"one more"}\n');
    };
    const encoder = new FakeTextEncoder();
    await assert.rejects(
      build({ corpus, out, encoder, shardRows, onProgress }),
      trawlError('CORPUS_CHANGED', /c\.jsonl changed while it was read/),
    );
    assert.deepEqual(encoder.batches, []);
    assertNothingLeft(out);
  }
});

test('a build stores only the passages of shards that lack them', async (t) => {
  const { folder, out } = await places(t);
  const lines = Array.from({ length: 50 }, (_, i) => (i % 10 === 7 ? 'bad\n' : `{"contents":"passage ${i}"}\n`));
  const corpus = writeCorpus(folder, { 'c.jsonl': lines.join('') });
  const options = { corpus, corpusOptions: { skipBadLines: true }, shardRows: 10 };
  const whole = await build({ ...options, out: join(folder, 'whole') });
  const encoder = new FakeTextEncoder({ failing: () => true });
  await assert.rejects(build({ ...options, out, encoder }), trawlError('ENCODING_FAILED'));
  const place = (shard: number, file: string): string => join(`${out}.partial`, `shard-0000${shard}`, file);
  for (const shard of [1, 3]) rmSync(place(shard, 'passages.json'));
  const times = [0, 2, 4].map((shard) => statSync(place(shard, 'passages.sqlite')).mtimeMs);
  const { manifest } = await build({
    ...options,
    out,
    onProgress: ({ stage }) => {
      if (stage !== 'encode') return;
      assert.deepEqual(
        [0, 2, 4].map((shard) => statSync(place(shard, 'passages.sqlite')).mtimeMs),
        times,
      );
    },
  });
  assert.deepEqual(manifest, whole.manifest);
  assert.equal(manifest.corpus.skippedLines, 5);
});

test('skipped lines are counted, with examples, and take no row', async (t) => {
  const { folder, out } = await places(t);
  const corpus = writeCorpus(folder, {
    'c.jsonl': '{"id": 1, "contents": "x"}\nbroken\n{"id": 2}\n{"id": 3, "contents": "y"}\n',
  });
  const { manifest, skippedExamples } = await build({ corpus, out, corpusOptions: { skipBadLines: true } });
  assert.equal(manifest.corpus.skippedLines, 2);
  assert.deepEqual(
    skippedExamples.map((example) => /c\.jsonl:(\d+): /.exec(example)?.[1]),
    ['2', '3'],
  );
  assert.deepEqual(readIndex(out).documents, ['{"id": 1, "contents": "x"}', '{"id": 3, "contents": "y"}']);
});

test('repeated ids are counted with their lines; 12 and "12" are two ids', async (t) => {
  const { folder, out } = await places(t);
  const ids = ['a', 12, 'b', 'a', '12', 'b', 'a'];
  const corpus = writeCorpus(folder, { 'c.jsonl': ids.map((id, i) => ({ id, contents: `text ${i}` })) });
  const { duplicates, manifest } = await build({ corpus, out });
  assert.deepEqual(duplicates, {
    count: 3,
    examples: [
      { id: 'a', rows: [0, 3, 6], lines: [1, 4, 7] },
      { id: 'b', rows: [2, 5], lines: [3, 6] },
    ],
  });
  assert.equal(manifest.corpus.duplicateIds, 3);
  assert.equal(manifest.rows, 7);
});

test('with --unique-ids a repeated id is an error with its lines, before embedding', async (t) => {
  const { folder, out } = await places(t);
  const encoder = new FakeTextEncoder();
  const corpus = writeCorpus(folder, { 'c.jsonl': ['a', 'b', 'a'].map((id) => ({ id, contents: 'x' })) });
  await assert.rejects(
    build({ corpus, out, encoder, uniqueIds: true }),
    trawlError('CORPUS_DUPLICATE_ID', /^1 passages have the id of an earlier passage: "a" on lines 1, 3\./),
  );
  assert.equal(encoder.batches.length, 0);
  assertNothingLeft(out);
});

test('an empty corpus is an error and leaves no file', async (t) => {
  const { folder, out } = await places(t);
  for (const content of ['', '\n\n']) {
    await assert.rejects(
      build({ corpus: writeCorpus(folder, { 'c.jsonl': content }), out }),
      trawlError('CORPUS_EMPTY'),
    );
    assertNothingLeft(out);
  }
});

test('truncated passages are counted', async (t) => {
  const { folder, out } = await places(t);
  const rows = [5, 16, 17, 100].map((words) => ({ contents: 'w '.repeat(words).trim() }));
  const { manifest, tokens } = await build({ corpus: writeCorpus(folder, { 'c.jsonl': rows }), out });
  assert.equal(manifest.corpus.truncatedPassages, 2);
  assert.equal(tokens, 5 + 16 + 16 + 16);
});

test('when the encoder fails on a text, the error names its row, and the vectors before it are kept', async (t) => {
  const { folder, out } = await places(t);
  const rows = Array.from({ length: 900 }, (_, i) => ({ contents: `passage ${i}` }));
  const encoder = new FakeTextEncoder({ failing: (text) => text === 'passage 777' });
  await assert.rejects(
    build({ corpus: writeCorpus(folder, { 'c.jsonl': rows }), out, encoder }),
    trawlError(
      'ENCODING_FAILED',
      /^The passage of row 777 \(line 778\) could not be embedded: .* run the same command again/,
    ),
  );
  assert.equal(existsSync(out), false);
  const repaired = new FakeTextEncoder();
  const { resumedRows } = await build({ corpus: [join(folder, 'c.jsonl')], out, encoder: repaired });
  assert.equal(resumedRows, 768);
  assert.equal(repaired.texts.length, 900 - 768);
  assert.equal(readIndex(out).documents.length, 900);
});

test('a vector that is not finite is an error with its row and column, and is not written', async (t) => {
  const { folder, out } = await places(t);
  const rows = Array.from({ length: 600 }, (_, i) => ({ contents: `passage ${i}` }));
  const encoder = new FakeTextEncoder({ firstValue: (text) => (text === 'passage 300' ? Number.NaN : undefined) });
  await assert.rejects(
    build({ corpus: writeCorpus(folder, { 'c.jsonl': rows }), out, encoder }),
    trawlError('NON_FINITE_VECTOR', /row 300 .*NaN.*column 0/),
  );
  assert.equal(existsSync(out), false);
  assert.equal((await build({ corpus: [join(folder, 'c.jsonl')], out })).resumedRows, 256);
});

for (const stage of ['scan', 'read', 'encode'] as const) {
  test(`a build that is stopped in the stage ${stage} keeps embedded passages, and nothing else`, async (t) => {
    const { folder, out } = await places(t);
    const rows = Array.from({ length: 5_000 }, (_, i) => ({ contents: `passage ${i}` }));
    const controller = new AbortController();
    const encoder = new FakeTextEncoder();
    const stages = new Set<string>();
    const onProgress = (progress: BuildProgress): void => {
      stages.add(progress.stage);
      if (progress.stage === stage && (stage !== 'encode' || progress.passages > 0)) controller.abort();
    };
    await assert.rejects(
      build({ corpus: writeCorpus(folder, { 'c.jsonl': rows }), out, encoder, onProgress, signal: controller.signal }),
      trawlError('CANCELLED'),
    );
    assert.equal(encoder.batches.length > 0, stage === 'encode');
    assert.equal(stages.has('finish'), false);
    if (stage !== 'encode') return assertNothingLeft(out);
    assert.equal(existsSync(out), false);
    const summary = await build({ corpus: [join(folder, 'c.jsonl')], out });
    assert.ok(summary.resumedRows >= 256 && summary.resumedRows < 5_000, `${summary.resumedRows}`);
  });
}

test('progress reports all stages in order, each to its end', async (t) => {
  const { folder, out } = await places(t);
  const rows = Array.from({ length: 4_500 }, (_, i) => ({ contents: `passage ${i}` }));
  const seen: BuildProgress[] = [];
  await build({ corpus: writeCorpus(folder, { 'c.jsonl': rows }), out, onProgress: (progress) => seen.push(progress) });
  assert.deepEqual([...new Set(seen.map(({ stage }) => stage))], ['scan', 'read', 'encode', 'finish']);
  for (const stage of ['read', 'encode', 'finish']) {
    const ofStage = seen.filter((progress) => progress.stage === stage);
    const counts = ofStage.map(({ passages }) => passages);
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
    );
    assert.equal(counts.at(-1), 4_500);
  }
  const shares = seen.flatMap(({ readShare }) => readShare ?? []);
  assert.ok(shares.length >= 3 && shares.every((share) => share >= 0 && share <= 1));
});

test('two builds of a corpus are equal: vectors and manifests byte for byte, passage files in content', async (t) => {
  const { folder, out } = await places(t);
  const rows = Array.from({ length: 800 }, (_, i) => ({ id: `p${i}`, contents: `passage ${i}` }));
  const corpus = writeCorpus(folder, { 'c.jsonl': rows });
  await build({ corpus, out });
  await build({ corpus, out: `${out}2` });
  for (const file of ['manifest.json', 'shard-00000/shard.json', 'shard-00000/vectors.faiss']) {
    assert.deepEqual(readFileSync(join(out, file)), readFileSync(join(`${out}2`, file)), file);
  }
  assert.deepEqual(readIndex(out).documents, readIndex(`${out}2`).documents);
  assert.doesNotMatch(readFileSync(join(out, 'manifest.json'), 'utf8'), /trawl-test|\/tmp|20\d\d-/);
});

test('the generation changes with passages, template, model and vectors, and with nothing else', async (t) => {
  const { folder, out } = await places(t);
  const corpus = writeCorpus(folder, { 'c.jsonl': ROWS });
  const generations = new Set<string>();
  const generation = async (name: string, change: Partial<Parameters<typeof build>[0]> = {}): Promise<string> =>
    (await build({ corpus, out: `${out}-${name}`, ...change })).manifest.generation;
  const first = await generation('first');
  assert.equal(await generation('same', { uniqueIds: true, corpusOptions: { skipBadLines: true } }), first);
  generations.add(first);
  generations.add(await generation('template', { passageTemplate: '{contents} ' }));
  generations.add(await generation('model', { encoder: new FakeTextEncoder({ model: { sha256: 'e'.repeat(64) } }) }));
  generations.add(await generation('vectors', { encoder: new FakeTextEncoder({ firstValue: () => 0.5 }) }));
  generations.add(await generation('order', { corpus: writeCorpus(folder, { 'd.jsonl': ROWS.toReversed() }) }));
  assert.equal(generations.size, 5);
});

test('memory does not grow with the corpus', { skip: withoutSharedData('pool_wiki_dev/corpus.jsonl') }, async (t) => {
  const { folder, out } = await places(t);
  const { runModule } = await import('../helpers/run-module.ts');
  const lines = readFileSync(sharedData('pool_wiki_dev/corpus.jsonl'), 'utf8').split('\n');
  /** Peak resident memory in MiB of an index built in a process of its own. */
  const peak = (count: number): number => {
    const [corpus] = writeCorpus(folder, { 'c.jsonl': `${lines.slice(0, count).join('\n')}\n` });
    const args = ['index', corpus, '--out', `${out}${count}`, '--quiet'];
    const { stdout, stderr } = runModule(`
      import { main } from '#root/cli/program/main.js';
      if (await main(${JSON.stringify(args)}) !== 0) throw new Error('the build failed');
      console.log(process.resourceUsage().maxRSS / 1024);
    `);
    assert.notEqual(stdout, '', stderr);
    return Number(stdout);
  };
  const [small, large] = [peak(250), peak(5_000)];
  assert.ok(large - small < 160, `${small.toFixed()} MiB for 250 passages, ${large.toFixed()} MiB for 5,000`);
  assert.equal(readIndex(`${out}5000`).documents.length, 5_000);
});
