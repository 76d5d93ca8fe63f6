import type { FastifyInstance } from 'fastify';
import { type Static, Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { orNull } from '../../base/or-null.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { Operation } from '../api-docs/openapi.ts';
import { clientSignal } from '../connections/client-signal.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import { isLimited, withRetriever } from '../indexes/view-choice.ts';
import type { ServerConfig } from '../server-config.ts';

/** Enough to see the shape of an index, and few enough to embed beside a training run. */
const SAMPLE_ROWS = 256;
const SHOWN_CHARACTERS = 240;
const BUCKETS = 24;

/** Two numbers: a component each. */
const Pair = Type.Array(Type.Number(), { minItems: 2, maxItems: 2 });

const SampleMap = Type.Object({
  points: Type.Array(Pair, { description: 'The first two principal components of each passage’s vector.' }),
  explained: Type.Array(Type.Number(), { description: 'The share of the variance of each component.' }),
  similarities: Type.Object({
    low: Type.Number(),
    high: Type.Number(),
    counts: Type.Array(Type.Integer(), {
      description: 'Dot products of all pairs of the passages, in buckets of equal width from low to high.',
    }),
  }),
});
type SampleMap = Static<typeof SampleMap>;

const Sample = Type.Object({
  passages: Type.Array(
    Type.Object({
      row: Type.Integer(),
      id: Type.Optional(Type.String()),
      title: Type.Optional(Type.String()),
      text: Type.String({ description: 'The beginning of the text.' }),
      words: Type.Integer({ description: 'Words of the whole text.' }),
    }),
    { description: 'Up to 256 passages at even distances in the row order.' },
  ),
  map: orNull(SampleMap, 'With map=true; else null.'),
});
type Sample = Static<typeof Sample>;

const SampleReply = Type.Object({
  index: Type.Object({ name: Type.String(), generation: Type.String() }),
  ...Sample.properties,
});

export const SAMPLE_OPERATION: Operation = {
  path: '/v1/sample',
  name: 'sample',
  summary: 'A sample of the passages, with map=true also a map of their vectors',
  access: 'read',
  reply: SampleReply,
};

/** `GET /v1/sample`, for the Index tab of the page. */
export function registerSample(app: FastifyInstance, holder: IndexRegistry, config: ServerConfig): void {
  /** The maps of open indexes, because they cost embedding. Maps of views are not kept. */
  const maps = new WeakMap<Retriever, Sample>();
  app.get<{ Querystring: { map?: string | string[] } }>('/v1/sample', (request, reply) =>
    withRetriever(request, holder, config, async (retriever, whole): Promise<Static<typeof SampleReply>> => {
      const withMap = request.query.map === 'true';
      const { index, generation, model } = retriever.info;
      if (withMap && model === null) {
        throw new TrawlError('NOT_SUPPORTED', `Index ${index} has no vectors to map. Leave out map=true.`);
      }
      const keeps = withMap && !isLimited(request, config);
      const signal = clientSignal(request.raw, reply.raw);
      const sample = (keeps ? maps.get(whole) : undefined) ?? (await drawSample(retriever, withMap, signal));
      if (keeps) maps.set(whole, sample);
      return { index: { name: index, generation }, ...sample };
    }),
  );
}

/** Passages at even distances in the row order, the same ones each time, without deleted ones and those outside of the scope. */
async function drawSample(retriever: Retriever, withMap: boolean, signal: AbortSignal): Promise<Sample> {
  const { rows } = retriever.info;
  const count = Math.min(rows, SAMPLE_ROWS);
  const keys = Array.from({ length: count }, (_, i) => String(Math.floor((i * rows) / count)));
  const { found } = await retriever.find({ by: 'row', keys, limit: 1, signal });
  const passages = found.flatMap(([passage]) =>
    passage === undefined ? [] : [{ row: passage.row, fields: documentFields(passage.document) }],
  );
  const contents = passages.map(({ fields }) => fields.contents);
  return {
    passages: passages.map(({ row, fields: { id, title, text } }) => ({
      row,
      id,
      title,
      text: text.slice(0, SHOWN_CHARACTERS),
      words: text.split(/\s+/).filter((word) => word !== '').length,
    })),
    map: withMap && contents.length > 0 ? await drawMap(retriever, contents, signal) : null,
  };
}

/** Embeds the passages again: the vectors of the index are read by its engine alone. */
async function drawMap(retriever: Retriever, contents: readonly string[], signal: AbortSignal): Promise<SampleMap> {
  const { vectors, outcomes } = await retriever.embed({ inputs: contents, inputType: 'passage', signal });
  for (const outcome of outcomes) if (!outcome.ok) throw outcome.error;
  const dimension = vectors.length / contents.length;
  const rows = contents.map((_, i) => vectors.subarray(i * dimension, (i + 1) * dimension));
  const slice = new TimeSlice(signal);
  return { ...(await principalComponents(rows, slice)), similarities: await similarityCounts(rows, slice) };
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

async function similarityCounts(
  vectors: readonly Float32Array[],
  slice: TimeSlice,
): Promise<SampleMap['similarities']> {
  const products: number[] = [];
  for (const [a, vector] of vectors.entries()) {
    for (const other of vectors.slice(a + 1)) products.push(dot(vector, other));
    if (slice.isOver) await slice.yield();
  }
  const low = products.reduce((least, value) => Math.min(least, value), products[0] ?? 0);
  const high = products.reduce((most, value) => Math.max(most, value), products[0] ?? 0);
  const counts = new Array<number>(BUCKETS).fill(0);
  for (const product of products) {
    const at = high > low ? Math.floor((BUCKETS * (product - low)) / (high - low)) : 0;
    counts[Math.min(BUCKETS - 1, at)]!++;
  }
  return { low, high, counts };
}

const ITERATIONS = 40;

/**
 * The first two principal components of vectors, by power iteration with deflation. For a few hundred vectors to look at, the components
 * are exact enough after 40 steps.
 */
async function principalComponents(
  vectors: readonly Float32Array[],
  slice: TimeSlice,
): Promise<Pick<SampleMap, 'points' | 'explained'>> {
  const dimension = vectors[0]!.length;
  const mean = new Float64Array(dimension);
  for (const vector of vectors) for (let i = 0; i < dimension; i++) mean[i]! += vector[i]! / vectors.length;
  const centred = vectors.map((vector) => Float64Array.from(vector, (value, i) => value - mean[i]!));
  let variance = 0;
  for (const vector of centred) for (const value of vector) variance += value * value;
  const found: { readonly axis: Float64Array; readonly coordinates: readonly number[]; readonly share: number }[] = [];
  for (let which = 0; which < 2; which++) {
    // Any vector that is not orthogonal to the component; the same one each time, so that the map is the same.
    let axis = Float64Array.from({ length: dimension }, (_, i) => Math.sin((i + 1) * (which + 1.5)));
    let coordinates: readonly number[] = [];
    for (let step = 0; step <= ITERATIONS; step++) {
      if (step > 0) axis = combined(centred, coordinates);
      for (const other of found) {
        const share = dot(axis, other.axis);
        for (let i = 0; i < dimension; i++) axis[i]! -= share * other.axis[i]!;
      }
      const length = Math.hypot(...axis);
      if (length > 0) for (let i = 0; i < dimension; i++) axis[i]! /= length;
      coordinates = centred.map((vector) => dot(vector, axis));
      if (slice.isOver) await slice.yield();
    }
    const own = coordinates.reduce((sum, value) => sum + value * value, 0);
    found.push({ axis, coordinates, share: variance > 0 ? own / variance : 0 });
  }
  const [first, second] = found as [(typeof found)[0], (typeof found)[0]];
  return {
    points: first.coordinates.map((coordinate, i) => [coordinate, second.coordinates[i]!]),
    explained: [first.share, second.share],
  };
}

/** The sum of vectors, each times its weight. */
function combined(vectors: readonly Float64Array[], weights: readonly number[]): Float64Array<ArrayBuffer> {
  const sum = new Float64Array(vectors[0]!.length);
  for (const [v, vector] of vectors.entries()) for (let i = 0; i < sum.length; i++) sum[i]! += vector[i]! * weights[v]!;
  return sum;
}
