import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../../src/base/package-root.ts';
import { readModelFolder } from '../../../src/encoder/model/model-folder.ts';
import { ChunkSizer } from '../../../src/encoder/pool/chunk-size.ts';
import { EncodeCall, PoolUser, UNGROUPED } from '../../../src/encoder/pool/encode-call.ts';
import type { EncodedChunk } from '../../../src/encoder/pool/encoder-messages.ts';
import { EncoderThread } from '../../../src/encoder/pool/encoder-thread.ts';

const MODEL = 'token-average-256';
const skip = existsSync(join(packageRoot, 'models', MODEL)) ? false : `models/${MODEL} does not exist`;
const WORKER = new URL('../../../src/encoder/pool/encoder-worker.js', import.meta.url);

/** The answer of a real worker to a chunk with these texts. */
async function encoded(texts: readonly string[], triesGrouping: boolean): Promise<EncodedChunk> {
  const model = await readModelFolder(MODEL);
  const sizer = new ChunkSizer();
  const tokenize = { prefix: '', maxTokens: model.identity.maxTokens.query, truncate: 'tail' } as const;
  const call = new EncodeCall(texts, { user: new PoolUser(), tokenize }, model.identity.dimension, sizer);
  const device = { cudaDevice: null, shareWeights: false, triesGrouping, batchTokens: null };
  let thread: EncoderThread;
  return new Promise<EncodedChunk>((resolve, reject) => {
    thread = new EncoderThread(WORKER, model, device, {
      onIdle() {},
      onCounted() {},
      onEncoded: (_, chunk) => resolve(chunk),
      onDied: (_, error) => reject(error),
    });
    thread.ready.then(() => {
      const slice = call.takeSlice(UNGROUPED, Number.POSITIVE_INFINITY);
      thread.encode({ slices: [slice], weight: slice.weight, isGrouped: false, uncounted: [] }, 1, null);
    }, reject);
  }).finally(() => thread.close());
}

test('a chunk with texts of equal length causes a grouping trial; texts of different lengths do not', {
  skip,
}, async () => {
  assert.equal((await encoded(['one bridge', 'two towers'], false)).canGroup, true);
  assert.equal((await encoded(['bridge', 'a bridge', 'a long bridge'], false)).canGroup, null);
  assert.equal((await encoded(['bridge'], true)).canGroup, true, 'the trial ran before the thread was ready');
});
