import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ModelIdentity } from '../../../src/encoder/identity/model-identity.ts';
import type { ModelFolder } from '../../../src/encoder/model/model-folder.ts';
import { type ModelEncoder, openModelEncoder } from '../../../src/encoder/open-encoder.ts';
import type { EncoderPoolOptions } from '../../../src/encoder/pool/encoder-pool.ts';
import { EncoderPools, type PoolLease } from '../../../src/encoder/pool/encoder-pools.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const FAKE = {
  name: 'fake',
  sha256: 'abc',
  dimension: 2,
  prefixes: { query: '', passage: '' },
  maxTokens: { query: 32, passage: 32 },
};

function options(identity: Partial<ModelIdentity> = {}, run: Partial<EncoderPoolOptions> = {}): EncoderPoolOptions {
  return {
    model: { identity: { ...FAKE, ...identity }, graphPath: '', externalData: [] as readonly string[] } as ModelFolder,
    workers: 1,
    workerUrl: new URL('../fake-encoder-worker.js', import.meta.url),
    ...run,
  };
}

async function open(t: TestContext, pools: EncoderPools, settings = options()): Promise<ModelEncoder> {
  const encoder = await openModelEncoder(settings, pools);
  t.after(() => encoder.close());
  return encoder;
}

test('encoders of one model share a pool, even if opened at the same time, and the last one to close closes it', async (t) => {
  const pools = new EncoderPools();
  const [one, two, three] = await Promise.all([open(t, pools), open(t, pools), open(t, pools)]);
  assert.equal(pools.size, 1);
  await two.close();
  await one.close();
  await one.close();
  assert.equal(pools.size, 1);
  const { vectors } = await three.encode(['abc'], { inputType: 'query' });
  assert.deepEqual([...vectors], [3, 3]);
  await three.close();
  assert.equal(pools.size, 0);
  const again = await open(t, pools);
  assert.deepEqual([...(await again.encode(['ab'], { inputType: 'query' })).vectors], [2, 2]);
});

test('encoders with other names, prefixes and token limits share a pool; those with other worker settings do not', async (t) => {
  const pools = new EncoderPools();
  await open(t, pools);
  await open(t, pools, options({ name: 'other', prefixes: { query: 'q: ', passage: 'p: ' } }));
  await open(t, pools, options({ maxTokens: { query: 8, passage: 16 } }));
  assert.equal(pools.size, 1);
  const others: EncoderPoolOptions[] = [
    options({ sha256: 'def' }),
    options({ pooling: 'cls' }),
    options({ normalize: false }),
    options({ dimension: 1, fullDimension: 2 }),
    options({}, { workers: 2 }),
    options({}, { shareWeights: true }),
  ];
  for (const [i, other] of others.entries()) {
    await open(t, pools, other);
    assert.equal(pools.size, 2 + i);
  }
});

test('closing an encoder does not affect the calls of others in its pool', async (t) => {
  const pools = new EncoderPools();
  const [one, two] = [await open(t, pools), await open(t, pools)];
  const running = one.encode(['sleep 40'], { inputType: 'query' });
  const waiting = one.encode(['a', 'b'], { inputType: 'query' });
  const cancelled = assert.rejects(waiting, trawlError('CANCELLED'));
  const other = two.encode(['abcd'], { inputType: 'query' });
  await one.close();
  await cancelled;
  assert.equal((await running).outcomes[0]!.ok, true, 'a text in a worker is finished');
  await assert.rejects(one.encode(['late'], { inputType: 'query' }), trawlError('CANCELLED'));
  assert.deepEqual([...(await other).vectors], [4, 4]);
});

test('each encoder has its own counts, and the expected wait is that of the whole pool', async (t) => {
  const pools = new EncoderPools();
  const [one, two] = [await open(t, pools), await open(t, pools)];
  await one.encode(['a', 'b', 'c'], { inputType: 'query' });
  await two.encode(['d'], { inputType: 'query' });
  const busy = one.encode(['sleep 30'], { inputType: 'query' });
  const abort = new AbortController();
  const left = one.encode(['e', 'f'], { inputType: 'query', signal: abort.signal });
  const waiting = two.encode(['g', 'h', 'i'], { inputType: 'query' });
  assert.deepEqual([one.load.waitingTexts, two.load.waitingTexts], [2, 3]);
  assert.ok(one.load.expectedWaitMs > 0);
  assert.equal(one.load.expectedWaitMs, two.load.expectedWaitMs);
  abort.abort();
  await assert.rejects(left, trawlError('CANCELLED'));
  await Promise.all([busy, waiting]);
  assert.deepEqual([one.load.texts, two.load.texts], [4, 4]);
  assert.deepEqual([one.load.droppedTexts, two.load.droppedTexts], [2, 0]);
  assert.ok(two.load.chunks >= 2 && one.load.chunks >= 2);
});

test('a pool that cannot be opened fails for everyone who waits for it, and is not kept', async () => {
  const pools = new EncoderPools();
  const broken = options({}, { workerUrl: new URL('./no-such-worker.js', import.meta.url) });
  const opened = await Promise.allSettled([pools.lease(broken), pools.lease(broken)]);
  assert.deepEqual(
    opened.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.equal(pools.size, 0);
});

test('a pool that gave up is not shared with new encoders', async (t) => {
  const pools = new EncoderPools();
  const old = await open(t, pools);
  await old.encode(new Array(20).fill('die'), { inputType: 'query' });
  assert.ok(old.failure);
  const fresh = await open(t, pools);
  assert.equal(fresh.failure, undefined);
  assert.deepEqual([...(await fresh.encode(['ab'], { inputType: 'query' })).vectors], [2, 2]);
  await old.close();
  assert.equal(pools.size, 1, 'the fresh pool stays');
  assert.deepEqual([...(await fresh.encode(['a'], { inputType: 'query' })).vectors], [1, 1]);
});

test('a pool whose weights were written to or replaced is not shared with new encoders', async (t) => {
  const pools = new EncoderPools();
  const folder = await tempFolder(t);
  const [graphPath, weights] = [join(folder, 'model.onnx'), join(folder, 'model.onnx.data')];
  for (const path of [graphPath, weights]) writeFileSync(path, 'a');
  const settings = options();
  const model = { ...settings.model, graphPath, externalData: [weights] };
  const lease = async (): Promise<PoolLease> => {
    const leased = await pools.lease({ ...settings, model });
    t.after(() => leased.close());
    return leased;
  };
  for (const path of [graphPath, weights]) {
    const leases = [await lease(), await lease()];
    writeFileSync(path, 'bb');
    leases.push(await lease());
    assert.equal(leases[0]!.pool, leases[1]!.pool);
    assert.notEqual(leases[2]!.pool, leases[0]!.pool);
  }
});

test('many open pools cause no warning about listeners', async (t) => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  t.after(() => process.removeListener('warning', onWarning));
  const before = process.listenerCount('exit');
  const encoders = await Promise.all(Array.from({ length: 12 }, () => openModelEncoder(options())));
  assert.ok(process.listenerCount('exit') <= before + 1);
  await Promise.all(encoders.map((encoder) => encoder.close()));
  assert.equal(process.listenerCount('exit'), before);
  // Warnings are emitted on a later tick.
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
});
