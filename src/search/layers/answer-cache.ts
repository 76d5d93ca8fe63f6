import { LRUCache } from 'lru-cache';
import type { Hit, QueryAnswer } from '../calls/query-outcome.ts';
import type { TreeResult } from '../calls/tree-call.ts';
import { NO_TIMINGS } from '../timings.ts';

interface Entry {
  readonly scope: number;
  readonly bytes: number;
  /** An entry has one of the two. */
  readonly query?: {
    /** The k of the search; infinite if the answer has every row that may be found. */
    readonly k: number;
    readonly outcome: QueryAnswer;
  };
  readonly tree?: TreeResult;
}

/** Estimated bytes of an entry and of a hit, without their texts. */
const ENTRY_BYTES = 512;
const HIT_BYTES = 64;

/**
 * Finished answers; the least recently used are evicted first. Several retrievers may share a cache. Each has its own scope, so
 * that an answer is never returned for another index, encoder or generation. Vectors are not stored.
 */
export class AnswerCache {
  readonly maxBytes: number;
  readonly #entries: LRUCache<string, Entry>;
  readonly #held = new Map<number, { entries: number; bytes: number }>();
  #scopes = 0;

  /** `maxBytes` ≥ 1; texts count two bytes per character. */
  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
    this.#entries = new LRUCache({ maxSize: maxBytes, dispose: ({ scope, bytes }) => this.#count(scope, -1, -bytes) });
  }

  get entries(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#entries.calculatedSize;
  }

  heldBy(scope: number): { readonly entries: number; readonly bytes: number } {
    return this.#held.get(scope) ?? { entries: 0, bytes: 0 };
  }

  newScope(): number {
    return this.#scopes++;
  }

  /** The first k hits of a cached answer, if it was searched with at least k or has every row that may be found. */
  get(scope: number, key: string, k: number): QueryAnswer | undefined {
    const answer = this.#entries.get(entryName(scope, key))?.query;
    return answer === undefined || answer.k < k ? undefined : firstHits(answer.outcome, k);
  }

  /** Whether `get` would return an answer. Does not count as a use for eviction. */
  has(scope: number, key: string, k: number): boolean {
    const answer = this.#entries.peek(entryName(scope, key))?.query;
    return answer !== undefined && answer.k >= k;
  }

  set(scope: number, key: string, k: number, outcome: QueryAnswer): void {
    const reach = outcome.hits.length < k ? Number.POSITIVE_INFINITY : k;
    const name = entryName(scope, key);
    // A concurrent search for more hits may have finished first.
    if ((this.#entries.peek(name)?.query?.k ?? 0) >= reach) return;
    const query = { k: reach, outcome: { ...outcome, vector: null } };
    this.#set(name, { scope, bytes: entryBytes(outcome.hits, outcome.text, name), query });
  }

  /** The result of an equal search by a query tree, which took no time. */
  getTree(scope: number, key: string): TreeResult | undefined {
    return this.#entries.get(treeName(scope, key))?.tree;
  }

  setTree(scope: number, key: string, result: TreeResult): void {
    const name = treeName(scope, key);
    const bytes = entryBytes(result.hits, '', name);
    this.#set(name, { scope, bytes, tree: { ...result, timings: NO_TIMINGS } });
  }

  #set(name: string, entry: Entry): void {
    const { scope, bytes } = entry;
    if (bytes > this.maxBytes) return;
    this.#count(scope, 1, bytes);
    this.#entries.set(name, entry, { size: bytes });
  }

  /** Drops the answers of a closed retriever. */
  forget(scope: number): void {
    const prefix = entryName(scope, '');
    for (const name of [...this.#entries.keys()]) if (name.startsWith(prefix)) this.#entries.delete(name);
    this.#held.delete(scope);
  }

  #count(scope: number, entries: number, bytes: number): void {
    const held = this.#held.get(scope) ?? { entries: 0, bytes: 0 };
    this.#held.set(scope, { entries: held.entries + entries, bytes: held.bytes + bytes });
  }
}

/** The exact answer for k hits is a prefix of the answer for more. */
export function firstHits(outcome: QueryAnswer, k: number): QueryAnswer {
  return outcome.hits.length <= k ? outcome : { ...outcome, hits: outcome.hits.slice(0, k) };
}

function entryName(scope: number, key: string): string {
  return `${scope} ${key}`;
}

/** No key of a query begins with this word: they begin with a mode. */
function treeName(scope: number, key: string): string {
  return entryName(scope, `tree ${key}`);
}

function entryBytes(hits: readonly Hit[], text: string, name: string): number {
  const documents = hits.reduce((sum, { document }) => sum + 2 * document.length + HIT_BYTES, 0);
  return ENTRY_BYTES + 2 * (name.length + text.length) + documents;
}
