import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { cancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { AskedQuestion } from '../../src/search/calls/retrieve-call.ts';
import { draw } from './draw.ts';
import type { GoldPassages } from './gold-passages.ts';
import type { PerturbationName, PerturbationSettings } from './settings.ts';
import type { UnansweredRequests } from './unanswered-requests.ts';

/** What all requests of an address share. */
export interface AddressPerturbation {
  readonly settings: PerturbationSettings;
  /** Null if no gold passages are known: none are dropped then. */
  readonly gold: GoldPassages | null;
  readonly unanswered: UnansweredRequests;
}

export interface PerturbedRequestOptions {
  readonly perturbation: AddressPerturbation;
  /** What tells equal requests of different callers apart, such as their trajectories; may be empty. */
  readonly caller: string;
  /** The questions of the request's queries as its headers and body name them, one per query. */
  asked(queries: number): readonly AskedQuestion[];
  /** Called once for each request that is held back or failed. */
  onPerturbed(name: PerturbationName): void;
}

/** The part of a perturbation that concerns a request as a whole: it is held back or failed before anything is searched. */
export class RequestPerturbation {
  readonly perturbation: AddressPerturbation;
  readonly #options: PerturbedRequestOptions;
  /** By the texts of the search. */
  readonly #gates = new Map<string, Promise<number>>();

  constructor(options: PerturbedRequestOptions) {
    this.perturbation = options.perturbation;
    this.#options = options;
  }

  asked(queries: number): readonly AskedQuestion[] {
    return this.#options.asked(queries);
  }

  /** Whether the request searched. */
  get searched(): boolean {
    return this.#gates.size > 0;
  }

  /**
   * Resolves with the milliseconds that the search was held back. A search of several indexes with equal texts is one search, which
   * passes once.
   *
   * @param texts what the search asks for; the draws depend on it.
   * @throws TrawlError PERTURBED for a search that fails on purpose, CANCELLED as soon as the signal aborts.
   */
  pass(
    texts: readonly (readonly [question: string, query: string])[],
    signal: AbortSignal | undefined,
  ): Promise<number> {
    const key = hash('sha256', JSON.stringify(texts), 'base64url');
    let gate = this.#gates.get(key);
    if (gate === undefined) {
      gate = this.#pass(key, signal);
      this.#gates.set(key, gate);
    }
    return gate;
  }

  async #pass(texts: string, signal: AbortSignal | undefined): Promise<number> {
    const { caller, onPerturbed, perturbation } = this.#options;
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
        await sleep(delayMs, undefined, signal === undefined ? {} : { signal });
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
