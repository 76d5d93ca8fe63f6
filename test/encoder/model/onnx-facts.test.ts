import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { TrawlError } from '../../../src/base/errors.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { readOnnxFacts } from '../../../src/encoder/model/onnx-facts.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { fixture } from '../model-fixtures.ts';

/** A length-delimited protobuf field. */
function field(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([number * 8 + 2]), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    bytes.push(rest < 128 ? rest : (rest % 128) + 128);
    if (rest < 128) return Buffer.from(bytes);
  }
}

const number = (key: number, value: number) => Buffer.concat([Buffer.from([key * 8]), varint(value)]);
const tensor = (type: number, ...dims: number[]) =>
  field(5, Buffer.concat([...dims.map((dim) => number(1, dim)), number(2, type), field(9, Buffer.alloc(9000))]));
const packed = (...values: number[]) => Buffer.concat(values.map(varint));
const node = (type: string) => field(1, Buffer.concat([field(1, 'x'), field(4, type)]));
const external = (key: string, value: string) => field(13, Buffer.concat([field(1, key), field(2, value)]));
const model = (...parts: Buffer[]) =>
  Buffer.concat([
    number(1, 8),
    field(2, 'exporter'),
    field(7, Buffer.concat([...parts, field(11, field(1, 'input_ids')), field(12, field(1, 'sentence_embedding'))])),
  ]);

test('the precision and the outputs of a graph are read from its file', async (t) => {
  const path = join(await tempFolder(t), 'model.onnx');
  for (const [precision, bytes] of [
    ['float32', model(node('MatMul'), tensor(1, 300, 300), tensor(7, 2))],
    ['float16', model(node('MatMul'), tensor(10, 300, 300), tensor(1, 20))],
    ['int8', model(node('DynamicQuantizeLinear'), node('MatMulInteger'), tensor(3, 10, 10), tensor(1, 300, 300))],
    ['int8', model(node('DynamicQuantizeMatMul'), tensor(1, 300, 300))],
    ['int8', model(node('Cast'), node('MatMul'), tensor(3, 300, 300), tensor(1, 300))],
  ] as const) {
    await writeFile(path, bytes);
    assert.deepEqual(await readOnnxFacts(path), {
      inputs: ['input_ids'],
      outputs: ['sentence_embedding'],
      precision,
      externalData: [],
    });
  }
  const exported = await readOnnxFacts(fixture('exported.onnx'));
  assert.deepEqual(exported.outputs, ['token_embeddings', 'sentence_embedding', 'pooler_output']);
  assert.equal(exported.precision, 'float32');
});

test('the files with external weights are listed, each once', async (t) => {
  const path = join(await tempFolder(t), 'model.onnx');
  const elsewhere = (name: string) =>
    field(
      5,
      Buffer.concat([field(1, packed(768, 1000)), number(2, 10), external('offset', '0'), external('location', name)]),
    );
  await writeFile(path, model(elsewhere('a.data'), elsewhere('b/c.data'), elsewhere('a.data'), tensor(1, 700_000)));
  const facts = await readOnnxFacts(path);
  assert.deepEqual(facts.externalData, ['a.data', 'b/c.data']);
  // Packed dimensions are read too: 3 × 768,000 float16 weights against 700,000 float32 ones.
  assert.equal(facts.precision, 'float16');
});

test('a missing or damaged graph is refused with MODEL_INVALID, unless its facts can still be read', async (t) => {
  const path = join(await tempFolder(t), 'model.onnx');
  const whole = await readFile(fixture('toy.onnx'));
  await assert.rejects(readOnnxFacts(join(packageRoot, 'nowhere.onnx')), { code: 'MODEL_INVALID' });
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.nat(whole.length - 1), fc.nat(255), async (cut, at, byte) => {
      const damaged = Buffer.from(whole.subarray(0, cut));
      if (at < damaged.length) damaged[at] = byte;
      await writeFile(path, damaged);
      const facts = await readOnnxFacts(path).catch((error: TrawlError) => error);
      if (facts instanceof TrawlError) assert.equal(facts.code, 'MODEL_INVALID');
      else assert.ok(['float32', 'float16', 'int8'].includes(facts.precision) && facts.outputs.length > 0);
    }),
    { numRuns: 100 },
  );
});
