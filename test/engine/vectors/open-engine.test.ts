import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { CodesWriter } from '../../../src/engine/vectors/codes-writer.ts';
import { openEngine, parseSearchDevice } from '../../../src/engine/vectors/open-engine.ts';
import type { IndexSource } from '../../../src/engine/vectors/vector-index.ts';
import { cudaDouble, withoutGpuSearches } from '../../helpers/cuda-double.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { hitsOf, normalRows, writeSource } from './index-files.ts';

const loaded = loadKernel();
const skip = withoutGpuSearches;

/** Sets the variable for one test. */
function setVariable(t: TestContext, name: string, value: string): void {
  const before = process.env[name];
  process.env[name] = value;
  t.after(() => {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  });
}

/** Searches of one test run on the test double of a GPU. */
function useDouble(t: TestContext): void {
  setVariable(t, 'TRAWL_CUDA_LIBRARY', cudaDouble());
}

test('a device of searches is the CPU or one CUDA device', () => {
  assert.equal(parseSearchDevice('cpu'), undefined);
  assert.equal(parseSearchDevice('cuda'), 0);
  assert.equal(parseSearchDevice('cuda:3'), 3);
  for (const text of ['', 'gpu', 'cuda:', 'cuda:-1', 'cuda:0,cuda:1', 'CUDA']) {
    assert.throws(() => parseSearchDevice(text), trawlError('CONFIG_INVALID', /expected cpu, cuda/));
  }
});

test('without a driver or that device, an index is not opened on a GPU', { skip }, async (t) => {
  const { source } = await indexFiles(t);
  setVariable(t, 'TRAWL_CUDA_LIBRARY', 'libtrawl-missing.so.1');
  await assert.rejects(
    openEngine(source, { device: 'cuda' }),
    trawlError('DEVICE_UNAVAILABLE', /driver cannot be loaded/),
  );
  await assert.rejects(openEngine(source, { device: 'gpu' }), trawlError('CONFIG_INVALID', /expected cpu/));
});

test('searches on a GPU have the answers of the CPU', { skip }, async (t) => {
  useDouble(t);
  const { source, rows } = await indexFiles(t);
  await assert.rejects(openEngine(source, { device: 'cuda:1' }), trawlError('DEVICE_UNAVAILABLE', /there is no GPU 1/));
  const cpu = await openEngine(source);
  const gpu = await openEngine(source, { device: 'cuda' });
  t.after(() => Promise.all([cpu.close(), gpu.close()]));
  for (const count of [1, 20]) {
    const request = { queries: rows.values.slice(0, count * rows.dimension), count, k: 5 };
    const [expected, actual] = [await cpu.search(request), await gpu.search(request)];
    assert.deepEqual(hitsOf(actual), hitsOf(expected));
    assert.equal(actual.certificate?.fullScans, 0);
  }
  assert.deepEqual(gpu.gpu, { name: 'a test double', cuda: '13.0', bytes: gpu.gpu?.bytes, failed: false });
  assert.ok(gpu.gpu!.bytes > 300 * 64);
  assert.equal(cpu.gpu, undefined);
});

test('an index without codes is not opened on a GPU, and shards without them are named', { skip }, async (t) => {
  useDouble(t);
  const { source } = await indexFiles(t);
  const [shard] = source.shards;
  const { codes: _, ...bare } = shard!;
  await assert.rejects(
    openEngine({ ...source, shards: [bare] }, { device: 'cuda' }),
    trawlError('DEVICE_UNAVAILABLE', /the index has no codes; make them with `trawl optimize`/),
  );
  const warnings: string[] = [];
  const second = { ...bare, firstRow: bare.rows };
  const mixed = await openEngine(
    { ...source, rows: 2 * source.rows, shards: [shard!, second] },
    { device: 'cuda', onWarning: (warning) => warnings.push(warning) },
  );
  await mixed.close();
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /^Shard 1 has no codes.*`trawl optimize`/);
});

test('the copying to a GPU can be cancelled', { skip }, async (t) => {
  useDouble(t);
  const { source } = await indexFiles(t);
  const stop = new AbortController();
  const opening = openEngine(source, { device: 'cuda', signal: stop.signal });
  stop.abort();
  await assert.rejects(opening, trawlError('CANCELLED', /./));
});

// The last test, because the GPU is not used any more in this process.
test('after a failure of the GPU searches have the answers of the CPU, and one warning says so', {
  skip,
}, async (t) => {
  useDouble(t);
  const { source, rows } = await indexFiles(t);
  const cpu = await openEngine(source);
  const warnings: string[] = [];
  const gpu = await openEngine(source, { device: 'cuda', onWarning: (warning) => warnings.push(warning) });
  t.after(() => Promise.all([cpu.close(), gpu.close()]));
  const request = { queries: rows.values.slice(0, 20 * rows.dimension), count: 20, k: 5 };
  const expected = hitsOf(await cpu.search(request));
  const search = async () => assert.deepEqual(hitsOf(await gpu.search(request)), expected);
  await search();
  setVariable(t, 'TRAWL_CUDA_DOUBLE_LAUNCHES', '1'); // the first search afterwards has its sample, and then fails
  await Promise.all([search(), search()]);
  delete process.env.TRAWL_CUDA_DOUBLE_LAUNCHES;
  await search();
  assert.deepEqual(warnings, [
    'The GPU failed (the GPU cannot start trawl_dots: CUDA_ERROR_LAUNCH_FAILED (719)). Searches run on the CPU from now on; restart the server to use the GPU again.',
  ]);
  assert.equal(gpu.gpu?.failed, true);
  // As a server that loads the index again.
  const again = await openEngine(source, { device: 'cuda', onWarning: (warning) => warnings.push(warning) });
  t.after(() => again.close());
  assert.deepEqual(again.gpu, { name: 'a test double', cuda: '13.0', bytes: 0, failed: true });
  assert.deepEqual(hitsOf(await again.search(request)), expected);
  assert.match(warnings[1]!, /^The GPU cuda failed in an earlier search/);
});

async function indexFiles(t: TestContext): Promise<{ source: IndexSource; rows: ReturnType<typeof normalRows> }> {
  const folder = await tempFolder(t);
  const rows = normalRows(300, 64, 1);
  const written = await writeSource(folder, rows);
  const codes = join(folder, 'codes.i8');
  if (!loaded.ok) throw new Error(loaded.reason);
  const writer = new CodesWriter(codes, written, loaded.kernel);
  await writer.append(rows.values);
  await writer.finish();
  return { source: { ...written, shards: written.shards.map((shard) => ({ ...shard, codes })) }, rows };
}
