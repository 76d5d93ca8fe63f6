import { type TestContext, test } from 'node:test';
import type { ModelIdentity } from '../../../src/encoder/identity/model-identity.ts';
import type { ModelOverrides } from '../../../src/encoder/model/model-overrides.ts';
import { openEncoder } from '../../../src/encoder/open-encoder.ts';
import { recordedOverrides } from '../../../src/search/opening/open-index-encoder.ts';
import assert from '../../helpers/assert.ts';
import { imported } from './imported-model.ts';
import { HIDDEN, tinyCheckpoint } from './tiny-checkpoint.ts';
import { TINY_NOMIC } from './tiny-families.ts';

const TEXTS = ['a b c d', 'p o n m l k', ''];

async function nomic(t: TestContext, id: string): Promise<string> {
  const checkpoint = await tinyCheckpoint(t, { family: TINY_NOMIC });
  return (await imported(checkpoint, { source: { kind: 'hub', id } })).folder;
}

async function embedded(
  folder: string,
  overrides: ModelOverrides,
): Promise<{ readonly vectors: readonly number[][]; readonly identity: ModelIdentity }> {
  const encoder = await openEncoder(folder, { workers: 1, overrides });
  try {
    const { vectors } = await encoder.encode(TEXTS, { inputType: 'passage' });
    const { dimension } = encoder;
    const rows = TEXTS.map((_, i) => [...vectors.subarray(i * dimension, (i + 1) * dimension)]);
    return { vectors: rows, identity: encoder.identity };
  } finally {
    await encoder.close();
  }
}

/** The first `values` values, less the mean of all if it is subtracted, divided by their length. */
function shortened(vector: readonly number[], values: number, centred: boolean): number[] {
  const mean = centred ? vector.reduce((sum, value) => sum + value, 0) / vector.length : 0;
  const first = vector.slice(0, values).map((value) => value - mean);
  const length = Math.hypot(...first);
  return first.map((value) => value / length);
}

const near = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((value, i) => Math.abs(value - b[i]!) < 1e-6);

test('nomic-embed-text-v1.5 has a layer norm before its vectors are truncated, and its index records it', async (t) => {
  const folder = await nomic(t, 'nomic-ai/nomic-embed-text-v1.5');
  const whole = await embedded(folder, {});
  assert.equal(whole.identity.beforeTruncation, undefined, 'whole vectors have none');
  const { vectors, identity } = await embedded(folder, { dimension: 6 });
  for (const [i, vector] of vectors.entries()) {
    assert.ok(near(vector, shortened(whole.vectors[i]!, 6, true)), `${vector}`);
    assert.ok(!near(vector, shortened(whole.vectors[i]!, 6, false)));
  }
  const { fullDimension, beforeTruncation, overrides } = identity;
  assert.deepEqual([fullDimension, beforeTruncation, overrides], [HIDDEN, 'layer-norm', ['dimension']]);
  const reopened = await embedded(folder, recordedOverrides(identity));
  assert.deepEqual(reopened, { vectors, identity });
});

test('an index of an earlier version, truncated without a layer norm, keeps its vectors', async (t) => {
  const folder = await nomic(t, 'nomic-ai/nomic-embed-text-v1.5');
  const { beforeTruncation: _, ...earlier } = (await embedded(folder, { dimension: 6 })).identity;
  const { vectors, identity } = await embedded(folder, recordedOverrides(earlier));
  assert.deepEqual(identity, earlier);
  const whole = await embedded(folder, {});
  for (const [i, vector] of vectors.entries()) assert.ok(near(vector, shortened(whole.vectors[i]!, 6, false)));
});

test('the folder of the model truncates without a layer norm for an index whose vectors came from an endpoint', async (t) => {
  const folder = await nomic(t, 'nomic-ai/nomic-embed-text-v1.5');
  const { beforeTruncation: _, ...byEndpoint } = (await embedded(folder, { dimension: 6 })).identity;
  const endpoint = { requests: { query: {}, passage: {} } } as NonNullable<ModelIdentity['endpoint']>;
  const { vectors } = await embedded(folder, recordedOverrides({ ...byEndpoint, endpoint }));
  const whole = await embedded(folder, {});
  for (const [i, vector] of vectors.entries()) assert.ok(near(vector, shortened(whole.vectors[i]!, 6, false)));
});

test('other models are truncated without a layer norm', async (t) => {
  const folder = await nomic(t, 'nomic-ai/nomic-embed-text-v1');
  assert.equal((await embedded(folder, { dimension: 6 })).identity.beforeTruncation, undefined);
});
