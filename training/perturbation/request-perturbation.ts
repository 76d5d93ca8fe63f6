import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { cancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { AskedQuestion } from '../../src/search/calls/retrieve-call.ts';
import { draw } from './draw.ts';
import type { PerturbationName, PerturbationSettings } from './settings.ts';

/** The texts of a query on which draws depend; the question is empty if it is not known. */
export type Texts = readonly [question: string, query: string];

/** Whether a passage (the JSON text of its row) is gold. */
export type IsGold = (document: string) => boolean;

export interface GoldQuery extends AskedQuestion {
  readonly query: string;
}

export interface GoldPassages {
  /** Which passages are gold for the question of a query; undefined if the question is not known. */
  of(query: GoldQuery): IsGold | undefined;
}

interface RequestOptions {
  /** What all requests of an address share. */
  readonly perturbation: {
    readonly settings: PerturbationSettings;
    /** Null if no gold passages are known: none are dropped then. */
    readonly gold: GoldPassages | null;
    readonly unanswered: UnansweredRequests;
  };
  /** What tells equal requests of different callers apart, such as their trajectories; may be empty. */
  readonly caller: string;
  /** The questions of the request's queries as its headers and body name them, one per query. */
  asked(queries: number): readonly AskedQuestion[];
  /** Called once for each request that is held back or failed. */
  onPerturbed(name: PerturbationName): void;
}

/** The part of a perturbation that concerns a request as a whole: it is held back or failed before anything is searched. */
export class RequestPerturbation {
  readonly options: RequestOptions;
  /** By the texts of the search. */
  readonly #gates = new Map<string, Promise<number>>();

  constructor(options: RequestOptions) {
    this.options = options;
  }

  get searched(): boolean {
    return this.#gates.size > 0;
  }

  /**
   * Resolves with the milliseconds that the search was held back. A search of several indexes with equal texts is one search, which
   * passes once.
   *
   * @throws TrawlError PERTURBED for a search that fails on purpose, CANCELLED as soon as the signal aborts.
   */
  pass(texts: readonly Texts[], signal: AbortSignal | undefined): Promise<number> {
    const key = hash('sha256', JSON.stringify(texts), 'base64url');
    const gate = this.#gates.get(key) ?? this.#pass(key, signal);
    this.#gates.set(key, gate);
    return gate;
  }

  async #pass(texts: string, signal: AbortSignal | undefined): Promise<number> {
    const { caller, onPerturbed, perturbation } = this.options;
    const { settings, unanswered } = perturbation;
    const { seed, rates } = settings;
    // A hash, because headers may be long and many of these keys are remembered.
    const key = hash('sha256', JSON.stringify([texts, caller]), 'base64url');
    const attempt = unanswered.count(key);
    const isDrawn = (name: 'delay' | 'fail'): boolean => draw(seed, name, texts, attempt) < rates[name];
    const delayMs = isDrawn('delay') ? settings.delayMs : 0;
    if (delayMs > 0) {
      onPerturbed('delay');
      try {
        await sleep(delayMs, undefined, { signal });
      } catch {
        unanswered.unanswered(key);
        throw cancelled();
      }
    }
    if (isDrawn('fail')) {
      unanswered.unanswered(key);
      onPerturbed('fail');
      throw new TrawlError('PERTURBED', 'The server failed this request on purpose (--perturb fail). Send it again.', {
        details: { attempt: attempt + 1 },
      });
    }
    unanswered.answered(key);
    return delayMs;
  }
}

/** Requests that are remembered; the oldest is forgotten. With keys of 43 characters an entry takes about 150 bytes. */
const MAX_REQUESTS = 100_000;

/**
 * How often in a row equal requests were kept from their answer: failed on purpose, or given up by the client while they were held back.
 * The number takes part in the next draw. A client that repeats a request thus gets a new draw each time, and after an answer the same
 * draws as before.
 */
export class UnansweredRequests {
  readonly #counts = new Map<string, number>();

  /** Unanswered requests since the last answer. */
  count(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  unanswered(key: string): void {
    const count = this.count(key) + 1;
    // Deleted first, so that it becomes the last of the map.
    this.#counts.delete(key);
    this.#counts.set(key, count);
    if (this.#counts.size > MAX_REQUESTS) this.#counts.delete(this.#counts.keys().next().value!);
  }

  answered(key: string): void {
    this.#counts.delete(key);
  }
}
