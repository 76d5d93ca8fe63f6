import type { QueryTemplate } from '../../src/encoder/identity/model-identity.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import type { QueryAnswer } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveCall, RowScope } from '../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import type { PoolSource } from './pool.ts';
import { rowsOfIds } from './rows-of-ids.ts';
import { isSameEncoder } from './same-encoder.ts';

/** Hits of one batch of searches. */
const BATCH_HITS = 12_800;

export interface ListSettings {
  readonly inputs: readonly EncoderInput[];
  /** Which of question, history and query are searched for. Undefined: the template of the index. */
  readonly template: QueryTemplate | undefined;
  /** Hits of each query, ≥ 1. */
  readonly depth: number;
  readonly scope: RowScope;
  readonly signal: AbortSignal | undefined;
}

/** Searches for all inputs, in batches, and gives the answers in their order. @throws the error of the first query that fails. */
export async function* answersOf(
  retriever: Retriever,
  { inputs, template, depth, scope, signal }: ListSettings,
  how: Pick<RetrieveCall, 'documents'> & { readonly mode: SearchMode },
): AsyncGenerator<QueryAnswer, void> {
  const size = Math.max(1, Math.floor(BATCH_HITS / depth));
  for (let start = 0; start < inputs.length; start += size) {
    const { outcomes } = await retriever.retrieve({
      queries: inputs.slice(start, start + size),
      k: depth,
      ...how,
      ...scope,
      template,
      signal,
    });
    for (const outcome of outcomes) {
      if (!outcome.ok) throw outcome.error;
      yield outcome;
    }
  }
}

/** The mode in which the lists of an index are searched: dense if it has vectors. */
export function listMode(retriever: Retriever): 'dense' | 'bm25' {
  return retriever.info.modes.includes('dense') ? 'dense' : 'bm25';
}

/** What BM25 finds in the index. @throws TrawlError NOT_SUPPORTED if it has no inverted index. */
export async function searchedWords(retriever: Retriever, settings: ListSettings): Promise<PoolSource> {
  const rows = new RowBitmap(retriever.info.rows);
  for await (const { hits } of answersOf(retriever, settings, { mode: 'bm25', documents: false })) {
    for (const { row } of hits) rows.add(row);
  }
  return { name: `${retriever.info.index}, bm25`, ofPresentEncoder: false, rows };
}

/** What another index finds for the inputs, as passages of `retriever`: those with the same ids, or rows if both are one generation. */
export async function listsOfOther(
  other: Retriever,
  retriever: Retriever,
  settings: ListSettings,
): Promise<{ readonly source: PoolSource; readonly unknownIds: number }> {
  const mode = listMode(other);
  const { scope, signal } = settings;
  const isSame = other.info.generation === retriever.info.generation;
  const rows = new RowBitmap(retriever.info.rows);
  const ids = new IdRows(retriever, rows, { scope, signal });
  for await (const { hits } of answersOf(other, { ...settings, scope: {} }, { mode, documents: !isSame })) {
    for (const { row, document } of hits) {
      if (isSame) rows.add(row);
      else ids.add(documentFields(document).id);
    }
    await ids.lookUpSome();
  }
  await ids.lookUp();
  const name = `${other.info.index}, ${mode}`;
  const ofPresentEncoder = mode === 'dense' && isSameEncoder(other, retriever);
  return { source: { name, ofPresentEncoder, rows }, unknownIds: ids.unknown };
}

/** Adds the rows of ids to a bitmap, many ids at a time. */
export class IdRows {
  readonly #retriever: Retriever;
  readonly #rows: RowBitmap;
  readonly #how: { readonly scope: RowScope; readonly signal: AbortSignal | undefined };
  /** Ids that were looked up. The pool has a row for each, so they fit into memory as it does. */
  readonly #known = new Set<string>();
  readonly #waiting = new Set<string>();
  #unknown = 0;

  constructor(
    retriever: Retriever,
    rows: RowBitmap,
    how: { readonly scope: RowScope; readonly signal: AbortSignal | undefined },
  ) {
    this.#retriever = retriever;
    this.#rows = rows;
    this.#how = how;
  }

  /** Distinct ids that the index does not have in the scope, and passages without an id. */
  get unknown(): number {
    return this.#unknown;
  }

  add(id: string | null | undefined): void {
    if (id === undefined || id === null) this.#unknown += 1;
    else if (!this.#known.has(id)) this.#waiting.add(id);
  }

  /** Looks the ids up if they are many. */
  async lookUpSome(): Promise<void> {
    if (this.#waiting.size >= 1000) await this.lookUp();
  }

  async lookUp(): Promise<void> {
    const found = await rowsOfIds(this.#retriever, this.#waiting, this.#how);
    for (const rows of found.values()) for (const row of rows) this.#rows.add(row);
    this.#unknown += this.#waiting.size - found.size;
    for (const id of this.#waiting) this.#known.add(id);
    this.#waiting.clear();
  }
}
