import type { Filter } from '../../src/engine/filter/filter.ts';
import { withoutQuotes } from '../../src/index/passages/document-fields.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import { COLUMNS } from '../engine/filter/arbitrary-filters.ts';
import { passes } from '../engine/filter/naive-filter.ts';
import { standardDeviation } from '../helpers/standard-deviation.ts';
import { type CorpusRow, type GivenBm25, inOrder, type NaiveIndex, type Scored } from './naive-index.ts';

/** The fields of a request to /v1/search that change its hits. */
export interface SearchBody {
  readonly queries: readonly (string | { readonly question: string; readonly query: string })[];
  readonly index: string | readonly string[];
  readonly mode: SearchMode;
  readonly k: number;
  readonly filter?: Filter;
  readonly exclude?: readonly (string | number)[];
  readonly fuse?: 'none' | 'rrf' | 'max';
  readonly deduplicate?: 'none' | 'passage' | 'title' | 'document';
  readonly candidates?: number;
  readonly minScore?: number;
  readonly rerank?: { readonly depth: number };
  readonly bm25?: GivenBm25;
  readonly hybrid?: {
    readonly fusion?: 'rrf' | 'weighted';
    readonly denseWeight?: number;
    readonly bm25Weight?: number;
    readonly rrfK?: number;
    readonly depth?: number;
  };
}

interface Place {
  readonly rank: number;
  readonly score: number;
}

/** What a reply says of a hit, apart from its text. */
export interface NaiveHit {
  readonly index?: string;
  readonly row: number;
  readonly score: number;
  readonly indexScore?: number;
  readonly firstStage?: Place;
  readonly dense?: Place | null;
  readonly bm25?: Place | null;
  readonly fused?: number;
  readonly from?: readonly { readonly query: number; readonly rank: number; readonly score: number }[];
}

export interface NaiveReply {
  /** One list a query; absent with `fuse`. */
  readonly results?: readonly (readonly NaiveHit[])[];
  readonly hits?: readonly NaiveHit[];
}

/** The models of the server. */
export interface NaiveModels {
  embed(text: string): Promise<Float32Array>;
  /** The cross-encoder's score of one pair. */
  pair(query: string, passage: string): Promise<number>;
}

/** A hit with its passage, and with its row among those of all indexes that are searched. */
interface Found extends NaiveHit {
  readonly place: number;
  readonly passage: CorpusRow;
}

type Ranked = Scored & Pick<NaiveHit, 'dense' | 'bm25'>;

/**
 * Answers a request as docs/http-api.md, modes.md, filters.md, views.md and rerank.md define it, by scoring every passage. It shares with the server
 * the score of a BM25 term and the analyser, and no code that ranks, fuses, filters or selects.
 */
export async function searchNaively(
  body: SearchBody,
  indexes: readonly NaiveIndex[],
  models: NaiveModels,
  isInView: (passage: CorpusRow) => boolean,
): Promise<NaiveReply> {
  const { k, fuse = 'none', exclude = [], candidates, rerank } = body;
  const deduplicate = body.deduplicate ?? (fuse === 'none' ? 'none' : 'passage');
  const wanted = fuse === 'none' && deduplicate === 'none' ? k : Math.max(k, candidates ?? Math.max(10, 2 * k));
  const excluded = new Set(exclude.map(String));
  const considered = Math.max(wanted, rerank?.depth ?? 0);
  const isFound = (passage: CorpusRow): boolean => isInView(passage) && !excluded.has(String(passage.id));
  const hybridDepth = body.hybrid?.depth ?? Math.max(1_000, considered);
  const lists = await Promise.all(
    body.queries.map((query) => rankedLists(query, body, indexes, { models, hybridDepth, isInView: isFound })),
  );

  // A query that has too few hits left is searched four times as deep.
  const depths = body.queries.map(() => considered);
  for (let depth = considered; ; ) {
    const found = await Promise.all(lists.map((ofIndexes, q) => mergedList(ofIndexes, body, depths[q]!)));
    const selected =
      fuse === 'none'
        ? distinctLists(found, { ...body, deduplicate, length: k })
        : found.map((list) => distinctLists([list.slice(0, wanted)], { ...body, deduplicate, length: wanted })[0]!);
    const enough = found.map((list, q) => {
      const aboveMinimum = list.filter(({ score }) => score >= (body.minScore ?? Number.NEGATIVE_INFINITY));
      if (aboveMinimum.length < list.length) return true;
      const left = fuse === 'none' ? selected[q]!.length : Math.min(wanted, list.length);
      return left === (fuse === 'none' ? k : wanted) || list.length < depths[q]!;
    });
    if (enough.every(Boolean)) {
      return fuse === 'none'
        ? { results: selected.map((list) => list.map(asHit)) }
        : { hits: fusedList(selected, fuse, deduplicate, k).map(asHit) };
    }
    depth *= 4;
    for (const [q, isEnough] of enough.entries()) if (!isEnough) depths[q] = depth;
  }
}

/** The first hits of an index for a query, to any depth. */
type ListOfIndex = (depth: number) => Promise<readonly Found[]>;

async function rankedLists(
  query: SearchBody['queries'][number],
  { mode, bm25 = {}, hybrid = {}, rerank, filter }: SearchBody,
  indexes: readonly NaiveIndex[],
  {
    models,
    hybridDepth,
    isInView,
  }: {
    readonly models: NaiveModels;
    readonly hybridDepth: number;
    readonly isInView: (passage: CorpusRow) => boolean;
  },
): Promise<readonly ListOfIndex[]> {
  const parts = typeof query === 'string' ? [query] : [query.question, query.query];
  const text = parts.join(' ');
  const vector = mode === 'bm25' ? undefined : await models.embed(parts.join(' [SEP] '));
  let firstPlace = 0;
  return indexes.map((index) => {
    const mayBeFound = (row: number): boolean => {
      const passage = index.corpus[row]!;
      return isInView(passage) && (filter === undefined || passes(filter, passage, COLUMNS));
    };
    const near = vector === undefined ? [] : index.dense(vector).filter(({ row }) => mayBeFound(row));
    const words = mode === 'dense' ? [] : index.bm25(text, bm25).filter(({ row }) => mayBeFound(row));
    const ranked: Ranked[] =
      mode === 'dense' ? near : mode === 'bm25' ? words : fusedModes(near, words, { ...hybrid, depth: hybridDepth });
    const before = firstPlace;
    firstPlace += index.corpus.length;
    const found = ranked.map((each) => ({
      ...each,
      index: index.name,
      place: before + each.row,
      passage: index.corpus[each.row]!,
    }));
    return async (depth) => {
      if (rerank === undefined) return found.slice(0, depth);
      const scored = await Promise.all(
        found.slice(0, Math.max(depth, rerank.depth)).map(async (hit, i) => ({
          ...hit,
          score: await models.pair(text, hit.passage.contents),
          firstStage: { rank: i + 1, score: hit.score },
        })),
      );
      return scored.sort((a, b) => b.score - a.score || a.firstStage.rank - b.firstStage.rank).slice(0, depth);
    };
  });
}

/** docs/modes.md, "Definition". */
function fusedModes(
  near: readonly Scored[],
  words: readonly Scored[],
  settings: NonNullable<SearchBody['hybrid']>,
): Ranked[] {
  const { fusion = 'weighted', rrfK = 10, depth = 1_000 } = settings;
  const [dense, bm25] = [near.slice(0, depth), words.slice(0, depth)];
  const usual = fusion === 'rrf' ? [1, 1] : [0.5, 0.5];
  const part = (list: readonly Scored[], at: number, weight: number, others: readonly number[]): number => {
    if (at < 0) return 0;
    if (fusion === 'rrf') return weight / (rrfK + at + 1);
    const scores = [...list.map(({ score }) => score), ...others];
    const floor = scores.at(-1)!;
    return weight * (scores[0] === floor ? 1 : (list[at]!.score - floor) / standardDeviation(scores));
  };
  const rows = new Set([...dense, ...bm25].map(({ row }) => row));
  const fused = [...rows].map((row) => {
    const [inDense, inWords] = [dense, bm25].map((list) => list.findIndex((hit) => hit.row === row)) as [
      number,
      number,
    ];
    const place = (list: readonly Scored[], at: number): Place | null =>
      at < 0 ? null : { rank: at + 1, score: list[at]!.score };
    const score = Math.fround(
      part(dense, inDense, settings.denseWeight ?? usual[0]!, []) +
        part(bm25, inWords, settings.bm25Weight ?? usual[1]!, bm25.length < depth ? [0] : []),
    );
    return { row, score, dense: place(dense, inDense), bm25: place(bm25, inWords) };
  });
  return inOrder(fused);
}

/** docs/http-api.md, "Several indexes". */
async function mergedList(
  lists: readonly ListOfIndex[],
  { mode, rerank }: SearchBody,
  depth: number,
): Promise<readonly Found[]> {
  const all = await Promise.all(lists.map((list) => list(depth)));
  if (all.length === 1) return all[0]!.map(({ index: _, ...hit }) => hit);
  const byScore = mode === 'dense' || rerank !== undefined;
  return all
    .flatMap((list) =>
      list.map((hit, i) => ({ ...hit, indexScore: hit.score, score: byScore ? hit.score : Math.fround(1 / (61 + i)) })),
    )
    .sort((a, b) => b.score - a.score || a.place - b.place)
    .slice(0, depth);
}

/** The lists without duplicates in a list or an earlier one; up to `length` hits of each. */
function distinctLists(
  lists: readonly (readonly Found[])[],
  {
    deduplicate,
    length,
    minScore = Number.NEGATIVE_INFINITY,
  }: {
    readonly deduplicate: string;
    readonly length: number;
    readonly minScore?: number;
  },
): Found[][] {
  const seen = new Set<string>();
  return lists.map((list) => {
    const kept: Found[] = [];
    for (const hit of list) {
      if (kept.length === length || hit.score < minScore) break;
      const key = keyOf(hit, deduplicate);
      if (deduplicate !== 'none' && seen.has(key)) continue;
      seen.add(key);
      kept.push(hit);
    }
    return kept;
  });
}

/** Hits with equal keys are duplicates of each other. */
function keyOf({ place, passage }: Found, deduplicate: string): string {
  const { contents, doc_id: document, url } = passage;
  const title = contents.includes('\n') ? withoutQuotes(contents.slice(0, contents.indexOf('\n'))) : undefined;
  if (deduplicate === 'title') return title === undefined ? `row ${place}` : `title ${title}`;
  if (deduplicate !== 'document') return `row ${place}`;
  if (document !== undefined) return `document ${String(document)}`;
  if (url !== undefined) return `url ${String(url)}`;
  return title === undefined || title === '' ? `row ${place}` : `title ${title}`;
}

/** The lists of several queries as one. */
function fusedList(lists: readonly (readonly Found[])[], fuse: 'rrf' | 'max', deduplicate: string, k: number): Found[] {
  const groups = new Map<string, { hit: Found; query: number; rank: number }[]>();
  for (const [query, list] of lists.entries()) {
    for (const [i, hit] of list.entries()) {
      const key = keyOf(hit, deduplicate);
      groups.set(key, [...(groups.get(key) ?? []), { hit, query, rank: i + 1 }]);
    }
  }
  const better = (a: Found, b: Found): number => b.score - a.score || a.place - b.place;
  return [...groups.values()]
    .map((group) => {
      const best = group.map(({ hit }) => hit).reduce((a, b) => (better(b, a) < 0 ? b : a));
      const fused = fuse === 'max' ? best.score : group.reduce((sum, { rank }) => sum + 1 / (60 + rank), 0);
      const from = group
        .map(({ hit, query, rank }) => ({ query, rank, score: hit.score }))
        .sort((a, b) => b.score - a.score || a.query - b.query);
      return { ...best, fused, from };
    })
    .sort((a, b) => b.fused - a.fused || better(a, b))
    .slice(0, k);
}

function asHit({ place: _place, passage: _passage, ...hit }: Found): NaiveHit {
  return hit;
}
