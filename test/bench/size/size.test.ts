import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ScoredRow, scanRows } from '../../../bench/size/scan-rows.ts';
import { expectedSeconds, SIZE_STEPS, sizeDiskBytes } from '../../../bench/size/size-estimates.ts';
import { openVectorEndpoint, queryText } from '../../../bench/size/vector-endpoint.ts';
import { SyntheticVectors } from '../../../bench/vectors/synthetic-vectors.ts';
import { basisOfSpectrum } from '../../../bench/vectors/vector-basis.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

test('the endpoint gives a numbered query its held-out vector, with and without a prefix, and each other text one of its own', async (t) => {
  const basis = basisOfSpectrum(64);
  const endpoint = await openVectorEndpoint(basis, 3);
  t.after(() => endpoint.close());
  const ask = async (input: unknown, format?: string) => {
    const body = JSON.stringify({ input, encoding_format: format });
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

test('a scan finds the best rows of float16 files and of a float32 file behind a header, equal scores by the lower row', async (t) => {
  const folder = await tempFolder(t);
  const row = (number: number, score: number): ScoredRow => ({ row: number, score });
  const rows = Float32Array.of(1, 0, 0, 2, 3, 0, 0, 2, 1, 0);
  const [half, single] = [join(folder, 'half'), join(folder, 'single')];
  const halves: Readonly<Record<number, number>> = { 0: 0, 1: 0x3c00, 2: 0x4000, 3: 0x4200 };
  writeFileSync(
    `${half}1`,
    Uint16Array.from(rows.subarray(0, 6), (value) => halves[value]!),
  );
  writeFileSync(
    `${half}2`,
    Uint16Array.from(rows.subarray(6), (value) => halves[value]!),
  );
  writeFileSync(single, Buffer.concat([Buffer.from('header'), Buffer.from(rows.buffer)]));
  const options = { queries: Float32Array.of(1, 0, 0, 1, 1, 1, -1, 0), dimension: 2, k: 2, note: () => undefined };
  const expected = [
    [row(2, 3), row(0, 1)],
    [row(1, 2), row(3, 2)],
    [row(2, 3), row(1, 2)],
    [row(1, 0), row(3, 0)],
  ];
  const pieces = [
    { path: `${half}1`, first: 0, rows: 3 },
    { path: `${half}2`, first: 3, rows: 2 },
  ];
  assert.deepEqual(await scanRows(pieces, options), expected);
  const whole = [{ path: single, first: 0, rows: 5, offset: 'header'.length }];
  assert.deepEqual(await scanRows(whole, { ...options, dtype: 'float32' }), expected);
});

test('an abort ends a scan', async (t) => {
  const path = join(await tempFolder(t), 'rows');
  writeFileSync(path, Float32Array.of(1, 0));
  const signal = AbortSignal.abort(new Error('enough'));
  const options = { queries: new Float32Array(8), dimension: 2, k: 1, note: () => undefined };
  await assert.rejects(scanRows([{ path, first: 0, rows: 1 }], { ...options, dtype: 'float32', signal }), /enough/);
});
