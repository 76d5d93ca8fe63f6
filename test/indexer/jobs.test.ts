import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { lockBuild } from '../../indexer/building/build-lock.ts';
import { settingsDiffer } from '../../indexer/building/build-settings.ts';
import type { JobSummary } from '../../indexer/building/build-shard-job.ts';
import { mergeIndex } from '../../indexer/building/merge-index.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { type Build, build, job as buildJob, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';
import { indexProblems } from './index-problems.ts';

const ROWS = Array.from({ length: 1_000 }, (_, i) => ({
  id: `p${i % 990}`,
  contents: `passage ${i} ${'word '.repeat(i % 20)}`,
}));
const kernel = ((loaded) => (loaded.ok ? loaded.kernel : undefined))(loadKernel());
const OPTIONS = { overwrite: false, uniqueIds: false };

async function places(
  t: TestContext,
  rows: readonly object[] = ROWS,
): Promise<{ folder: string; out: string; corpus: string[] }> {
  const folder = await tempFolder(t);
  return { folder, out: join(folder, 'ix'), corpus: writeCorpus(folder, { 'c.jsonl': rows }) };
}

function job(index: number, of: number, options: Build): Promise<JobSummary> {
  return buildJob(index, of, { kernel, ...options });
}

/** The bytes of all files except passage files. */
function filesOf(index: string): Record<string, string> {
  const names = (readdirSync(index, { recursive: true }) as string[]).filter((name) => /\.(json|faiss|i8)$/.test(name));
  return Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(index, name)).toString('base64')]));
}

test('jobs in any order build the shards that one process builds, byte for byte', async (t) => {
  const { folder, out, corpus } = await places(t);
  for (const index of [2, 0, 3, 1]) await job(index, 4, { corpus, out });
  const { manifest, duplicates } = await mergeIndex(out, OPTIONS);
  await build({ corpus, out: join(folder, 'whole'), shardRows: 250, kernel });
  assert.deepEqual(filesOf(out), filesOf(join(folder, 'whole')));
  assert.equal(existsSync(`${out}.partial`), false);
  assert.deepEqual(readdirSync(out).sort(), ['manifest.json', ...[0, 1, 2, 3].map((i) => `shard-0000${i}`)]);
  // Ids that repeat in different shards are found by the merge.
  assert.equal(manifest.corpus.duplicateIds, 10);
  assert.deepEqual(duplicates.examples[0], { id: 'p0', rows: [0, 990], lines: [1, 991] });
  assert.deepEqual(await indexProblems(out), []);
});

test('jobs and one process split TSV with a header, gzip, blank lines and bad lines into the same shards', async (t) => {
  const folder = await tempFolder(t);
  const lines = ROWS.slice(0, 120).map(({ contents }, i) =>
    i % 7 === 3 ? 'broken' : JSON.stringify({ id: i, contents }),
  );
  const corpus = writeCorpus(folder, {
    'a.tsv': `id\ttext\ttitle\n${Array.from({ length: 90 }, (_, i) => `${i}\tsome text ${i}\tT`).join('\r\n')}`,
    'b.jsonl': `${lines.join('\n')}\n\n\n`,
    'd.jsonl': '',
  });
  const packed = join(folder, 'c.jsonl.gz');
  // Two gzip members, as tools that append to a file write them.
  writeFileSync(
    packed,
    Buffer.concat([gzipSync(`${lines.slice(0, 50).join('\n')}\n`), gzipSync(lines.slice(50).join('\n'))]),
  );
  corpus.splice(1, 0, packed);
  const options = { corpus, corpusOptions: { skipBadLines: true } };
  const out = join(folder, 'jobs');
  for (let i = 0; i < 7; i++) await job(i, 7, { ...options, out });
  const { manifest } = await mergeIndex(out, OPTIONS);
  const positions = 91 + 120 + 122;
  const whole = await build({ ...options, out: join(folder, 'whole'), shardRows: Math.ceil(positions / 7), kernel });
  assert.equal(whole.manifest.shards.length, 7);
  assert.deepEqual(filesOf(out), filesOf(join(folder, 'whole')));
  const one = await build({ ...options, out: join(folder, 'one'), kernel });
  assert.deepEqual(manifest.corpus, one.manifest.corpus);
  assert.equal(manifest.rows, one.manifest.rows);
  assert.equal(manifest.corpus.skippedLines, 34);
  assert.deepEqual(
    one.manifest.corpus.files.map(({ passages }) => passages),
    [90, 103, 103, 0],
  );
});

for (const [rows, of] of [
  [3, 8],
  [5, 5],
  [1, 1],
] as const) {
  test(`${rows} passages in ${of} shards give the search results of one shard`, async (t) => {
    const { folder, out, corpus } = await places(t, ROWS.slice(0, rows));
    for (let i = 0; i < of; i++) await job(i, of, { corpus, out });
    const { manifest } = await mergeIndex(out, OPTIONS);
    assert.deepEqual([manifest.rows, manifest.shards.length], [rows, of]);
    assert.deepEqual(await indexProblems(out), []);
    await build({ corpus, out: join(folder, 'one'), kernel });
    const query = new FakeTextEncoder().vectorOf('a query');
    const found = [];
    for (const index of [out, join(folder, 'one')]) {
      const engine = await openEngine(openIndexDirectory(index).source!, {});
      found.push(await engine.search({ queries: query, count: 1, k: 3 }));
      await engine.close();
    }
    assert.deepEqual([found[0]!.rows, found[0]!.scores], [found[1]!.rows, found[1]!.scores]);
  });
}

test('a corpus without passages gives empty shards, and no index', async (t) => {
  const { out, corpus } = await places(t, []);
  for (const index of [0, 1]) assert.equal((await job(index, 2, { corpus, out })).manifest.rows, 0);
  await assert.rejects(mergeIndex(out, OPTIONS), trawlError('CORPUS_EMPTY'));
});

test('a complete shard is not built again; with other settings --restart is needed', async (t) => {
  const { out, corpus } = await places(t);
  await job(0, 2, { corpus, out });
  const encoder = new FakeTextEncoder();
  const again = await job(0, 2, { corpus, out, encoder });
  assert.deepEqual([again.wasComplete, again.complete, again.shards, encoder.texts.length], [true, 1, 2, 0]);
  const other = { corpus, out, passageTemplate: '{contents}!' };
  await assert.rejects(
    job(0, 2, other),
    trawlError('BUILD_DIFFERS', /passage template: "\{contents\}", now "\{contents\}!"/),
  );
  await assert.rejects(job(0, 3, { corpus, out }), trawlError('BUILD_DIFFERS', /part end: 500, now 333/));
  assert.equal((await job(0, 2, { ...other, restart: true })).manifest.corpus.passageTemplate, '{contents}!');
});

test('a merge needs every shard exactly once, and complete', async (t) => {
  const { out, corpus } = await places(t);
  const partial = `${out}.partial`;
  await assert.rejects(mergeIndex(out, OPTIONS), trawlError('INDEX_NOT_FOUND', /^No shards in .*--shard/));
  await job(0, 3, { corpus, out });
  await job(2, 3, { corpus, out });
  const refused = (reason: RegExp): Promise<void> =>
    assert.rejects(mergeIndex(out, OPTIONS), trawlError('SHARDS_INCOMPLETE', reason));
  await refused(/no shard contains lines 334 to 666 of the corpus: 1\/3 is missing/);
  mkdirSync(join(partial, 'shard-00001'));
  await refused(/shard-00001 is unfinished\. Run the same job again/);
  rmSync(join(partial, 'shard-00001'), { recursive: true });
  await job(1, 3, { corpus, out });
  cpSync(join(partial, 'shard-00001'), join(partial, 'shard-copy'), { recursive: true });
  await refused(/shard-00001 and shard-copy both contain lines 334 to 666 of the corpus\. Move one of them away/);
  rmSync(join(partial, 'shard-copy'), { recursive: true });
  rmSync(join(partial, 'shard-00002'), { recursive: true });
  await refused(/no shard contains lines 667 to 1000 of the corpus: 2\/3 is missing/);
  await job(2, 3, { corpus, out });
  assert.equal((await mergeIndex(out, OPTIONS)).manifest.rows, 1_000);
  // A scheduler may run the last step twice.
  assert.deepEqual((({ merged, manifest }) => [merged, manifest.rows])(await mergeIndex(out, OPTIONS)), [false, 1_000]);
});

test('a merge removes the files of jobs that were killed at their start, and reports the complete index', async (t) => {
  const { out, corpus } = await places(t);
  for (const index of [0, 1]) await job(index, 2, { corpus, out });
  await mergeIndex(out, OPTIONS);
  const partial = `${out}.partial`;
  const leftovers: readonly (() => void)[] = [
    () => mkdirSync(partial),
    () => lockBuild(partial, 'exclusive').release(),
    () => mkdirSync(join(partial, 'shard-00000'), { recursive: true }),
    () => lockBuild(join(partial, 'shard-00000'), 'exclusive').release(),
  ];
  for (const i of leftovers.keys()) {
    for (const leave of leftovers.slice(0, i + 1)) leave();
    const { merged, manifest } = await mergeIndex(out, OPTIONS);
    assert.deepEqual([merged, manifest.rows], [false, 1_000]);
    assert.equal(existsSync(partial), false);
  }
  // Also with shards in the folder of the index, and with none.
  rmSync(join(out, 'manifest.json'));
  mkdirSync(partial);
  assert.equal((await mergeIndex(out, OPTIONS)).merged, true);
  rmSync(out, { recursive: true });
  mkdirSync(partial);
  await assert.rejects(mergeIndex(out, OPTIONS), trawlError('INDEX_NOT_FOUND'));
});

test('a merge is refused beside an unfinished build of one process, and beside a running job', async (t) => {
  const { out, corpus } = await places(t);
  await build({ corpus, out });
  const failing = new FakeTextEncoder({ failing: (text) => text.startsWith('passage 900') });
  const more = { corpus, out, overwrite: true, passageTemplate: '{contents} ', encoder: failing };
  await assert.rejects(build(more), trawlError('ENCODING_FAILED'));
  await assert.rejects(
    mergeIndex(out, OPTIONS),
    trawlError('SHARDS_INCOMPLETE', /unfinished build of trawl index without --shard/),
  );
  rmSync(`${out}.partial`, { recursive: true });
  mkdirSync(`${out}.partial`);
  const lock = lockBuild(`${out}.partial`, 'shared');
  await assert.rejects(mergeIndex(out, OPTIONS), trawlError('BUILD_LOCKED'));
  lock.release();
  assert.ok(existsSync(`${out}.partial`));
});

test('a shard of another corpus, model, template or option is named with what differs', async (t) => {
  const { folder, out, corpus } = await places(t);
  await job(0, 2, { corpus, out });
  const [changed] = writeCorpus(join(folder, 'other'), { 'c.jsonl': ROWS.toReversed() });
  const others: readonly [Partial<Build>, RegExp][] = [
    [{ corpus: [changed!] }, /c\.jsonl: its content differs/],
    [{ corpus: [...corpus, ...corpus] }, /corpus: 2 files here, 1 files in shard-00000/],
    [
      { encoder: new FakeTextEncoder({ model: { sha256: 'e'.repeat(64) } }) },
      /model sha256: "e+" here, "0+" in shard-00000/,
    ],
    [
      { encoder: new FakeTextEncoder({ model: { pooling: 'cls' } }) },
      /model pooling: "cls" here, "mean" in shard-00000/,
    ],
    [{ passageTemplate: '{contents} ' }, /passage template/],
    [{ corpusOptions: { tsvIdType: 'string' } }, /option tsvIdType: "string" here, "auto" in shard-00000/],
  ];
  for (const [other, reason] of others) {
    await job(1, 2, { corpus, out, ...other });
    await assert.rejects(mergeIndex(out, OPTIONS), trawlError('SHARDS_DIFFER', reason));
    rmSync(join(`${out}.partial`, 'shard-00001'), { recursive: true });
  }
  await job(1, 3, { corpus, out });
  await assert.rejects(
    mergeIndex(out, OPTIONS),
    trawlError('SHARDS_DIFFER', /number of shards: 3 here, 2 in shard-00000/),
  );
});

test('settings that only one of two builds has are named on both sides', () => {
  const settings = {
    model: new FakeTextEncoder().identity,
    passageTemplate: '',
    reading: undefined,
    corpus: [],
    division: {},
  };
  const { name } = settings.model;
  assert.deepEqual(settingsDiffer(settings, { ...settings, model: null }), [`model: ${name}, now none`]);
  assert.deepEqual(settingsDiffer({ ...settings, model: null }, settings), [`model: none, now ${name}`]);
  assert.deepEqual(settingsDiffer({ ...settings, model: null }, { ...settings, model: null }), []);
  const namedNone = { ...settings, model: { ...settings.model, name: 'none' } };
  assert.deepEqual(settingsDiffer(namedNone, { ...settings, model: null }), ['model: none, now none']);
  assert.deepEqual(settingsDiffer(settings, { ...settings, vectors: {} }), ['vectors: embedded, now from files']);
  assert.deepEqual(settingsDiffer(settings, { ...settings, corpus: null }), ['corpus: files, now a pipe']);
});

test('shards that were moved into one folder are merged there', async (t) => {
  const { folder, out, corpus } = await places(t);
  for (const index of [0, 1]) await job(index, 2, { corpus, out: join(folder, `machine${index}`) });
  mkdirSync(out);
  for (const index of [0, 1]) {
    const name = `shard-0000${index}`;
    renameSync(join(folder, `machine${index}.partial`, name), join(out, name));
  }
  const { manifest } = await mergeIndex(out, OPTIONS);
  assert.equal(manifest.rows, 1_000);
  assert.deepEqual(readdirSync(out).sort(), ['manifest.json', 'shard-00000', 'shard-00001']);
});

test('a merge removes what jobs leave that are killed right after they completed their shards', async (t) => {
  const { out, corpus } = await places(t);
  for (const index of [0, 1]) {
    await job(index, 2, { corpus, out });
    for (const name of ['build.json', 'build.lock', 'build.owner', 'passages.json', 'checkpoint.json']) {
      writeFileSync(join(`${out}.partial`, `shard-0000${index}`, name), '');
    }
  }
  await mergeIndex(out, OPTIONS);
  const files = readdirSync(join(out, 'shard-00001')).sort();
  assert.deepEqual(
    files.filter((name) => /^(build|passages\.json|checkpoint)/.test(name)),
    [],
  );
  assert.ok(files.includes('passages.sqlite'));
});

test('a merge with --unique-ids refuses ids that repeat across shards', async (t) => {
  const { out, corpus } = await places(t);
  for (const index of [0, 1]) await job(index, 2, { corpus, out, uniqueIds: true });
  await assert.rejects(
    mergeIndex(out, { ...OPTIONS, uniqueIds: true }),
    trawlError('CORPUS_DUPLICATE_ID', /^10 passages .*"p0" on lines 1, 991/),
  );
  assert.equal((await mergeIndex(out, OPTIONS)).manifest.rows, 1_000);
});

test('a job does not resume a build of the whole index, nor the other way round', async (t) => {
  const { folder, out, corpus } = await places(t);
  for (const index of [1, 0]) {
    await job(index, 2, { corpus, out });
    await assert.rejects(build({ corpus, out }), trawlError('BUILD_DIFFERS', /its shards were built by jobs/));
  }
  assert.equal((await build({ corpus, out, restart: true })).manifest.rows, 1_000);
  const second = join(folder, 'second');
  const encoder = new FakeTextEncoder({ failing: (text) => text.startsWith('passage 900') });
  await assert.rejects(build({ corpus, out: second, encoder }), trawlError('ENCODING_FAILED'));
  await assert.rejects(job(0, 2, { corpus, out: second }), trawlError('BUILD_DIFFERS', /build without --shard/));
  await assert.rejects(
    mergeIndex(second, OPTIONS),
    trawlError('SHARDS_INCOMPLETE', /unfinished build of trawl index without --shard.*to finish it/),
  );
});

test('while a job runs, a second job on its shard and a merge are refused, and jobs on other shards run', async (t) => {
  const { out, corpus } = await places(t);
  let go: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (go = resolve));
  let begun: () => void = () => undefined;
  const atWork = new Promise<void>((resolve) => (begun = resolve));
  const encoder = new FakeTextEncoder({
    before: async () => {
      begun();
      await released;
    },
  });
  const first = job(0, 2, { corpus, out, encoder });
  await atWork;
  const locked = trawlError('BUILD_LOCKED', /shard-00000\. Wait/);
  await assert.rejects(job(0, 2, { corpus, out }), locked);
  await assert.rejects(job(0, 2, { corpus, out, restart: true }), locked);
  await job(1, 2, { corpus, out });
  await assert.rejects(mergeIndex(out, OPTIONS), trawlError('BUILD_LOCKED'));
  await assert.rejects(build({ corpus, out, restart: true }), trawlError('BUILD_LOCKED'));
  go();
  await first;
  assert.equal((await mergeIndex(out, OPTIONS)).manifest.rows, 1_000);
});

test('a lock ends with its process; the owner file alone locks nothing', async (t) => {
  const { out, corpus } = await places(t);
  await assert.rejects(
    build({ corpus, out, encoder: new FakeTextEncoder({ failing: (text) => text.startsWith('passage 900') }) }),
    trawlError('ENCODING_FAILED'),
  );
  const lock = new URL('../../src/base/system/file-lock.js', import.meta.url).href;
  const code = `import { FileLock } from ${JSON.stringify(lock)};
    globalThis.held = FileLock.acquire(${JSON.stringify(join(`${out}.partial`, 'build.lock'))}, 'exclusive');
    console.log(held !== undefined); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const [said] = (await once(child.stdout!, 'data')) as [Buffer];
  assert.equal(String(said), 'true\n');
  // The owner file is from the earlier build, and is only used in the message.
  await assert.rejects(build({ corpus, out }), trawlError('BUILD_LOCKED', /Process \d+ on .* is building/));
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal((await build({ corpus, out })).manifest.rows, 1_000);
});

test('a build with another corpus, model or option is not resumed, and the error names what differs', async (t) => {
  const { folder, out, corpus } = await places(t);
  const encoder = new FakeTextEncoder({ failing: (text) => text.startsWith('passage 900') });
  await assert.rejects(build({ corpus, out, encoder }), trawlError('ENCODING_FAILED'));
  const [changed] = writeCorpus(join(folder, 'other'), {
    'c.jsonl': ROWS.map((row, i) => (i === 500 ? { ...row, contents: row.contents.replace('p', 'q') } : row)),
  });
  const others: readonly [Partial<Build>, RegExp][] = [
    [{ corpus: [changed!] }, new RegExp(`${basename(changed!)}: its content differs`)],
    [
      { encoder: new FakeTextEncoder({ model: { maxTokens: { query: 32, passage: 17 } } }) },
      /model maxTokens: \{.*16\}, now \{.*17\}/,
    ],
    [{ passageTemplate: '{id}' }, /passage template/],
    [{ corpusOptions: { tsvIdType: 'string' } }, /option tsvIdType: "auto", now "string"/],
    [{ shardRows: 100 }, /number of shards: 1, now 10/],
  ];
  for (const [other, reason] of others) {
    await assert.rejects(build({ corpus, out, ...other }), trawlError('BUILD_DIFFERS', reason));
  }
  // Options that do not change the index may differ.
  const { resumedRows } = await build({ corpus, out, uniqueIds: false, shardRows: 5_000, checkpointMs: 0 });
  assert.equal(resumedRows, 768);
  assert.equal(readIndexManifest(out).rows, 1_000);
});

test('vectors that do not match their checkpoint are made again', async (t) => {
  const { folder, out, corpus } = await places(t);
  const encoder = new FakeTextEncoder({ failing: (text) => text.startsWith('passage 900') });
  await assert.rejects(build({ corpus, out, encoder, kernel }), trawlError('ENCODING_FAILED'));
  const file = join(`${out}.partial`, 'shard-00000', 'vectors.faiss');
  const bytes = readFileSync(file);
  bytes[5_000]! ^= 1;
  writeFileSync(file, bytes);
  const notes: string[] = [];
  const { resumedRows } = await build({ corpus, out, kernel, onNote: (text) => notes.push(text) });
  assert.equal(resumedRows, 0);
  assert.match(notes.join(), /the vectors do not match their checkpoint/);
  await build({ corpus, out: join(folder, 'other'), kernel });
  assert.deepEqual(filesOf(out), filesOf(join(folder, 'other')));
});
