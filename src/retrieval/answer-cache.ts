import { LRUCache } from 'lru-cache';
import type { QueryOutcome } from './retriever.ts';

export type Answered = Extract<QueryOutcome, { ok: true }>;

interface Entry {
  readonly scope: number;
  readonly bytes: number;
  /** Hits that were asked for; infinite where the index has no more than there are. */
  readonly k: number;
  readonly outcome: Answered;
}

/** What an entry and a hit cost beside their texts, in bytes. */
const ENTRY_BYTES = 512;
const HIT_BYTES = 64;

/**
 * Answers to finished queries, the least recently used going first when their bytes are too many. One cache may serve
 * several retrievers: each has a number of its own, so that no answer passes from one index, encoder or generation to
 * another.
 */
export class AnswerCache {
  readonly maxBytes: number;
  readonly #entries: LRUCache<string, Entry>;
  readonly #held = new Map<number, { entries: number; bytes: number }>();
  #scopes = 0;

  /** `maxBytes` ≥ 1, reckoned at two bytes a character. */
  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      dispose: ({ scope, bytes }) => this.#count(scope, -1, -bytes),
    });
  }

  get entries(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#entries.calculatedSize;
  }

  /** What one retriever's answers come to. */
  heldBy(scope: number): { readonly entries: number; readonly bytes: number } {
    return this.#held.get(scope) ?? { entries: 0, bytes: 0 };
  }

  /** A number for one retriever's answers. */
  newScope(): number {
    return this.#scopes++;
  }

  /** The first k hits of an answer that has as many, or all that there are. */
  get(scope: number, key: string, k: number): Answered | undefined {
    const entry = this.#entries.get(nameOf(scope, key));
    return entry === undefined || entry.k < k ? undefined : firstHits(entry.outcome, k);
  }

  /** Whether `get` has an answer. It does not count as a use. */
  has(scope: number, key: string, k: number): boolean {
    const entry = this.#entries.peek(nameOf(scope, key));
    return entry !== undefined && entry.k >= k;
  }

  set(scope: number, key: string, k: number, outcome: Answered): void {
    const reach = outcome.hits.length < k ? Number.POSITIVE_INFINITY : k;
    const name = nameOf(scope, key);
    // A search for more hits may have ended before one for fewer.
    if ((this.#entries.peek(name)?.k ?? 0) >= reach) return;
    const bytes = bytesOf(outcome, name);
    // One larger than all there may be is not taken.
    if (bytes > this.maxBytes) return;
    this.#count(scope, 1, bytes);
    this.#entries.set(name, { scope, bytes, k: reach, outcome }, { size: bytes });
  }

  /** Forgets the answers of a retriever that is closed. */
  forget(scope: number): void {
    const prefix = nameOf(scope, '');
    for (const name of [...this.#entries.keys()]) if (name.startsWith(prefix)) this.#entries.delete(name);
    this.#held.delete(scope);
  }

  #count(scope: number, entries: number, bytes: number): void {
    const held = this.#held.get(scope) ?? { entries: 0, bytes: 0 };
    this.#held.set(scope, { entries: held.entries + entries, bytes: held.bytes + bytes });
  }
}

/** An exact answer for fewer hits: the beginning of one for more. */
export function firstHits(outcome: Answered, k: number): Answered {
  return outcome.hits.length <= k ? outcome : { ...outcome, hits: outcome.hits.slice(0, k) };
}

function nameOf(scope: number, key: string): string {
  return `${scope} ${key}`;
}

function bytesOf(outcome: Answered, name: string): number {
  const documents = outcome.hits.reduce((sum, { document }) => sum + 2 * document.length + HIT_BYTES, 0);
  return ENTRY_BYTES + 2 * (name.length + outcome.text.length) + documents;
}
