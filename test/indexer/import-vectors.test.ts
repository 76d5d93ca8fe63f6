import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mergeIndex } from '../../indexer/building/merge-index.ts';
import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import type { PrecomputedVectors } from '../../indexer/vectors/precomputed-vectors.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, job, writeCorpus } from './build.ts';
import { indexProblems } from './index-problems.ts';
import { corpusAndVectors, DIMENSION, encoder, out, precomputed } from './precomputed-vectors.ts';
import { update } from './update.ts';
import { FILE_TYPES, fileBytes, writeVectors } from './vector-files/vector-files.ts';

const loaded = loadKernel();
const kernel = loaded.ok ? loaded.kernel : undefined;
const quietly = { float16: false, onStep: () => undefined };

async function search(folder: string): Promise<{ rows: number[]; scores: number[] }> {
  const index = await openEngine(openIndexDirectory(folder).source!);
  try {
    const { rows, scores } = await index.search({ queries: encoder.vectorOf('a query'), count: 1, k: 20 });
    return { rows: [...rows], scores: [...scores] };
  } finally {
    await index.close();
  }
}

for (const fileType of FILE_TYPES) {
  test(`adopted ${fileType}, in shards and several files, gives the results of the embedded index`, async (t) => {
    // The second cut is within a row.
    const made = await corpusAndVectors(t, { fileType, cuts: [1500, 4001] });
    const { folder: built } = await build({ corpus: made.corpus, out: out(made, 'built'), kernel });
    const vectors = await precomputed(made.paths, 'adopt', { fileType });
    for (const shardRows of [1000, 77]) {
      const index = out(made, `adopted-${shardRows}`);
      const { manifest } = await build({ corpus: made.corpus, out: index, vectors, shardRows, kernel });
      assert.deepEqual([manifest.rows, manifest.shards.length], [500, Math.ceil(500 / shardRows)]);
      assert.deepEqual(await search(index), await search(built));
      assert.deepEqual(await indexProblems(index), []);
      assert.deepEqual(
        readdirSync(join(index, 'shard-00000')).filter((name) => /vectors/.test(name)),
        [],
        'nothing is copied',
      );
      if (shardRows === 1000 && kernel !== undefined) {
        const codes = (folder: string): Buffer => readFileSync(join(folder, 'shard-00000', 'codes.i8'));
        assert.deepEqual(codes(index), codes(built));
      }
    }
  });

  test(`copied ${fileType} gives the embedded index, byte for byte`, async (t) => {
    const made = await corpusAndVectors(t, { fileType, cuts: [1501] });
    await build({ corpus: made.corpus, out: out(made, 'built'), kernel, shardRows: 200 });
    const vectors = await precomputed(made.paths, 'copy', { fileType });
    await build({ corpus: made.corpus, out: out(made, 'copied'), vectors, kernel, shardRows: 200 });
    for (const shard of ['shard-00000', 'shard-00001', 'shard-00002']) {
      for (const name of readdirSync(join(made.folder, 'built', shard)).filter((file) => !file.endsWith('.sqlite'))) {
        const read = (index: string): Buffer => readFileSync(join(made.folder, index, shard, name));
        assert.ok(read('copied').equals(read('built')), `${shard}/${name}`);
      }
    }
    for (const path of made.paths) rmSync(path);
    assert.deepEqual(await indexProblems(out(made, 'copied')), []);
  });
}

test('jobs adopt their parts, and the merged index gives the results of one built by one process', async (t) => {
  const made = await corpusAndVectors(t, { cuts: [2000] });
  const options = { corpus: made.corpus, encoder, kernel, vectors: await precomputed(made.paths) };
  await build({ ...options, out: out(made, 'one') });
  for (const index of [2, 0, 1]) await job(index, 3, { ...options, out: out(made) });
  await mergeIndex(out(made), { overwrite: false, uniqueIds: false });
  assert.deepEqual(await search(out(made)), await search(out(made, 'one')));
  const blank = writeCorpus(made.folder, { 'blank.jsonl': `\n${readFileSync(made.corpus[0]!, 'utf8')}` });
  await assert.rejects(
    job(0, 3, { ...options, corpus: blank, out: out(made, 'blank') }),
    trawlError('VECTORS_MISMATCH', /500 vectors for 501 lines.*leave out --shard/),
  );
  await build({ ...options, corpus: blank, out: out(made, 'blank') });
  assert.deepEqual(await search(out(made, 'blank')), await search(out(made, 'one')));
});

test('jobs with other vectors, or with embedded ones, are not merged', async (t) => {
  const made = await corpusAndVectors(t, { rows: 40 });
  const other = writeVectors(
    made.folder,
    'other.faiss',
    Buffer.from(fileBytes('faiss', made.values.toReversed(), DIMENSION)),
  );
  const jobWith = (index: number, name: string, vectors: PrecomputedVectors | undefined) =>
    job(index, 2, { corpus: made.corpus, encoder, vectors, out: out(made, name) });
  const others = {
    other: await precomputed(other),
    metric: await precomputed(made.paths, 'adopt', { metric: 'l2' }),
    copied: await precomputed(made.paths, 'copy'),
    embedded: undefined,
  };
  for (const [name, vectors] of Object.entries(others)) {
    await jobWith(0, name, await precomputed(made.paths));
    assert.equal((await jobWith(0, name, await precomputed(made.paths))).wasComplete, true);
    await assert.rejects(jobWith(0, name, vectors), trawlError('BUILD_DIFFERS', /vectors/), name);
    await jobWith(1, name, vectors);
    const merged = mergeIndex(out(made, name), { overwrite: false, uniqueIds: false });
    await assert.rejects(
      merged,
      trawlError('SHARDS_DIFFER', /shard-00001 was built with other settings.*vectors/),
      name,
    );
  }
});

test('an index with relative paths can be moved with its vectors', async (t) => {
  const made = await corpusAndVectors(t);
  const vectors = await precomputed(made.paths, 'adopt', { relativePaths: true });
  await build({ corpus: made.corpus, out: join(made.folder, 'a', 'index'), vectors });
  const moved = `${made.folder}-moved`;
  t.after(() => rmSync(moved, { recursive: true, force: true }));
  renameSync(made.folder, moved);
  assert.equal(openIndexDirectory(join(moved, 'a', 'index')).source!.shards[0]!.segments[0]!.path, join(moved, 'emb'));
});

test('relative paths are right if the index was built through a link', async (t) => {
  const made = await corpusAndVectors(t, { rows: 40 });
  mkdirSync(join(made.folder, 'far', 'away'), { recursive: true });
  symlinkSync(join('far', 'away'), join(made.folder, 'link'));
  const vectors = await precomputed(made.paths, 'adopt', { relativePaths: true });
  await build({ corpus: made.corpus, out: join(made.folder, 'link', 'index'), vectors });
  assert.deepEqual(await indexProblems(join(made.folder, 'far', 'away', 'index')), []);
});

test('an adopted file that is missing, truncated, replaced or changed is an error that names it', async (t) => {
  const made = await corpusAndVectors(t, { rows: 40_000, fileType: 'npy' });
  await build({ corpus: made.corpus, out: out(made), vectors: await precomputed(made.paths), kernel });
  const [path] = made.paths as [string];
  const bytes = readFileSync(path);
  const opened = (): unknown => openIndexDirectory(out(made));
  opened();
  writeFileSync(path, bytes.subarray(0, bytes.length - 4));
  assert.throws(opened, trawlError('INDEX_FILE_TRUNCATED', /emb: .* bytes, but its rows end at byte/));
  writeFileSync(path, Buffer.concat([bytes, Buffer.alloc(4)]));
  assert.throws(
    opened,
    trawlError('INDEX_FILE_TRUNCATED', /emb: has 1280132 bytes, but had 1280128 when it was adopted/),
  );
  writeFileSync(path, Buffer.concat([bytes.subarray(0, 128), Buffer.alloc(bytes.length - 128, 1)]));
  assert.throws(opened, trawlError('INDEX_FILE_FOREIGN', /emb: its content changed after it was adopted/));
  const changed = Buffer.from(bytes);
  // Between two parts of the sample.
  changed[128 + 6000]! ^= 1;
  writeFileSync(path, changed);
  opened();
  const problems = await indexProblems(out(made));
  assert.match(problems.join('\n'), /emb: sha256 of bytes 128 to 1280128 is .* when the file was adopted/);
  rmSync(path);
  assert.throws(opened, trawlError('INDEX_FILE_MISSING', /emb: cannot be read/));
  writeFileSync(path, bytes);
  opened();
});

test('vectors that do not match the corpus are refused with both numbers, and no index is left', async (t) => {
  const made = await corpusAndVectors(t);
  const refused = async (
    vectors: Awaited<ReturnType<typeof precomputed>>,
    message: RegExp,
    corpus = made.corpus,
  ): Promise<void> => {
    await assert.rejects(build({ corpus, out: out(made), vectors }), trawlError('VECTORS_MISMATCH', message));
    assert.ok(!existsSync(out(made)) && !existsSync(`${out(made)}.partial`));
  };
  const rows = (count: number): object[] =>
    Array.from({ length: count }, (_, id) => ({ id, contents: `passage ${id}` }));
  const [short, long] = writeCorpus(made.folder, { 'short.jsonl': rows(499), 'long.jsonl': rows(501) });
  await refused(await precomputed(made.paths), /500 vectors, but the corpus has at most 499 passages/, [short!]);
  await refused(await precomputed(made.paths), /500 vectors, but the corpus has 501 passages/, [long!]);
  const raw = join(made.folder, 'emb_e5.memmap');
  writeFileSync(raw, Buffer.alloc(500 * DIMENSION * 2));
  await refused(await precomputed([raw]), /250 vectors, but the corpus has 500 passages.*--dtype float16/);
  const set = {
    ...(await precomputed(made.paths)).set,
    ids: Array.from({ length: 500 }, (_, i) => String(i === 321 ? 322 : i)),
  };
  await refused(
    { set, use: 'adopt', metric: 'inner-product' },
    /Row 321: the vector file has id "322", the corpus "321"/,
  );
  const wide = fileBytes('npy', new Float32Array(500 * 4), 4);
  writeFileSync(join(made.folder, 'wide.npy'), wide);
  await assert.rejects(
    precomputed([join(made.folder, 'wide.npy')]),
    trawlError('VECTORS_MISMATCH', /4 dimensions; fake makes 8/),
  );
});

test('the metrics of file and model must agree, unless --metric is given', async (t) => {
  const made = await corpusAndVectors(t);
  const bytes = readFileSync(made.paths[0]!);
  bytes.write('IxF2');
  bytes.writeInt32LE(1, 33);
  writeFileSync(made.paths[0]!, bytes);
  await assert.rejects(
    precomputed(made.paths),
    trawlError(
      'VECTORS_MISMATCH',
      /metric of this file is l2, that of fake is inner-product.*--metric l2 or --metric inner-product/,
    ),
  );
  for (const metric of ['l2', 'inner-product', 'cosine'] as const) {
    const index = out(made, metric);
    await build({
      corpus: made.corpus,
      out: index,
      vectors: await precomputed(made.paths, 'adopt', { metric }),
      kernel,
    });
    assert.equal(openIndexDirectory(index).manifest.metric, metric);
    assert.equal((await search(index)).rows.length, 20);
    assert.deepEqual(await indexProblems(index), []);
  }
});

for (const withEngine of kernel === undefined ? [false] : [true, false]) {
  test(`a value that is not finite is an error with file, row and column (${withEngine ? 'with' : 'without'} the engine)`, async (t) => {
    for (const fileType of ['npy', 'memmap-fp16', 'faiss'] as const) {
      for (const use of ['adopt', 'copy'] as const) {
        const made = await corpusAndVectors(t, { fileType, cuts: [900] });
        const width = fileType.endsWith('fp16') ? 2 : 4;
        const whole = Buffer.concat(made.paths.map((path) => readFileSync(path)));
        const header = whole.length - 500 * DIMENSION * width;
        const at = header + (321 * DIMENSION + 5) * width;
        if (width === 2) whole.writeUInt16LE(0x7c00, at);
        else whole.writeFloatLE(Number.NaN, at);
        writeFileSync(made.paths[1]!, whole.subarray(900));
        const vectors = await precomputed(made.paths, use, { fileType });
        await assert.rejects(
          build({
            corpus: made.corpus,
            out: out(made),
            vectors,
            shardRows: 200,
            kernel: withEngine ? kernel : undefined,
          }),
          trawlError(
            'NON_FINITE_VECTOR',
            new RegExp(
              `part_ab: the vector of row 321 has (NaN|Infinity) in column 5 \\(byte ${at - 900}\\)[^]*passage again\\.$`,
            ),
          ),
        );
        assert.equal(existsSync(out(made)), false);
      }
    }
  });
}

test('an update of an imported index keeps its metric, whatever that of the model', async (t) => {
  const made = await corpusAndVectors(t, { rows: 40 });
  const more = writeCorpus(made.folder, { 'more.jsonl': [{ id: 40, contents: 'passage 40' }] });
  for (const metric of ['l2', 'cosine'] as const) {
    const index = out(made, metric);
    const vectors = { ...(await precomputed(made.paths, 'adopt', { metric })), relativePaths: metric === 'l2' };
    await build({ corpus: made.corpus, out: index, vectors, kernel });
    const { added, manifest } = await update({ corpus: [...made.corpus, ...more], out: index, kernel });
    assert.deepEqual([added, manifest.rows, manifest.metric], [1, 41, metric]);
    assert.deepEqual(await indexProblems(index), []);
    assert.equal((await search(index)).rows.length, 20);
  }
});

test('inputs in the index that is replaced are refused', async (t) => {
  const made = await corpusAndVectors(t, { rows: 40 });
  const index = out(made);
  await build({ corpus: made.corpus, out: index });
  const own = join(index, 'shard-00000', 'vectors.faiss');
  const inside = join(index, 'corpus.jsonl');
  copyFileSync(made.corpus[0]!, inside);
  const link = join(made.folder, 'link.faiss');
  symlinkSync(own, link);
  const attempts = [
    build({ corpus: made.corpus, out: index, overwrite: true, vectors: await precomputed([own]) }),
    build({ corpus: made.corpus, out: `${index}/`, overwrite: true, vectors: await precomputed([link]) }),
    build({ corpus: [inside], out: index, overwrite: true }),
  ];
  for (const attempt of attempts)
    await assert.rejects(attempt, trawlError('USAGE', /is an input of this build, but the build removes .*index/));
  assert.equal(openIndexDirectory(index).manifest.rows, 40);
  assert.equal(existsSync(inside), true);
  const beside = out(made, 'beside');
  await build({ corpus: [inside], out: beside, vectors: await precomputed([own]) });
  assert.deepEqual(await indexProblems(beside), []);
});

test('a stopped import resumes with its complete shards, and refuses changed vectors', async (t) => {
  const made = await corpusAndVectors(t);
  const vectors = await precomputed(made.paths);
  await build({ corpus: made.corpus, out: out(made, 'whole'), vectors, shardRows: 100, kernel });
  const stopped = async (name: string) => {
    const stop = new AbortController();
    const onProgress = ({ stage, shard }: { stage: string; shard?: number }): void => {
      if (stage === 'vectors' && shard === 3) stop.abort('SIGTERM');
    };
    const options = { corpus: made.corpus, out: out(made, name), shardRows: 100, kernel };
    await assert.rejects(
      build({ ...options, vectors, signal: stop.signal, onProgress }),
      trawlError('CANCELLED', /run the same command again/),
    );
    return options;
  };
  const options = await stopped('resumed');
  const first = statSync(join(`${options.out}.partial`, 'shard-00000', 'shard.json')).mtimeMs;
  const { manifest, resumedRows } = await build({ ...options, vectors });
  assert.equal(resumedRows, 300);
  assert.equal(statSync(join(options.out, 'shard-00000', 'shard.json')).mtimeMs, first);
  assert.equal(manifest.generation, openIndexDirectory(out(made, 'whole')).manifest.generation);
  const other = await stopped('changed');
  const [path] = made.paths;
  const { atime, mtime } = statSync(path!);
  // Another content can have the same size and time.
  writeFileSync(path!, readFileSync(path!));
  utimesSync(path!, atime, mtime);
  await assert.rejects(
    build({ ...other, vectors: await precomputed(made.paths) }),
    trawlError('BUILD_DIFFERS', /vectors files: .*--restart/),
  );
});

test('optimize makes codes and float16 rows of adopted vectors, and leaves their files unchanged', {
  skip: kernel === undefined && 'the native engine is not available',
}, async (t) => {
  const made = await corpusAndVectors(t, { fileType: 'npy' });
  await build({ corpus: made.corpus, out: out(made), vectors: await precomputed(made.paths) });
  const before = await search(out(made));
  const summary = await optimizeIndex(out(made), kernel!, { ...quietly, float16: true });
  assert.deepEqual([summary.codesMade, summary.rewritten], [1, 1]);
  assert.deepEqual(await search(out(made)), before);
  assert.ok(existsSync(made.paths[0]!));
  rmSync(made.paths[0]!);
  assert.deepEqual(await indexProblems(out(made)), []);
});

test('lengths far from 1 are reported if the model normalises', async (t) => {
  const made = await corpusAndVectors(t);
  const notes: string[] = [];
  const normalising = { ...encoder, identity: { ...encoder.identity, normalize: true }, dimension: DIMENSION };
  await build({
    corpus: made.corpus,
    out: out(made),
    vectors: await precomputed(made.paths),
    encoder: normalising as typeof encoder,
    onNote: (text) => notes.push(text),
  });
  assert.match(
    notes.join('\n'),
    /Rows 0 to 500: Vectors of fake have length 1, but a sample of these has lengths from \d\.\d+ to \d\.\d+/,
  );
});
