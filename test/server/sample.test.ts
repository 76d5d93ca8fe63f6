import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EmbedCall } from '../../src/search/retriever.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { build, errorOf } from './build.ts';

interface Sample {
  readonly index: { readonly name: string; readonly generation: string };
  readonly passages: readonly { row: number; id?: string; title?: string; text: string; words: number }[];
  readonly map: {
    readonly points: readonly (readonly [number, number])[];
    readonly explained: readonly [number, number];
    readonly similarities: { low: number; high: number; counts: readonly number[] };
  } | null;
}

/** Passages whose vectors lie along two directions of known variance, with a little noise. */
class PlaneRetriever extends FakeRetriever {
  readonly embedded: number[] = [];
  readonly wanted: (readonly [number, number])[];

  constructor(count: number) {
    const documents = Array.from({ length: count }, (_, i) => `{"id":"p${i}","title":"T${i}","text":"one  two ${i}"}`);
    super({ documents });
    const random = seededRandom(3);
    this.wanted = documents.map(() => [10 * (random() - 0.5), 3 * (random() - 0.5)] as const);
  }

  override async embed({ inputs, inputType }: EmbedCall) {
    assert.equal(inputType, 'passage');
    this.embedded.push(inputs.length);
    const rows = inputs.map((input) => Number(/\d+$/.exec(String(input))![0]));
    const random = seededRandom(4);
    // (1, 1, 0, 0)/√2 and (0, 0, 1, −1)/√2, away from the origin.
    const vectors = rows.flatMap((row) => {
      const [a, b] = this.wanted[row]!.map((value) => value / Math.SQRT2);
      return [a! + 5, a! + 5, b! - 2, -b! - 2].map((value) => value + 1e-3 * random());
    });
    const outcome = { ok: true, tokens: 3, truncated: false, cut: 'nothing' } as const;
    const timings = { queue: 0, embed: 1, search: 0, fetch: 0, rerank: 0 };
    return { vectors: Float32Array.from(vectors), outcomes: inputs.map(() => outcome), timings };
  }
}

test('a sample has up to 256 passages at even distances, with the beginnings of their texts', async (t) => {
  const retriever = new PlaneRetriever(1_000);
  const app = build(t, retriever);
  const { index, passages, map } = (await app.inject('/v1/sample')).json<Sample>();
  assert.deepEqual(index, { name: 'fake-sample', generation: 'generation-1' });
  assert.equal(map, null);
  assert.deepEqual(retriever.embedded, []);
  assert.deepEqual(
    passages.map(({ row }) => row),
    Array.from({ length: 256 }, (_, i) => Math.floor((i * 1_000) / 256)),
  );
  assert.deepEqual(passages[1], { row: 3, id: 'p3', title: 'T3', text: 'one  two 3', words: 3 });
  const few = build(t, new FakeRetriever());
  assert.equal((await few.inject('/v1/sample')).json<Sample>().passages.length, 5);
});

test('the map has the principal components of the vectors, and is made once', async (t) => {
  const retriever = new PlaneRetriever(300);
  const app = build(t, retriever);
  const { passages, map } = (await app.inject('/v1/sample?map=true')).json<Sample>();
  const wanted = passages.map(({ row }) => retriever.wanted[row]!);
  for (const axis of [0, 1] as const) {
    const mean = wanted.reduce((sum, point) => sum + point[axis], 0) / wanted.length;
    const expected = wanted.map((point) => point[axis] - mean);
    const found = map!.points.map((point) => point[axis]);
    const dot = (a: readonly number[], b: readonly number[]): number =>
      a.reduce((sum, value, i) => sum + value * b[i]!, 0);
    // The sampled axes are not quite orthogonal, so the components are turned a little from the two directions.
    const correlation = dot(expected, found) / Math.sqrt(dot(expected, expected) * dot(found, found));
    assert.ok(Math.abs(correlation) > 0.98, `axis ${axis}: ${correlation}`);
  }
  const [first, second] = map!.explained;
  assert.ok(
    first > 0.8 && second > 0.03 && first + second > 0.999 && first + second <= 1.000_001,
    `${first} ${second}`,
  );
  const { low, high, counts } = map!.similarities;
  assert.ok(low < high);
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    (256 * 255) / 2,
  );
  assert.deepEqual((await app.inject('/v1/sample?map=true')).json<Sample>().map, map);
  assert.deepEqual(retriever.embedded, [256]);
});

test('an index with one passage, or with equal vectors, has a map without spread', async (t) => {
  const app = build(t, new FakeRetriever({ documents: ['{"id":1,"text":"alone"}'] }));
  const { map } = (await app.inject('/v1/sample?map=true')).json<Sample>();
  assert.deepEqual(map!.points, [[0, 0]]);
  assert.deepEqual(map!.explained, [0, 0]);
  assert.equal(
    map!.similarities.counts.reduce((sum, count) => sum + count, 0),
    0,
  );
});

test('an index without vectors has a sample and no map', async (t) => {
  const retriever = new FakeRetriever();
  Object.assign(retriever, { info: { ...retriever.info, model: null, modes: ['bm25'] } });
  const app = build(t, retriever);
  assert.equal((await app.inject('/v1/sample')).statusCode, 200);
  const refused = await app.inject('/v1/sample?map=true');
  assert.equal(refused.statusCode, 501);
  assert.match(errorOf(refused.json()).message, /has no vectors to map/);
  assert.equal((await app.inject('/v1/sample?index=unknown')).statusCode, 404);
});
