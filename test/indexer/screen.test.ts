import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import { verifyIndex } from '../../indexer/verify/verify-index.ts';
import { withChecksum } from '../../src/manifest/manifest-checksum.ts';
import { readShardManifest } from '../../src/manifest/read-manifest.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { type Kernel, loadKernel } from '../../src/vector-index/kernel.ts';
import { seededNormal } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { build, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const kernel = (loaded.ok ? loaded.kernel : undefined) as Kernel;

const ROWS = 16_500;
const DIMENSION = 192;
const directions = Array.from({ length: 12 }, (_, i) => {
  const normal = seededNormal(100 + i);
  return Float32Array.from({ length: DIMENSION }, () => normal());
});

/** Vectors along twelve directions: what a screen is for. The text is the row's number. */
class FewDirectionsEncoder extends FakeTextEncoder {
  constructor() {
    super({ model: { dimension: DIMENSION } });
  }

  override vectorOf(text: string): Float32Array {
    const normal = seededNormal(Number(text));
    const vector = Float32Array.from({ length: DIMENSION }, (_, j) => Math.sin(j) + 0.01 * Math.sin(j * Number(text)));
    for (const direction of directions) {
      const weight = normal();
      for (let j = 0; j < DIMENSION; j++) vector[j]! += weight * direction[j]!;
    }
    return vector;
  }
}

test('an index gets a screen where one pays; an older one gets the same by optimize; verify reads it', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const corpus = writeCorpus(folder, {
    'corpus.jsonl': Array.from({ length: ROWS }, (_, id) => ({ id, contents: String(id) })),
  });
  const out = join(folder, 'index');
  await build({ corpus, out, kernel, encoder: new FewDirectionsEncoder() });
  const shardFolder = join(out, 'shard-00000');
  const manifest = readShardManifest(shardFolder);
  assert.equal(manifest.screen?.path, 'screen.i8');
  assert.match(manifest.screen!.reason, /64 directions would keep/);
  assert.equal(openIndexDirectory(out).source.shards[0]!.screen, join(shardFolder, 'screen.i8'));
  const problems = () => verifyIndex(out, { onStep: () => undefined });
  assert.deepEqual(await problems(), []);

  // As an index from before screens.
  const bytes = readFileSync(join(shardFolder, 'screen.i8'));
  const { screen: _, ...older } = manifest;
  const files = manifest.files.filter(({ path }) => path !== 'screen.i8');
  writeFileSync(join(shardFolder, 'shard.json'), JSON.stringify(withChecksum({ ...older, files })));
  rmSync(join(shardFolder, 'screen.i8'));
  assert.equal(openIndexDirectory(out).source.shards[0]!.screen, undefined);
  const options = { float16: false, onStep: () => undefined };
  assert.equal((await optimizeIndex(out, kernel, options)).screensMade, 1);
  assert.deepEqual(readFileSync(join(shardFolder, 'screen.i8')), bytes);
  const { screen, generation } = readShardManifest(shardFolder);
  assert.deepEqual({ screen, generation }, { screen: manifest.screen, generation: manifest.generation });
  assert.equal((await optimizeIndex(out, kernel, options)).screensMade, 0);

  bytes[bytes.length - 3_000]! ^= 1;
  writeFileSync(join(shardFolder, 'screen.i8'), bytes);
  const found = await problems();
  assert.ok(found.some((problem) => /screen\.i8: sha256/.test(problem)));
  assert.ok(found.some((problem) => /screen\.i8: row \d+: /.test(problem)));
});

test('a small index says why it has no screen, and optimize leaves it so', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const corpus = writeCorpus(folder, { 'corpus.jsonl': [{ id: 1, contents: '7' }] });
  const out = join(folder, 'index');
  await build({ corpus, out, kernel, encoder: new FewDirectionsEncoder() });
  const { screen } = readShardManifest(join(out, 'shard-00000'));
  assert.deepEqual(screen, { path: null, reason: '1 rows are too few for a screen to pay' });
  const summary = await optimizeIndex(out, kernel, { float16: false, onStep: () => undefined });
  assert.deepEqual([summary.screensMade, summary.screensOfNoUse], [0, 0]);
});
