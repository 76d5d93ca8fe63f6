import { TimeSlice } from '../../src/base/time-slice.ts';
import type { LexicalQuery } from '../../src/engine/lexical/lexical-query.ts';
import type { RowBitmap } from '../../src/engine/row-bitmap.ts';
import type { Hit } from '../../src/search/calls/query-outcome.ts';
import type { RowScope } from '../../src/search/calls/retrieve-call.ts';
import type { FoundPassage, Retriever } from '../../src/search/retriever.ts';
import { draw, drawRanks } from './draw.ts';
import type { IsGold, Texts } from './request-perturbation.ts';

interface MixedList<H extends Hit> {
  readonly hits: readonly H[];
  readonly texts: Texts;
  /** Gold passages are never distractors. Undefined if none is known. */
  readonly isGold: IsGold | undefined;
}

interface MixOptions {
  readonly seed: number;
  readonly count: number;
  /** The distractors take ranks from 1 to this one. */
  readonly lastRank: number;
  /** Most hits of a mixed list. */
  readonly length: number;
  readonly scope: RowScope & { readonly signal?: AbortSignal };
  /** What distractors must match, in addition to the scope. Default: all passages of the scope. */
  readonly conditions?: LexicalQuery;
}

/** Rows drawn in addition, in case some are deleted, outside of the scope, or gold. */
const SPARE = 4;

/**
 * Mixes passages of the scope into lists: drawn from all its passages, at drawn ranks. The hits from there on move down. A distractor has
 * the score of the hit above it (at rank 1 of the hit below), so that scores still fall; `distractor` marks it.
 *
 * @returns one list per list, with the number of distractors in it: fewer than `count` only if there are no other passages, or ranks.
 */
export async function mixDistractors<H extends Hit>(
  retriever: Retriever,
  lists: readonly MixedList<H>[],
  options: MixOptions,
): Promise<readonly { readonly hits: readonly H[]; readonly distractors: number }[]> {
  if (lists.length === 0) return [];
  const { seed, count, lastRank, length } = options;
  const drawn = await drawPassages(retriever, lists, options);
  return lists.map(({ hits, texts }, i) => {
    const usable = drawn[i]!;
    const ranks = drawRanks(Math.min(count, usable.length), Math.min(lastRank, length), seed, 'rank', ...texts);
    const mixed = [...hits];
    for (const [at, rank] of ranks.entries()) {
      const place = Math.min(rank - 1, mixed.length);
      mixed.splice(place, 0, asHit(usable[at]!, mixed[place - 1] ?? mixed[place]));
    }
    return { hits: mixed.slice(0, length), distractors: ranks.length };
  });
}

/** For each list up to `count` passages that are not among its hits and not gold. */
async function drawPassages<H extends Hit>(
  retriever: Retriever,
  lists: readonly MixedList<H>[],
  { seed, count, scope, conditions }: MixOptions,
): Promise<readonly (readonly FoundPassage[])[]> {
  const found: (readonly FoundPassage[])[] = lists.map(() => []);
  const { rows } = retriever.info;
  const slice = new TimeSlice(scope.signal);
  const every: RowSet = { rows, next: (row) => (row < rows ? row : undefined) };
  let open = lists.map((_, i) => i);
  // Most draws find a live row of the scope, so its bitmap, of millions of bytes, is made only for the lists where they do not.
  for (const direct of conditions === undefined ? [true, false] : [false]) {
    if (open.length === 0) break;
    const among = direct ? every : await retriever.select({ ...scope, query: conditions });
    const drawn = open.map((i) => drawRows(among, lists[i]!, seed, (direct ? 2 : 1) * count + SPARE));
    const keys = [...new Set(drawn.flat())];
    const { found: passages } = await retriever.find({ by: 'row', keys: keys.map(String), limit: 1, ...scope });
    const byRow = new Map(keys.map((row, i) => [row, passages[i]![0]]));
    for (const [at, i] of open.entries()) {
      const { isGold } = lists[i]!;
      const usable: FoundPassage[] = [];
      for (const row of drawn[at]!) {
        if (usable.length === count) break;
        // Looking for answers in a passage takes long.
        if (slice.isOver) await slice.yield();
        const passage = byRow.get(row);
        if (passage !== undefined && isGold?.(passage.document) !== true) usable.push(passage);
      }
      found[i] = usable;
    }
    open = open.filter((i) => found[i]!.length < count);
  }
  return found;
}

type RowSet = Pick<RowBitmap, 'rows' | 'next'>;

/** Different rows of the set that are not among the hits of the list. */
function drawRows<H extends Hit>(rows: RowSet, { hits, texts }: MixedList<H>, seed: number, count: number): number[] {
  const taken = new Set(hits.map(({ row }) => row));
  const drawn: number[] = [];
  // A row that was drawn before leads to the one after it, so that few draws are lost in a small scope.
  for (let i = 0; i < 2 * count && drawn.length < count; i++) {
    const start = Math.floor(draw(seed, 'distractor', ...texts, i) * rows.rows);
    const row = firstFree(rows, start, taken);
    if (row === undefined) break;
    taken.add(row);
    drawn.push(row);
  }
  return drawn;
}

/** The first row of the set from `start` on, and then from 0, that is not taken. */
function firstFree(rows: RowSet, start: number, taken: ReadonlySet<number>): number | undefined {
  for (const [from, end] of [
    [start, rows.rows],
    [0, start],
  ] as const) {
    for (let row = rows.next(from); row !== undefined && row < end; row = rows.next(row + 1)) {
      if (!taken.has(row)) return row;
    }
  }
  return undefined;
}

/** A passage as a hit with the score and the order values of its neighbour. */
function asHit<H extends Hit>({ row, document, source }: FoundPassage, neighbour: H | undefined): H {
  const score = neighbour?.score ?? 0;
  const orderValues = (neighbour as { orderValues?: unknown } | undefined)?.orderValues;
  return {
    row,
    score,
    unrounded: neighbour?.unrounded,
    document,
    distractor: true,
    source: source === undefined ? undefined : { ...source, score: neighbour?.source?.score ?? score },
    // Neither list of a hybrid search has it.
    places: neighbour?.places === undefined ? undefined : { dense: null, bm25: null },
    orderValues,
  } as unknown as H;
}
