import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  BM25_PROFILES,
  type Bm25Parameters,
  decodeLength,
  type FieldCounts,
  inverseNorms,
  lengthCode,
  termScore,
  termWeight,
} from '../../../src/engine/lexical/bm25.ts';

function bits(value: number): string {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  return view.getUint32(0).toString(16).padStart(8, '0');
}

interface Case {
  readonly parameters: Bm25Parameters;
  readonly counts: FieldCounts;
  readonly documentFrequency: number;
  readonly length: number;
  readonly tf: number;
  readonly boost: number;
  /** Bits of 1 / norm and of the score in Lucene. */
  readonly expected: readonly [string, string];
}

const WIKI = { documents: 79_482, tokens: 4_045_202 };
const { lucene, elasticsearch } = BM25_PROFILES;

const CASES: Readonly<Record<string, Case>> = {
  'one occurrence': {
    parameters: lucene,
    counts: WIKI,
    documentFrequency: 123,
    length: 50,
    tf: 1,
    boost: 1,
    expected: ['3f8f3aaf', '405a90cd'],
  },
  'three occurrences of a term that the query has twice': {
    parameters: lucene,
    counts: WIKI,
    documentFrequency: 123,
    length: 50,
    tf: 3,
    boost: 2,
    expected: ['3f8f3aaf', '411f72a3'],
  },
  'other k1 and b': {
    parameters: { k1: 1.2, b: 0.75, k1Factor: false },
    counts: WIKI,
    documentFrequency: 123,
    length: 41,
    tf: 2,
    boost: 1,
    expected: ['3f7e222a', '4089a080'],
  },
};

for (const [name, { parameters, counts, documentFrequency, length, tf, boost, expected }] of Object.entries(CASES)) {
  test(`a score has the bits of Lucene's: ${name}`, () => {
    const weight = termWeight(parameters, boost, { documentFrequency, documents: counts.documents });
    const inverse = inverseNorms(parameters, counts)[lengthCode(length)]!;
    assert.deepEqual([bits(inverse), bits(termScore(weight, tf, inverse))], expected);
  });
}

test("Elasticsearch's scores have its factor k1 + 1", () => {
  const counts = { documents: 4937, tokens: 0 };
  const weight = termWeight(elasticsearch, 1, { documentFrequency: 7, documents: 4937 });
  const average = new DataView(new ArrayBuffer(4));
  average.setUint32(0, 0x404b8640);
  // Elasticsearch reports the average length, not the number of tokens.
  const inverse = inverseNorms(elasticsearch, { ...counts, tokens: average.getFloat32(0) * 4937 })[2]!;
  assert.deepEqual([bits(inverse), bits(termScore(weight, 1, inverse))], ['3f93cd39', '40f4d7bf']);
});

test('lengthCode rounds a length down to one of the 256 lengths of Lucene', () => {
  const lengths = [0, 1, 39, 40, 41, 55, 59, 87, 151, 279, 535, 1000, 100_000, 2_147_483_647];
  assert.deepEqual(
    lengths.map((length) => [lengthCode(length), decodeLength(lengthCode(length))]),
    [
      [0, 0],
      [1, 1],
      [39, 39],
      [40, 40],
      [40, 40],
      [47, 54],
      [48, 56],
      [55, 84],
      [63, 144],
      [71, 264],
      [79, 504],
      [87, 984],
      [140, 98_328],
      [255, 2_013_265_944],
    ],
  );
});

test('with k1 = 0 the score is the weight of the term for any number of occurrences', () => {
  const parameters = { k1: 0, b: 0.75, k1Factor: false };
  const weight = termWeight(parameters, 1, { documentFrequency: 3, documents: 10 });
  const inverse = inverseNorms(parameters, { documents: 10, tokens: 40 })[4]!;
  assert.equal(inverse, Number.POSITIVE_INFINITY);
  assert.deepEqual([termScore(weight, 1, inverse), termScore(weight, 9, inverse)], [weight, weight]);
});
