import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { BuildOptions } from '../../indexer/building/build.ts';
import { type BuildPlan, planBuild } from '../../indexer/building/plan-build.ts';
import { planUpdate } from '../../indexer/update/plan-update.ts';
import { memoryLimit } from '../../src/base/system/memory.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { build, buildOptions, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
const kernel = loaded.ok ? loaded.kernel : undefined;

/** Enough rows and dimensions for a prefilter. */
const ROWS = 17_000;
const DIMENSION = 192;
/** 192 dimensions are stored as 192 bytes of codes and 24 more a row; 128 principal components as 128 and 24. */
const CODES_BYTES = ROWS * (192 + 24);
const PREFILTER_BYTES = ROWS * (128 + 24);

class WideEncoder extends FakeTextEncoder {
  constructor() {
    super({ model: { dimension: DIMENSION } });
  }

  override vectorOf(text: string): Float32Array {
    return Float32Array.from({ length: DIMENSION }, (_, i) => Math.sin(text.length + i));
  }
}

async function options(t: TestContext, rows = ROWS): Promise<BuildOptions> {
  const folder = await tempFolder(t);
  const corpus = writeCorpus(folder, {
    'c.jsonl': Array.from({ length: rows }, (_, id) => ({ id, contents: `passage ${id}` })),
  });
  return buildOptions({ corpus, encoder: new WideEncoder(), kernel, out: join(folder, 'index') });
}

const memoryProblem = ({ problems }: BuildPlan): boolean => problems.some((text) => /Fast searches need/.test(text));
const about = (found: number, expected: number): boolean => Math.abs(found / expected - 1) < 0.1;

test('a plan compares with the memory that this process may use', { skip }, async (t) => {
  const plan = await planBuild(await options(t, 100), undefined);
  assert.equal(plan.memoryLimitBytes, memoryLimit());
  assert.deepEqual(plan.problems, []);
});

test('a plan has no memory problem if the prefilter fits into memory, even if the codes do not', {
  skip,
}, async (t) => {
  const build = await options(t);
  const between = (CODES_BYTES + PREFILTER_BYTES) / 2;
  const plan = await planBuild(build, undefined, between);
  assert.ok(about(plan.searchMemoryBytes, PREFILTER_BYTES), `${plan.searchMemoryBytes} bytes`);
  assert.ok(about(plan.searchMemoryBytesWithoutPrefilter, CODES_BYTES));
  assert.equal(memoryProblem(plan), false);
  const small = await planBuild(build, undefined, PREFILTER_BYTES / 2);
  assert.match(
    small.problems.join(),
    /^Fast searches need 2\.\d+ MB of memory, but this process may only use 1\.29 MB/,
  );
});

test('shards that are too small for a prefilter are searched by their codes, and a job counts all shards', {
  skip,
}, async (t) => {
  const build = await options(t);
  const between = (CODES_BYTES + PREFILTER_BYTES) / 2;
  const cut = await planBuild({ ...build, shardRows: ROWS / 2 }, undefined, between);
  assert.ok(about(cut.searchMemoryBytes, CODES_BYTES));
  assert.ok(memoryProblem(cut));
  const job = await planBuild(build, { index: 1, of: 2 }, between);
  assert.ok(about(job.bytes.codes, CODES_BYTES / 2) && about(job.searchMemoryBytes, CODES_BYTES));
  assert.ok(memoryProblem(job));
});

test('without codes the vectors must fit into memory', async (t) => {
  const build = { ...(await options(t)), kernel: undefined };
  const bytes = ROWS * DIMENSION * 4;
  assert.equal((await planBuild(build, undefined, bytes)).searchMemoryBytes, bytes);
  assert.ok(memoryProblem(await planBuild(build, undefined, bytes - 1)));
  assert.equal(memoryProblem(await planBuild(build, undefined, bytes)), false);
});

test("an update counts the files of the index's shards and what its new shards need", { skip }, async (t) => {
  const first = await options(t, 200);
  const { out } = first;
  const encoder = new WideEncoder();
  await build({ ...first, encoder });
  const shard = join(out, 'shard-00000');
  assert.ok(!readdirSync(shard).includes('prefilter.i8'), 'too few rows for a prefilter');
  const resident = statSync(join(shard, 'codes.i8')).size;
  const { corpus } = await options(t);
  const update = { ...first, encoder, type: 'append' as const, corpus };
  const limit = resident + 1.2 * PREFILTER_BYTES;
  const plan = await planUpdate(update, limit);
  assert.deepEqual([plan.update.kept, plan.update.added], [200, ROWS - 200]);
  assert.ok(about(plan.searchMemoryBytes - resident, PREFILTER_BYTES), `${plan.searchMemoryBytes} bytes`);
  assert.equal(memoryProblem(plan), false);
  assert.ok(memoryProblem(await planUpdate(update, resident + PREFILTER_BYTES / 2)));
  assert.equal((await planUpdate(update)).memoryLimitBytes, memoryLimit());
});
