import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ChunkSizer } from '../../src/embedding/chunk-size.ts';
import { EncodeJob } from '../../src/embedding/encode-job.ts';
import type { EncodedChunk } from '../../src/embedding/encoder-messages.ts';
import { EncoderThread } from '../../src/embedding/encoder-thread.ts';
import { readModelFolder } from '../../src/embedding/model-folder.ts';
import { UNCOUNTED } from '../../src/embedding/text-lanes.ts';
import { packageRoot } from '../../src/package-root.ts';

const MODEL = 'token-average-256';
const skip = existsSync(join(packageRoot, 'models', MODEL)) ? false : `models/${MODEL} is not there`;
const WORKER = new URL('../../src/embedding/encoder-worker.js', import.meta.url);

/** What a real worker says of a chunk with these texts. */
async function encoded(texts: readonly string[], triesFirst: boolean): Promise<EncodedChunk> {
  const model = await readModelFolder(MODEL);
  const sizer = new ChunkSizer(model.identity.maxTokens);
  const job = new EncodeJob(texts, { kind: 'query' }, model.identity.dimension, sizer);
  const device = { cudaDevice: null, shareWeights: false, triesFirst, batchTokens: null };
  let thread: EncoderThread;
  return new Promise<EncodedChunk>((resolve, reject) => {
    thread = new EncoderThread(WORKER, model, device, {
      onIdle() {},
      onCounted() {},
      onEncoded: (_, chunk) => resolve(chunk),
      onDied: (_, error) => reject(error),
    });
    thread.ready.then(() => {
      const piece = job.takePiece(UNCOUNTED, Number.POSITIVE_INFINITY);
      thread.encode({ pieces: [piece], weight: piece.weight, isFilled: false, uncounted: [] });
    }, reject);
  }).finally(() => thread.close());
}

test('texts of equal length are taken together, after a trial; texts of different length need none', {
  skip,
}, async () => {
  assert.equal((await encoded(['one bridge', 'two towers'], false)).groups, true);
  assert.equal((await encoded(['bridge', 'a bridge', 'a long bridge'], false)).groups, null);
  assert.equal((await encoded(['bridge'], true)).groups, true, 'tried before it was ready');
});
