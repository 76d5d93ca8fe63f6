import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { withChecksum } from '../../src/index/manifest/write-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { seededNormal } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { build, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';
import { indexProblems } from './index-problems.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
const kernel = (loaded.ok ? loaded.kernel : undefined) as Kernel;

const ROWS = 16_500;
const DIMENSION = 192;
const components = Array.from({ length: 12 }, (_, i) => {
  const normal = seededNormal(100 + i);
  return Float32Array.from({ length: DIMENSION }, () => normal());
});

/** Vectors with twelve principal components, for which a prefilter pays. The text is the row's number. */
class FewComponentsEncoder extends FakeTextEncoder {
  constructor() {
    super({ model: { dimension: DIMENSION } });
  }

  override vectorOf(text: string): Float32Array {
    const normal = seededNormal(Number(text));
    const vector = Float32Array.from({ length: DIMENSION }, (_, j) => Math.sin(j) + 0.01 * Math.sin(j * Number(text)));
    for (const component of components) {
      const weight = normal();
      for (let j = 0; j < DIMENSION; j++) vector[j]! += weight * component[j]!;
    }
    return vector;
  }
}

test('a build makes a prefilter if it is worthwhile, optimize adds the same one to an older index, and verify checks it', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const corpus = writeCorpus(folder, {
    'corpus.jsonl': Array.from({ length: ROWS }, (_, id) => ({ id, contents: String(id) })),
  });
  const out = join(folder, 'index');
  await build({ corpus, out, kernel, encoder: new FewComponentsEncoder() });
  const shardFolder = join(out, 'shard-00000');
  const manifest = readShardManifest(shardFolder);
  assert.equal(manifest.prefilter?.path, 'prefilter.i8');
  assert.match(manifest.prefilter!.reason, /64 principal components would keep/);
  assert.equal(openIndexDirectory(out).source!.shards[0]!.prefilter, join(shardFolder, 'prefilter.i8'));
  const problems = () => indexProblems(out);
  assert.deepEqual(await problems(), []);

  // As an index of a version without prefilters.
  const bytes = readFileSync(join(shardFolder, 'prefilter.i8'));
  const { prefilter: _, ...older } = manifest;
  const files = manifest.files.filter(({ path }) => path !== 'prefilter.i8');
  writeFileSync(join(shardFolder, 'shard.json'), JSON.stringify(withChecksum({ ...older, files })));
  rmSync(join(shardFolder, 'prefilter.i8'));
  assert.equal(openIndexDirectory(out).source!.shards[0]!.prefilter, undefined);
  const options = { float16: false, onStep: () => undefined };
  assert.equal((await optimizeIndex(out, kernel, options)).prefiltersMade, 1);
  assert.deepEqual(readFileSync(join(shardFolder, 'prefilter.i8')), bytes);
  const { prefilter, generation } = readShardManifest(shardFolder);
  assert.deepEqual({ prefilter, generation }, { prefilter: manifest.prefilter, generation: manifest.generation });
  assert.equal((await optimizeIndex(out, kernel, options)).prefiltersMade, 0);

  // As if the codes were those of other vectors.
  const codes = readFileSync(join(shardFolder, 'codes.i8'));
  const others = Buffer.from(codes);
  others[others.length - 32]! ^= 1;
  writeFileSync(join(shardFolder, 'codes.i8'), others);
  const { codesMade, prefiltersMade } = await optimizeIndex(out, kernel, options);
  assert.deepEqual({ codesMade, prefiltersMade }, { codesMade: 1, prefiltersMade: 1 });
  assert.deepEqual(readFileSync(join(shardFolder, 'codes.i8')), codes);
  assert.deepEqual(readFileSync(join(shardFolder, 'prefilter.i8')), bytes);
  assert.deepEqual(await problems(), []);

  bytes[bytes.length - 3_000]! ^= 1;
  writeFileSync(join(shardFolder, 'prefilter.i8'), bytes);
  const found = await problems();
  assert.ok(found.some((problem) => /prefilter\.i8: sha256/.test(problem)));
  assert.ok(found.some((problem) => /prefilter\.i8: row \d+: /.test(problem)));
});

test('the manifest of a small index says why it has no prefilter, and optimize makes none', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const corpus = writeCorpus(folder, { 'corpus.jsonl': [{ id: 1, contents: '7' }] });
  const out = join(folder, 'index');
  await build({ corpus, out, kernel, encoder: new FewComponentsEncoder() });
  const { prefilter } = readShardManifest(join(out, 'shard-00000'));
  assert.deepEqual(prefilter, { path: null, reason: '1 rows are too few: a prefilter would not be worthwhile' });
  const summary = await optimizeIndex(out, kernel, { float16: false, onStep: () => undefined });
  assert.deepEqual([summary.prefiltersMade, summary.prefiltersNotWorthwhile], [0, 0]);
});

test('an index whose codes and prefilter are of an earlier version passes verify, and optimize makes both again', {
  skip,
}, async (t) => {
  const out = join(await tempFolder(t), 'index');
  cpSync(join(packageRoot, 'test', 'fixtures', 'index-unreleased-prefilter'), out, { recursive: true });
  const [shard] = openIndexDirectory(out).shards;
  const { folder, manifest } = shard!;
  assert.deepEqual(await indexProblems(out), []);
  const warnings: string[] = [];
  const engine = await openEngine(openIndexDirectory(out).source!, { onWarning: (warning) => warnings.push(warning) });
  await engine.close();
  assert.match(warnings.join(), /^1 of 1 shards have codes of an earlier version.*`trawl optimize`/);

  const prefilter = readFileSync(join(folder, 'prefilter.i8'));
  const segments = manifest.vectors.map((segment) => ({ ...segment, path: join(folder, segment.path) }));
  const rows = { rows: manifest.rows, dtype: 'float32' as const, segments };
  const again = join(out, 'again.i8');
  await kernel.makePrefilter(again, join(folder, 'codes.i8'), rows, manifest.dimension, 64);
  assert.deepEqual(readFileSync(again), prefilter, 'the engine writes the same bytes as before');

  prefilter[prefilter.length - 100]! ^= 1;
  writeFileSync(join(folder, 'prefilter.i8'), prefilter);
  const found = await indexProblems(out);
  assert.ok(found.some((problem) => /prefilter\.i8: sha256/.test(problem)));

  const options = { float16: false, onStep: () => undefined };
  const { codesMade, prefiltersNotWorthwhile } = await optimizeIndex(out, kernel, options);
  assert.deepEqual({ codesMade, prefiltersNotWorthwhile }, { codesMade: 1, prefiltersNotWorthwhile: 1 });
  assert.deepEqual(await indexProblems(out), []);
  const after = readFileSync(join(folder, 'shard.json'));
  assert.equal((await optimizeIndex(out, kernel, options)).codesMade, 0);
  assert.deepEqual(readFileSync(join(folder, 'shard.json')), after);
});
