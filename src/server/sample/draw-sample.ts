import { TimeSlice } from '../../base/time-slice.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Retriever } from '../../search/retriever.ts';
import { type Projection, principalComponents } from './principal-components.ts';

/** Enough to see the shape of an index, and few enough to embed beside a training run. */
const SAMPLE_ROWS = 256;
const SHOWN_CHARACTERS = 240;
const BUCKETS = 24;

interface SampledPassage {
  readonly row: number;
  readonly id?: string;
  readonly title?: string;
  /** The beginning of the text. */
  readonly text: string;
  /** Words of the whole text, counted at white space. */
  readonly words: number;
}

interface SampleMap extends Projection {
  /** Dot products of all pairs of sampled passages: `counts` in buckets of equal width from `low` to `high`. */
  readonly similarities: { readonly low: number; readonly high: number; readonly counts: readonly number[] };
}

export interface Sample {
  readonly passages: readonly SampledPassage[];
  /** Null unless it was asked for. */
  readonly map: SampleMap | null;
}

/** Passages at even distances in the row order, the same ones each time, without deleted ones and those outside of the scope. */
export async function drawSample(
  retriever: Retriever,
  { map: withMap, signal }: { readonly map: boolean; readonly signal: AbortSignal },
): Promise<Sample> {
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
    map: withMap && contents.length > 0 ? await mapOf(retriever, contents, signal) : null,
  };
}

/** Embeds the passages again: the vectors of the index are read by its engine alone. */
async function mapOf(retriever: Retriever, contents: readonly string[], signal: AbortSignal): Promise<SampleMap> {
  const { vectors, outcomes } = await retriever.embed({ inputs: contents, inputType: 'passage', signal });
  for (const outcome of outcomes) if (!outcome.ok) throw outcome.error;
  const dimension = vectors.length / contents.length;
  const projection = await principalComponents(vectors, dimension, signal);
  return { ...projection, similarities: await similaritiesOf(vectors, dimension, signal) };
}

async function similaritiesOf(
  vectors: Float32Array,
  dimension: number,
  signal: AbortSignal,
): Promise<SampleMap['similarities']> {
  const slice = new TimeSlice(signal);
  const count = vectors.length / dimension;
  const products: number[] = [];
  for (let a = 0; a < count; a++) {
    for (let b = a + 1; b < count; b++) {
      let product = 0;
      for (let i = 0; i < dimension; i++) product += vectors[a * dimension + i]! * vectors[b * dimension + i]!;
      products.push(product);
    }
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
