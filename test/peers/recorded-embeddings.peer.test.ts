import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openOnnxSession } from '../../src/encoder/inference/onnx-session.ts';
import { tokenBatch } from '../../src/encoder/inference/token-batch.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { TextTokenizer } from '../../src/encoder/tokenizer/tokenizer.ts';
import { importedMiniLm } from '../helpers/minilm.ts';
import { withoutMiniLm } from '../helpers/peers.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';

/** Embeddings of all-MiniLM-L6-v2 that text-embeddings-inference recorded, not normalised. */
const RECORDED = 'golden_embeddings/tei';
/** The recorded values have less than float32 precision: the same text alone and in a batch differs by 3e-7 (1 - cosine). */
const NEAR = 1 - 2e-6;

const WHAT = 'What is Deep Learning?';
const IS = 'Deep Learning is...';

const miniLm = importedMiniLm();
const skip = withoutMiniLm() || withoutSharedData(RECORDED);

/** The vectors of a snapshot, a YAML list of lists of numbers after a header. */
function recorded(name: string): number[][] {
  const [, , body] = readFileSync(sharedData(`${RECORDED}/test_bert__bert_${name}.snap`), 'utf8').split(/^---\n/m);
  const vectors: number[][] = [];
  for (const line of body!.trimEnd().split('\n')) {
    const [, first, value] = /^(- | {2})- (\S+)$/.exec(line)!;
    if (first === '- ') vectors.push([]);
    vectors.at(-1)!.push(Number(value));
  }
  return vectors;
}

function assertNear(actual: ArrayLike<number>, expected: readonly number[]): void {
  assert.equal(actual.length, expected.length);
  let [product, aa, bb] = [0, 0, 0];
  for (const [i, value] of expected.entries()) {
    product += actual[i]! * value;
    aa += actual[i]! ** 2;
    bb += value ** 2;
  }
  assert.ok(product / Math.sqrt(aa * bb) >= NEAR, `cosine 1 - ${1 - product / Math.sqrt(aa * bb)}`);
  // The vectors are not normalised, so compare their lengths too.
  assert.ok(Math.abs(Math.sqrt(aa / bb) - 1) < 1e-3, `length ${Math.sqrt(aa / bb)} of the recorded`);
}

for (const [name, pooling, texts] of [
  ['single', 'mean', [WHAT]],
  ['batch', 'mean', [WHAT, IS, WHAT]],
  ['single_pooled', 'cls', [WHAT]],
  ['batch_pooled', 'cls', [WHAT, IS, WHAT]],
] as const) {
  test(`the ${pooling} vectors of all-MiniLM-L6-v2 equal those recorded from another server: ${name}`, {
    skip,
  }, async (t) => {
    const overrides: ModelOverrides = { pooling, normalize: false };
    const encoder = await openEncoder(await miniLm(), { workers: 1, overrides });
    t.after(() => encoder.close());
    const { vectors } = await encoder.encode(texts, { inputType: 'query' });
    const expected = recorded(name);
    assert.equal(expected.length, texts.length);
    for (const [i, vector] of expected.entries()) {
      assertNear(vectors.subarray(i * encoder.dimension, (i + 1) * encoder.dimension), vector);
    }
  });
}

for (const [name, texts] of [
  ['single_raw', [WHAT]],
  ['batch_raw', [WHAT, IS, WHAT]],
] as const) {
  test(`the token vectors of all-MiniLM-L6-v2 equal those recorded from another server: ${name}`, {
    skip,
  }, async (t) => {
    const model = await readModelFolder(await miniLm());
    const tokenizer = await TextTokenizer.load(model.tokenizerPath);
    const session = await openOnnxSession(model.graphPath, {
      use: 'mean',
      cudaDevice: null,
      shareWeights: false,
      externalData: [],
      poolsInGraph: false,
    });
    t.after(() => session.close());
    const expected = recorded(name);
    let row = 0;
    for (const text of texts) {
      const ids = tokenizer.frame(tokenizer.contentIds(text, 100));
      const { data, dims } = await session.run(tokenBatch([{ ids, cut: 'nothing' }], ids.length));
      const [, tokens, dimension] = dims as [number, number, number];
      for (let token = 0; token < tokens; token++) {
        assertNear(data.subarray(token * dimension, (token + 1) * dimension), expected[row++]!);
      }
    }
    assert.equal(row, expected.length);
  });
}
