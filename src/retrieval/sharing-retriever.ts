import { cancelled, throwIfCancelled } from '../abort.ts';
import { type EncoderInput, questionAndQuery, type TruncateSide } from '../embedding/text-encoder.ts';
import type { TrawlError } from '../errors.ts';
import { type AnswerCache, firstHits } from './answer-cache.ts';
import type {
  EmbedCall,
  EmbedResult,
  FindCall,
  FindResult,
  QueryOutcome,
  RetrieveCall,
  RetrieveResult,
  Retriever,
  RetrieverInfo,
  RetrieverStatistics,
} from './retriever.ts';
import { addTimings, NO_TIMINGS } from './timings.ts';

/** Queries that were asked for together and are being computed. */
interface Flight {
  readonly k: number;
  readonly queries: number;
  /** One outcome a query; null when the call failed or was given up. Never rejects. */
  readonly landed: Promise<readonly QueryOutcome[] | null>;
}

/** A query of a flight. */
interface Seat {
  readonly flight: Flight;
  readonly place: number;
}

/** A call waits for another's query only where that is not much larger than itself, or it would wait for all of that. */
const JOINED_QUERIES = 16;
const JOINED_FACTOR = 4;

export interface SharingOptions {
  readonly answerCache?: AnswerCache | undefined;
  readonly singleFlight: boolean;
}

/**
 * Equal queries are computed once: those under way together (single flight; the rollouts of one question ask the same), and
 * those that come again while their answer is in the cache. Equal are queries of the same text, the same division into
 * question and query, and the same truncation; an answer with more hits serves for fewer.
 *
 * Whoever asked first may go away: those who waited for it then ask themselves. Errors are not kept.
 */
export class SharingRetriever implements Retriever {
  readonly info: RetrieverInfo;
  readonly #inner: Retriever;
  readonly #cache: AnswerCache | undefined;
  readonly #scope: number;
  readonly #singleFlight: boolean;
  readonly #seats = new Map<string, Seat>();
  #queries = 0;
  #cached = 0;
  #computed = 0;
  #joined = 0;

  constructor(inner: Retriever, { answerCache, singleFlight }: SharingOptions) {
    this.info = inner.info;
    this.#inner = inner;
    this.#cache = answerCache;
    this.#scope = answerCache?.newScope() ?? 0;
    this.#singleFlight = singleFlight;
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    throwIfCancelled(call.signal);
    this.#queries += call.queries.length;
    if (!this.#singleFlight && this.#cache === undefined) {
      this.#computed += call.queries.length;
      return this.#inner.retrieve(call);
    }
    const keys = call.queries.map((query) => keyOf(query, call.truncate));
    const outcomes = new Array<QueryOutcome | undefined>(keys.length);
    let open = this.#singleFlight ? distinct(keys) : keys.map((key, at) => ({ key, places: [at] }));
    // Of equal queries in one call one is computed.
    this.#joined += keys.length - open.length;
    const answer = (places: readonly number[], outcome: QueryOutcome): void => {
      const cut = outcome.ok ? firstHits(outcome, call.k) : outcome;
      for (const place of places) outcomes[place] = cut;
    };
    let timings = NO_TIMINGS;
    while (open.length > 0) {
      const own: OpenQuery[] = [];
      const joined: (OpenQuery & { readonly seat: Seat })[] = [];
      for (const query of open) {
        const cached = this.#cache?.get(this.#scope, query.key, call.k);
        if (cached !== undefined) {
          this.#cached++;
          answer(query.places, cached);
          continue;
        }
        const seat = this.#seatFor(query.key, call);
        if (seat === undefined) own.push(query);
        else joined.push({ ...query, seat });
      }
      // Begun before anything is waited for.
      const computing = own.length === 0 ? undefined : this.#compute(own, call);
      const landed = joined.map(({ seat }) => seat.flight.landed);
      if (computing !== undefined) {
        const result = await computing;
        timings = addTimings(timings, result.timings);
        for (const [i, { places }] of own.entries()) answer(places, result.outcomes[i]!);
      }
      const waitingSince = performance.now();
      const others = await unlessAborted(Promise.all(landed), call.signal);
      if (joined.length > 0) timings = addTimings(timings, { ...NO_TIMINGS, queue: performance.now() - waitingSince });
      open = [];
      for (const [i, query] of joined.entries()) {
        const outcome = others[i]?.[query.seat.place];
        // The call it waited for has failed or was given up: that is no answer to this one.
        if (outcome === undefined) open.push(query);
        else {
          this.#joined++;
          answer(query.places, outcome);
        }
      }
    }
    return { outcomes: outcomes as QueryOutcome[], timings };
  }

  hasAnswers({ queries, truncate, k }: RetrieveCall): boolean {
    return queries.every((query) => this.#cache?.has(this.#scope, keyOf(query, truncate), k) === true);
  }

  embed(call: EmbedCall): Promise<EmbedResult> {
    return this.#inner.embed(call);
  }

  find(call: FindCall): Promise<FindResult> {
    return this.#inner.find(call);
  }

  get failure(): TrawlError | undefined {
    return this.#inner.failure;
  }

  statistics(): RetrieverStatistics {
    const held = this.#cache?.heldBy(this.#scope);
    return {
      ...this.#inner.statistics(),
      sharing: {
        queries: this.#queries,
        cached: this.#cached,
        joined: this.#joined,
        computed: this.#computed,
        cacheEntries: held?.entries ?? 0,
        cacheBytes: held?.bytes ?? 0,
        cacheMaxBytes: this.#cache?.maxBytes ?? 0,
      },
    };
  }

  async close(): Promise<void> {
    await this.#inner.close();
    this.#cache?.forget(this.#scope);
  }

  /** A query under way that gives this one's answer, and soon enough. */
  #seatFor(key: string, { k, queries }: RetrieveCall): Seat | undefined {
    const seat = this.#seats.get(key);
    if (seat === undefined || seat.flight.k < k) return undefined;
    const most = Math.max(JOINED_QUERIES, JOINED_FACTOR * queries.length);
    return seat.flight.queries <= most ? seat : undefined;
  }

  async #compute(own: readonly OpenQuery[], call: RetrieveCall): Promise<RetrieveResult> {
    this.#computed += own.length;
    const running = this.#inner.retrieve({ ...call, queries: own.map(({ places }) => call.queries[places[0]!]!) });
    const landed = running.then(
      ({ outcomes }) => outcomes,
      () => null,
    );
    const flight: Flight = { k: call.k, queries: own.length, landed };
    const seats = own.map((_, place): Seat => ({ flight, place }));
    if (this.#singleFlight) for (const [i, { key }] of own.entries()) this.#seats.set(key, seats[i]!);
    try {
      const result = await running;
      for (const [i, outcome] of result.outcomes.entries()) {
        if (outcome.ok) this.#cache?.set(this.#scope, own[i]!.key, call.k, outcome);
      }
      return result;
    } finally {
      // A later flight for more hits may have taken the place.
      for (const [i, { key }] of own.entries()) if (this.#seats.get(key) === seats[i]) this.#seats.delete(key);
    }
  }
}

/** A query without an answer yet, and where in the call it stands. */
interface OpenQuery {
  readonly key: string;
  readonly places: readonly number[];
}

function distinct(keys: readonly string[]): OpenQuery[] {
  const places = new Map<string, number[]>();
  for (const [place, key] of keys.entries()) {
    const known = places.get(key);
    if (known === undefined) places.set(key, [place]);
    else known.push(place);
  }
  return [...places].map(([key, at]) => ({ key, places: at }));
}

/** Different for whatever may be embedded differently. Index, encoder and prefix are those of the retriever. */
function keyOf(input: EncoderInput, truncate: TruncateSide = 'tail'): string {
  const pair = questionAndQuery(input);
  // A plain text is cut at its end either way.
  if (pair === null) return `text ${typeof input === 'string' ? input : input.query}`;
  return `${truncate} ${pair.question.length} ${pair.question}${pair.query}`;
}

/** The promise's value, or CANCELLED as soon as the signal aborts. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  throwIfCancelled(signal);
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(cancelled());
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
