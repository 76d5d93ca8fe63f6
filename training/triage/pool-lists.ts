import { passagesById } from '../../evaluation/passages-by-id.ts';
import type { Question } from '../../evaluation/read-questions.ts';
import type { QueryTemplate } from '../../src/encoder/identity/model-identity.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import type { QueryAnswer } from '../../src/search/calls/query-outcome.ts';
import type { RowScope } from '../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { KnownQuestions } from '../records/known-questions.ts';
import { readRecords } from '../records/read-records.ts';
import type { PoolSource } from './pool.ts';

const BATCH_HITS = 12_800;
const KEYS_PER_CALL = 1000;
const ROWS_PER_ID = 8;

export interface IndexPart {
  readonly retriever: Retriever;
  readonly scope: RowScope;
  readonly signal: AbortSignal | undefined;
}

export interface ListSettings extends IndexPart {
  readonly inputs: readonly EncoderInput[];
  /** Which of question, history and query are searched for. Default: the template of the index. */
  readonly template?: QueryTemplate;
  readonly depth: number;
}

type ListMode = 'dense' | 'bm25';

/** Searches for all inputs, in batches, and gives the answers in their order. @throws the error of the first query that fails. */
async function* answersOf(
  { retriever, inputs, template, depth, scope, signal }: ListSettings,
  mode: ListMode,
  documents = false,
): AsyncGenerator<QueryAnswer, void> {
  const size = Math.max(1, Math.floor(BATCH_HITS / depth));
  for (let start = 0; start < inputs.length; start += size) {
    const queries = inputs.slice(start, start + size);
    const call = { queries, k: depth, mode, documents, ...scope, template, signal };
    for (const outcome of (await retriever.retrieve(call)).outcomes) {
      if (!outcome.ok) throw outcome.error;
      yield outcome;
    }
  }
}

/** The mode in which the lists of an index are searched: dense if it has vectors. */
function listMode({ info }: Retriever): ListMode {
  return info.modes.includes('dense') ? 'dense' : 'bm25';
}

export type PresentLists = Awaited<ReturnType<typeof presentLists>>;

interface PresentOptions {
  readonly maxK: number;
  /** Of each question, the rows of each relevant passage. */
  readonly relevant: readonly (readonly (readonly number[])[])[];
  readonly onProgress?: (questions: number) => void;
}

/** What the present index finds for the questions. */
export async function presentLists(lists: ListSettings, { maxK, relevant, onProgress }: PresentOptions) {
  const { info } = lists.retriever;
  const mode = listMode(lists.retriever);
  const rows = new RowBitmap(info.rows);
  const vectors: Float32Array[] = [];
  /** Of each question, the rank from 0 of each relevant passage. */
  const ranks: number[][] = [];
  for await (const { hits, vector } of answersOf({ ...lists, depth: Math.max(lists.depth, maxK) }, mode)) {
    for (const { row } of hits.slice(0, lists.depth)) rows.add(row);
    const found = hits.map(({ row }) => row);
    ranks.push(
      relevant[ranks.length]!.map((ofPassage) => {
        const rank = found.findIndex((row) => ofPassage.includes(row));
        return rank === -1 ? Number.POSITIVE_INFINITY : rank;
      }),
    );
    if (mode === 'dense') vectors.push(vector!);
    onProgress?.(ranks.length);
  }
  return {
    source: { name: `${info.index}, ${mode}`, ofPresentEncoder: true, rows },
    /** The vectors of the questions; undefined for an index without vectors. */
    vectors: mode === 'dense' ? vectors : undefined,
    /** recall@k of each question in the whole index, for k up to the largest one that was asked for. */
    recalls: (k: number) =>
      Float64Array.from(ranks, (ofQuestion) => ofQuestion.filter((rank) => rank < k).length / ofQuestion.length),
  };
}

/** What BM25 finds in the index. @throws TrawlError NOT_SUPPORTED if it has no inverted index. */
export async function searchedWords(lists: ListSettings): Promise<PoolSource> {
  const { info } = lists.retriever;
  const rows = new RowBitmap(info.rows);
  for await (const { hits } of answersOf(lists, 'bm25')) for (const { row } of hits) rows.add(row);
  return { name: `${info.index}, bm25`, ofPresentEncoder: false, rows };
}

/** What another index finds, as passages of the present one: those with the same ids, or rows if both are one generation. */
export async function listsOfOther(other: Retriever, lists: ListSettings) {
  const mode = listMode(other);
  const isSame = other.info.generation === lists.retriever.info.generation;
  const ids = new IdRows(lists);
  for await (const { hits } of answersOf({ ...lists, retriever: other, scope: {} }, mode, !isSame)) {
    for (const { row, document } of hits) {
      if (isSame) ids.rows.add(row);
      else ids.add(documentFields(document).id);
    }
    await ids.lookUp(KEYS_PER_CALL);
  }
  await ids.lookUp();
  const ofPresentEncoder = mode === 'dense' && isSameEncoder(other, lists.retriever);
  const source = { name: `${other.info.index}, ${mode}`, ofPresentEncoder, rows: ids.rows };
  return { source, unknownIds: ids.unknown };
}

export type RecordedLists = Awaited<ReturnType<typeof recordedLists>>;

/**
 * The first `depth` hits of the recorded queries for the questions: by their rows where the index has the recorded generation, else by
 * their ids. A record belongs to a question as for `trawl replay --questions`. A record does not name its encoder: a record of another
 * generation counts for the present encoder, unless one of `others` has that generation and another encoder.
 *
 * @throws TrawlError CORPUS_NOT_FOUND, CORPUS_BAD_LINE.
 */
export async function recordedLists(
  paths: readonly string[],
  questions: readonly Question[],
  others: readonly Retriever[],
  lists: ListSettings,
) {
  const { retriever, depth, signal } = lists;
  const { generation, rows: indexRows } = retriever.info;
  const known = new KnownQuestions(questions);
  const otherEncoders = new Set(
    others.filter((other) => !isSameEncoder(other, retriever)).map(({ info }) => info.generation),
  );
  const own = new RowBitmap(indexRows);
  const [earlier, foreign] = [new IdRows(lists), new IdRows(lists)];
  let records = 0;
  let ofOtherQuestions = 0;
  for await (const { query } of readRecords(paths, { signal })) {
    records += 1;
    if (known.ofRecord(query) === undefined) {
      ofOtherQuestions += 1;
      continue;
    }
    const isSame = query.generation === generation && query.indexes === undefined;
    const isForeign = query.mode === 'bm25' || otherEncoders.has(query.generation);
    const rows = isForeign ? foreign.rows : own;
    const ids = isForeign ? foreign : earlier;
    for (let i = 0; i < Math.min(depth, query.rows.length); i++) {
      if (!isSame) ids.add(query.ids[i]);
      else if (query.rows[i]! < indexRows) rows.add(query.rows[i]!);
    }
    await ids.lookUp(KEYS_PER_CALL);
  }
  await earlier.lookUp();
  await foreign.lookUp();
  return {
    /** Lists of this generation, of other generations, and those that are known to be of another encoder or of BM25. */
    sources: [
      { name: 'records of this generation', ofPresentEncoder: true, rows: own },
      { name: 'records of other generations', ofPresentEncoder: true, rows: earlier.rows },
      { name: 'records of other encoders and BM25', ofPresentEncoder: false, rows: foreign.rows },
    ].filter(({ rows }) => rows.count() > 0),
    records,
    /** Records of other questions, which are left out. */
    ofOtherQuestions,
    /** Distinct ids that the index does not have, and hits without an id. */
    unknownIds: earlier.unknown + foreign.unknown,
  };
}

/**
 * Whether the vectors of two indexes are of one encoder, so that both find nearly the same: equal weights and tokenizer, dimension,
 * pooling, normalisation and prefixes. Precision and token limits may differ. True for two states of one index, as before and after an
 * update.
 */
function isSameEncoder({ info: one }: Retriever, { info: other }: Retriever): boolean {
  if (one.generation === other.generation) return true;
  const [a, b] = [one.model, other.model];
  if (a === null || b === null) return false;
  const sameWeights = a.sha256 === b.sha256 || (a.sourceSha256 !== undefined && a.sourceSha256 === b.sourceSha256);
  return (
    sameWeights &&
    a.dimension === b.dimension &&
    a.pooling === b.pooling &&
    a.normalize === b.normalize &&
    a.prefixes.query === b.prefixes.query &&
    a.prefixes.passage === b.prefixes.passage
  );
}

/** Gathers the rows of ids, which are looked up many at a time. */
class IdRows {
  readonly rows: RowBitmap;
  /** Distinct ids that the index does not have in the scope, and passages without an id. */
  unknown = 0;
  readonly #part: IndexPart;
  /** Ids that were looked up. The pool has a row for each, so they fit into memory as it does. */
  readonly #known = new Set<string>();
  readonly #waiting = new Set<string>();

  constructor(part: IndexPart) {
    this.#part = part;
    this.rows = new RowBitmap(part.retriever.info.rows);
  }

  add(id: string | null | undefined): void {
    if (id === undefined || id === null) this.unknown += 1;
    else if (!this.#known.has(id)) this.#waiting.add(id);
  }

  async lookUp(least = 0): Promise<void> {
    if (this.#waiting.size < least) return;
    const found = await rowsOfIds(this.#part, this.#waiting);
    for (const rows of found.values()) for (const row of rows) this.rows.add(row);
    this.unknown += this.#waiting.size - found.size;
    for (const id of this.#waiting) this.#known.add(id);
    this.#waiting.clear();
  }
}

/**
 * The rows of each id, ascending; an id that the index does not have in the scope has no entry.
 *
 * @throws TrawlError NOT_SUPPORTED if the index has no look-up by id.
 */
export async function rowsOfIds(
  { retriever, scope, signal }: IndexPart,
  ids: ReadonlySet<string>,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const rows = new Map<string, readonly number[]>();
  for await (const [id, passages] of passagesById(retriever, ids, { ...scope, limit: ROWS_PER_ID, signal })) {
    if (passages.length === 0) continue;
    rows.set(
      id,
      passages.map(({ row }) => row),
    );
  }
  return rows;
}
