import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProductsRecord } from '../../bench/products/bench-products.ts';
import { jsonOf, runTrawl } from '../cli/run-trawl.ts';

const SMALL = ['--dimension', '64', '--layers', '1', '--tokens', '5', '--runs', '1'];
const KINDS = 'float32; int8 DynamicQuantizeMatMul; MatMulNBits, 8 bits, blocks of 32';

test("bench products times the products of an encoder with onnxruntime's operators, alone, apart and together", async () => {
  const args = ['bench', 'products', ...SMALL, '--threads', '2', '--kinds', KINDS, '--json', '--quiet'];
  const records = jsonOf<ProductsRecord[]>(await runTrawl(args));
  assert.deepEqual(
    records.map(({ use, kind }) => [use, kind]),
    ['alone', 'apart', 'together'].flatMap((use) => KINDS.split('; ').map((kind) => [use, kind])),
  );
  for (const { hidden, layers, tokens, threads, use, medianMs, processorMs, gflopPerS, sameBits } of records) {
    assert.deepEqual([hidden, layers, tokens, threads], [64, 1, 5, use === 'alone' ? 1 : 2]);
    assert.ok(medianMs > 0 && processorMs > 0);
    // Two multiplications and additions for each of the twelve 64 × 64 matrices' values and each token.
    const operations = 2 * 5 * 12 * 64 * 64;
    if (use === 'together') assert.equal(typeof sameBits, 'boolean');
    else assert.ok(Math.abs(gflopPerS! * processorMs * 1e6 - operations) < 1);
  }
  for (const record of records) if (record.kind === 'float32') assert.equal(record.ratioToFloat32, 1);
});

test('bench products names the operators that onnxruntime does not have on a CPU', async () => {
  const ended = await runTrawl(['bench', 'products', ...SMALL, '--threads', '1', '--kinds', 'bfloat16;float32']);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stdout, /\| float32 +\|/);
  assert.match(ended.stdout, /^bfloat16: not possible: .*MatMul/m);
});

test('bench products refuses unknown operators, numbers of tokens, and options of other cases', async () => {
  const refused = async (args: readonly string[], message: RegExp): Promise<void> => {
    const { code, stderr } = await runTrawl(['bench', ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
  };
  await refused(['products', '--kinds', 'float64'], /--kinds is "float64"; expected some of float32; float16; /);
  await refused(['products', '--tokens', '0'], /--tokens is "0"; expected whole numbers from 1/);
  await refused(['flat', '--layers', '2'], /--layers belongs to `trawl bench products`/);
});
