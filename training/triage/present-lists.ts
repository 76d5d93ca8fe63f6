import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import type { PoolSource } from './pool.ts';
import { answersOf, type ListSettings, listMode } from './searched-lists.ts';

/** What the present index finds for the questions. */
export interface PresentLists {
  readonly source: PoolSource;
  /** The vectors of the questions; undefined for an index without vectors. */
  readonly vectors: readonly Float32Array[] | undefined;
  /** recall@k of each question in the whole index, for k up to the largest one that was asked for. */
  recalls(k: number): Float64Array;
}

/**
 * @param relevant of each question, the rows of each relevant passage
 */
export async function presentLists(
  retriever: Retriever,
  lists: ListSettings,
  {
    maxK,
    relevant,
    onProgress,
  }: {
    readonly maxK: number;
    readonly relevant: readonly (readonly (readonly number[])[])[];
    readonly onProgress: (questions: number) => void;
  },
): Promise<PresentLists> {
  const mode = listMode(retriever);
  const rows = new RowBitmap(retriever.info.rows);
  const vectors: Float32Array[] = [];
  /** Of each question, the rank from 0 of each relevant passage. */
  const ranks: number[][] = [];
  const settings = { ...lists, depth: Math.max(lists.depth, maxK) };
  for await (const { hits, vector } of answersOf(retriever, settings, { mode, documents: false })) {
    for (const { row } of hits.slice(0, lists.depth)) rows.add(row);
    const found = hits.map(({ row }) => row);
    ranks.push(
      relevant[ranks.length]!.map((ofPassage) => {
        const rank = found.findIndex((row) => ofPassage.includes(row));
        return rank === -1 ? Number.POSITIVE_INFINITY : rank;
      }),
    );
    if (mode === 'dense') vectors.push(vector!);
    onProgress(ranks.length);
  }
  return {
    source: { name: `${retriever.info.index}, ${mode}`, ofPresentEncoder: true, rows },
    vectors: mode === 'dense' ? vectors : undefined,
    recalls: (k) =>
      Float64Array.from(ranks, (ofQuestion) => ofQuestion.filter((rank) => rank < k).length / ofQuestion.length),
  };
}
