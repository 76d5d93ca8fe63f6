import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { CheckpointWeights } from '../../../indexer/model-import/checkpoint-weights.ts';
import { parseHeader } from '../../../indexer/model-import/safetensors.ts';
import { TrawlError } from '../../../src/base/errors.ts';
import { writeJson } from '../../encoder/model-fixtures.ts';
import { runs } from '../../helpers/runs.ts';
import { encodeSafetensors, float32Bytes, withHeader } from '../../helpers/safetensors.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const A = { dtype: 'F32', shape: [2, 3], bytes: float32Bytes([1, 2, 3, 4, 5, 6]) };
const B = { dtype: 'BF16', shape: [2], bytes: Uint8Array.of(0x80, 0x3f, 0x00, 0xc0) };

async function weightsOf(t: TestContext, file: Uint8Array): Promise<CheckpointWeights> {
  const folder = await tempFolder(t);
  await writeFile(join(folder, 'model.safetensors'), file);
  const weights = await CheckpointWeights.open(folder);
  t.after(() => weights.close());
  return weights;
}

/** A file with the tensors `a` and `b` whose header was edited. */
function changed(change: (header: Record<string, Record<string, unknown>>) => void): Buffer {
  return encodeSafetensors({ a: A, b: B }, change as (header: Record<string, unknown>) => void);
}

test('tensors are read by name, as float32', async (t) => {
  const weights = await weightsOf(t, encodeSafetensors({ a: A, b: B }));
  assert.deepEqual(weights.names, ['a', 'b']);
  assert.deepEqual(weights.get('a')!.shape, [2, 3]);
  assert.deepEqual([...(await weights.get('a')!.values())], [1, 2, 3, 4, 5, 6]);
  assert.deepEqual([...(await weights.get('b')!.values())], [1, -2]);
  assert.equal(weights.get('c'), undefined);
});

test('a large tensor is read in chunks of whole rows', async (t) => {
  const row = 3 * 1024 * 1024;
  const all = new Float32Array(2 * row);
  [all[0], all[row], all[2 * row - 1]] = [7, 8, 9];
  const bytes = float32Bytes(all);
  const weights = await weightsOf(t, encodeSafetensors({ a: { dtype: 'F32', shape: [2, row], bytes } }));
  const lengths = [];
  for await (const chunk of weights.get('a')!.chunks()) lengths.push(chunk.length);
  assert.deepEqual(lengths, [row, row]);
  const values = await weights.get('a')!.values();
  assert.deepEqual([values[0], values[row], values.at(-1)], [7, 8, 9]);
});

const HEADER = JSON.stringify({ a: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } });

const DAMAGED: readonly [string, Uint8Array, RegExp][] = [
  ['is empty', new Uint8Array(0), /has 0 bytes/],
  ['ends within the header length', new Uint8Array(7), /has 7 bytes/],
  [
    'states a header of 2^60 bytes',
    withHeader(HEADER, A.bytes, 2n ** 60n),
    /header should have 1152921504606846976 bytes/,
  ],
  ['states a header of 2^64 − 1 bytes', withHeader(HEADER, A.bytes, 2n ** 64n - 1n), /header should have/],
  ['has a truncated header', withHeader(HEADER, new Uint8Array(0), 500n), /header should have 500 bytes/],
  ['has a header that is not JSON', withHeader('{"a": ', A.bytes), /not JSON/],
  ['has a header that is a list', withHeader('[]', A.bytes), /not a JSON object/],
  ['has a header that is not UTF-8', withHeader('', Buffer.of(0xff), 1n), /not UTF-8/],
  [
    'names a tensor twice',
    withHeader(`${HEADER.slice(0, -1)},${HEADER.slice(1)}`, A.bytes.slice(0, 4)),
    /lists "a" twice/,
  ],
  ['has truncated tensors', encodeSafetensors({ a: A, b: B }).subarray(0, -3), /is incomplete/],
  ['has extra bytes at the end', Buffer.concat([encodeSafetensors({ a: A }), Buffer.of(0)]), /describes only 24/],
  ['has tensors that overlap', changed((h) => (h.b = { ...h.b, data_offsets: [20, 24] })), /overlaps/],
  ['has a gap between tensors', changed((h) => (h.b = { ...h.b, data_offsets: [28, 32] })), /leaves a gap/],
  ['has a tensor described by a number', changed((h) => Object.assign(h, { a: 3 })), /not an object/],
  ['has an unknown type', changed((h) => (h.a = { ...h.a, dtype: 'F33' })), /the type "F33"; expected one of/],
  [
    'has a type named like a property of Object.prototype',
    changed((h) => (h.a = { ...h.a, dtype: 'constructor' })),
    /the type "constructor"/,
  ],
  [
    'has a shape that does not fit',
    changed((h) => (h.a = { ...h.a, shape: [3, 3] })),
    /24 bytes; its type F32 and shape \[3, 3\] need 36/,
  ],
  ['has a negative shape', changed((h) => (h.a = { ...h.a, shape: [-2, -3] })), /the shape/],
  ['has a fractional shape', changed((h) => (h.a = { ...h.a, shape: [1.5, 4] })), /the shape/],
  [
    'has a shape whose size overflows',
    changed((h) => (h.a = { ...h.a, shape: [2 ** 52, 2 ** 52] })),
    /24 bytes; its type F32/,
  ],
  ['has only one offset', changed((h) => (h.a = { ...h.a, data_offsets: [0] })), /byte range/],
  ['has offsets in reverse order', changed((h) => (h.a = { ...h.a, data_offsets: [24, 0] })), /-24 bytes/],
  ['has offsets beyond 2^53', changed((h) => (h.a = { ...h.a, data_offsets: [0, 2 ** 60] })), /byte range/],
];

for (const [how, file, message] of DAMAGED) {
  test(`a file that ${how} is refused`, async (t) => {
    await assert.rejects(weightsOf(t, file), trawlError('MODEL_INVALID', message));
  });
}

test('a weight that is NaN or infinite is refused by name', async (t) => {
  for (const bad of [Number.NaN, Number.NEGATIVE_INFINITY]) {
    const weights = await weightsOf(t, encodeSafetensors({ a: { ...A, bytes: float32Bytes([1, 2, bad, 4, 5, 6]) } }));
    await assert.rejects(weights.get('a')!.values(), trawlError('MODEL_INVALID', /: a contains (NaN|-Infinity)/));
  }
});

test('a damaged file is refused with MODEL_INVALID, or its tensors have the size of their shape', async (t) => {
  const good = encodeSafetensors({ a: A, b: B });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
      fc.nat(good.length),
      async (changes, cut) => {
        const file = Buffer.from(cut % 3 === 0 ? good.subarray(0, cut) : good);
        for (const [at, value] of changes) if (at < file.length) file[at] = value;
        try {
          const weights = await weightsOf(t, file);
          for (const name of weights.names) {
            const weight = weights.get(name)!;
            const count = weight.shape.reduce((product, length) => product * length, 1);
            assert.equal((await weight.values()).length, count);
          }
        } catch (error) {
          assert.ok(error instanceof TrawlError && error.code === 'MODEL_INVALID', String(error));
        }
      },
    ),
    { numRuns: runs(100, 300) },
  );
});

test('any JSON is either a valid header or refused with MODEL_INVALID', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(64), (json, bytes) => {
      try {
        parseHeader('file', new TextEncoder().encode(json), bytes);
      } catch (error) {
        assert.ok(error instanceof TrawlError && error.code === 'MODEL_INVALID', String(error));
      }
    }),
    { numRuns: runs(150, 500) },
  );
});

async function sharded(t: TestContext, index: unknown): Promise<CheckpointWeights> {
  const folder = join(await tempFolder(t), 'sharded');
  await mkdir(folder);
  await writeFile(join(folder, 'one.safetensors'), encodeSafetensors({ a: A }));
  await writeFile(join(folder, 'two.safetensors'), encodeSafetensors({ b: B }));
  await writeFile(join(folder, '..', 'outside.safetensors'), encodeSafetensors({ c: A }));
  await writeJson(join(folder, 'model.safetensors.index.json'), index);
  const weights = await CheckpointWeights.open(folder);
  t.after(() => weights.close());
  return weights;
}

test('shards are read through their index', async (t) => {
  const weights = await sharded(t, { weight_map: { a: 'one.safetensors', b: 'two.safetensors' } });
  assert.deepEqual(weights.names, ['a', 'b']);
  assert.deepEqual([...(await weights.get('b')!.values())], [1, -2]);
  assert.equal(weights.files.length, 2);
});

const BAD_INDEXES: readonly [string, unknown, RegExp][] = [
  ['without a weight_map', { metadata: {} }, /has no weight_map/],
  ['with an empty weight_map', { weight_map: {} }, /has no weight_map/],
  ['that names a missing shard', { weight_map: { a: 'three.safetensors' } }, /three\.safetensors is missing/],
  [
    'that names a tensor missing from its shard',
    { weight_map: { b: 'one.safetensors' } },
    /one\.safetensors does not contain it/,
  ],
  ['that names a file outside the folder', { weight_map: { c: '../outside.safetensors' } }, /in the same folder/],
  ['that names an absolute path', { weight_map: { c: '/etc/passwd' } }, /in the same folder/],
  ['that has a number as a file name', { weight_map: { c: 5 } }, /in the same folder/],
];

for (const [how, index, message] of BAD_INDEXES) {
  test(`an index ${how} is refused`, async (t) => {
    await assert.rejects(sharded(t, index), trawlError('MODEL_INVALID', message));
  });
}

test('pickled weights are refused with the way to convert them to safetensors', async (t) => {
  const folder = await tempFolder(t);
  await writeFile(join(folder, 'pytorch_model.bin'), '');
  await assert.rejects(CheckpointWeights.open(folder), trawlError('MODEL_INVALID', /a pickle.*save_pretrained/s));
});

test('a folder without weights is refused with the files that were looked for', async (t) => {
  const message = /neither model\.safetensors nor model\.safetensors\.index\.json nor an ONNX graph/;
  await assert.rejects(CheckpointWeights.open(await tempFolder(t)), trawlError('MODEL_INVALID', message));
});
