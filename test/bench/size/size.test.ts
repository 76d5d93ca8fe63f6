import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expectedSeconds, SIZE_STEPS, sizeDiskBytes } from '../../../bench/size/size-estimates.ts';
import { openVectorEndpoint, queryText } from '../../../bench/size/vector-endpoint.ts';
import { SyntheticVectors } from '../../../bench/vectors/synthetic-vectors.ts';
import { basisOfSpectrum } from '../../../bench/vectors/vector-basis.ts';

test('the endpoint gives a numbered query its held-out vector, with and without a prefix, and each other text one of its own', async (t) => {
  const basis = basisOfSpectrum(64);
  const endpoint = await openVectorEndpoint(basis, 3);
  t.after(() => endpoint.close());
  const ask = async (input: unknown, format?: string) => {
    const body = JSON.stringify({ input, ...(format === undefined ? {} : { encoding_format: format }) });
    const reply = await fetch(`${endpoint.url}/v1/embeddings`, { method: 'POST', body });
    return ((await reply.json()) as { data: { embedding: unknown }[] }).data.map(({ embedding }) => embedding);
  };
  const expected = new Float32Array(2 * 64);
  new SyntheticVectors(basis, { seed: 3, float16: false }).fill('queries', 6, 2, expected);
  assert.deepEqual((await ask([queryText(6), `query: ${queryText(7)}`])).flat(), [...expected]);
  const [text] = await ask(queryText(6), 'base64');
  assert.deepEqual(Buffer.from(text as string, 'base64'), Buffer.from(expected.buffer, 0, 64 * 4));
  const [one, again, other] = await ask(['passage: x', 'passage: x', 'passage: y']);
  assert.deepEqual(one, again);
  assert.notDeepEqual(one, other);
  assert.equal((await fetch(`${endpoint.url}/embed`, { method: 'POST' })).status, 404);
});

test('the disk for wiki-18 is estimated from rows, codes and prefilters, and the time from the steps that are left', () => {
  const bytes = sizeDiskBytes(21_000_000, 768);
  assert.ok(bytes > 32.3e9 + 16.6e9 + 7.2e9 && bytes < 75e9, String(bytes));
  assert.ok(expectedSeconds(SIZE_STEPS, 21_000_000) > expectedSeconds(['memory', 'prefilter'], 21_000_000));
  assert.equal(expectedSeconds([], 21_000_000), 0);
});
