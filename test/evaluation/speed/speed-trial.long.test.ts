import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heldOutQueries } from '../../../bench/flat/queries.ts';
import { openTrawlEngine } from '../../../bench/flat/trawl-engine.ts';
import { basisFor } from '../../../bench/vectors/vector-basis.ts';
import { syntheticFile } from '../../../bench/vectors/vector-cache.ts';
import { expectedSearch } from '../../../evaluation/speed/search-forecast.ts';
import { trySpeed } from '../../../evaluation/speed/speed-trial.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : 'the native engine is not built';
const kernel = loaded.ok ? loaded.kernel : undefined!;

test('peak rates are those of a computer, and too little memory to read is refused', { skip }, async () => {
  const peaks = await kernel.measurePeaks(2 ** 26);
  // 100 MB/s to 100 TB/s: any machine, however busy.
  assert.ok(peaks.readBytesPerS > 1e8 && peaks.readBytesPerS < 1e14, `${peaks.readBytesPerS}`);
  for (const rate of [peaks.int8ProductsPerS, peaks.float32ProductsPerS]) assert.ok(rate === 0 || rate > 1e8);
  const isas = kernel
    .isas()
    .filter(({ available }) => available)
    .map(({ name }) => name);
  const measured = ['avx512-vnni', 'avx2'].find((isa) => isas.includes(isa)) ?? '';
  assert.equal(peaks.int8Isa, measured);
  assert.equal(peaks.int8ProductsPerS > 0, measured !== '');
  await assert.rejects(kernel.measurePeaks(1_000), /bytes is 1000, expected at least 1048576/);
  await assert.rejects(kernel.measurePeaks(2 ** 26, AbortSignal.abort()), { code: 'CANCELLED' });
});

test('what a trial expects of an index has the order of magnitude of its searches', { skip }, async (t) => {
  const [rows, dimension, queries] = [60_000, 256, 64];
  const context = { folder: await tempFolder(t), kernel, signal: new AbortController().signal, note: () => undefined };
  const basis = basisFor({ dimension });
  const file = await syntheticFile({ rows, dimension, dtype: 'float32', seed: 1, basis }, context);
  const engine = await openTrawlEngine(
    file,
    heldOutQueries(basis, queries, 1),
    { threads: kernel.threads(), withPrefilter: false },
    context,
  );
  t.after(() => engine.close());
  const trial = await trySpeed(kernel, { dimension, rows });
  assert.ok(trial.prefilter !== null && trial.threads === kernel.threads());
  const bytes = await engine.residentBytes();
  const [one, , many] = expectedSearch(trial, { prefiltered: { rows: 0, bytes: 0 }, coded: { rows, bytes } });
  for (const [expected, count] of [
    [one!, 1],
    [many!, queries],
  ] as const) {
    let fastest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 10; i++) fastest = Math.min(fastest, (await engine.search(0, count, 10)).ms);
    assert.equal(expected.queries, count);
    // Wide, because other work may disturb either of the two.
    const ratio = expected.ms / fastest;
    assert.ok(ratio > 1 / 30 && ratio < 30, `${count} queries: expected ${expected.ms} ms, measured ${fastest} ms`);
  }
});

test('a cancelled trial stops and leaves no files', { skip }, async () => {
  await assert.rejects(trySpeed(kernel, { dimension: 64, rows: 100_000 }, AbortSignal.abort()), { code: 'CANCELLED' });
});
