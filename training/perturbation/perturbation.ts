import type { Perturbed } from '../../src/search/calls/query-outcome.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { type OriginSources, readOrigins } from '../../src/server/recording/read-origins.ts';
import type { HookedRequest, HookLimits, SearchHook } from '../../src/server/search-hook.ts';
import { perturbingRetriever } from './perturbing-retriever.ts';
import { type GoldPassages, RequestPerturbation, type Texts, UnansweredRequests } from './request-perturbation.ts';
import { PERTURBATIONS, type PerturbationName, type PerturbationSettings } from './settings.ts';

/** Perturbs the searches of an address. One object serves all its requests. */
export class Perturbation implements SearchHook {
  readonly settings: PerturbationSettings;
  readonly gold: GoldPassages | null;
  readonly unanswered = new UnansweredRequests();
  readonly changes = PERTURBATIONS;

  constructor(settings: PerturbationSettings, gold: GoldPassages | null = null) {
    this.settings = settings;
    this.gold = gold;
  }

  get facts(): object {
    const { rates, seed, distractors, delayMs } = this.settings;
    return { rates, seed, distractors, delayMs };
  }

  begin(sources: OriginSources, count: (name: string) => void): HookedRequest {
    return new PerturbedRequest(this, sources, count);
  }
}

/** The header of a reply that says how its answers were perturbed: `drop-gold;0;3, delay`, or `none`. */
const PERTURBED_HEADER = 'x-trawl-perturbed';
/** Positions of queries that it names for each perturbation. */
const MAX_NAMED = 100;

/** The perturbation of a request, and what its reply says of it. */
class PerturbedRequest implements HookedRequest {
  readonly #perturbation: RequestPerturbation;
  /** Positions of queries by perturbation; empty for one of the whole request. */
  readonly #positions = new Map<PerturbationName, number[]>();
  readonly #count: (name: string) => void;
  #searches = 0;

  constructor(perturbation: Perturbation, sources: OriginSources, count: (name: string) => void) {
    this.#count = count;
    const { 'x-trawl-trajectory': trajectory = '', 'x-trawl-turn': turn = '' } = sources.headers;
    this.#perturbation = new RequestPerturbation({
      perturbation,
      caller: JSON.stringify([trajectory, turn]),
      asked: (queries) => readOrigins(sources, queries).origins,
      onPerturbed: (name) => this.#add(name),
    });
  }

  retriever(inner: Retriever, limits: HookLimits): Retriever {
    return perturbingRetriever(inner, this.#perturbation, limits);
  }

  async pass(texts: readonly string[], signal: AbortSignal): Promise<void> {
    const asked = texts.map((text): Texts => ['', text]);
    await this.#perturbation.pass(asked, signal);
  }

  note(answers: readonly (Perturbed | undefined)[], positions?: readonly number[]): void {
    const first = this.#searches;
    this.#searches += answers.length;
    for (const [i, perturbed] of answers.entries()) {
      const position = positions?.[i] ?? first + i;
      if ((perturbed?.droppedGold ?? 0) > 0) this.#add('drop-gold', position);
      if ((perturbed?.distractors ?? 0) > 0) this.#add('distractors', position);
    }
  }

  get headers(): Readonly<Record<string, string>> {
    if (!this.#perturbation.searched) return {};
    const named = PERTURBATIONS.flatMap((name) => {
      const positions = this.#positions.get(name);
      if (positions === undefined) return [];
      const more = positions.length - MAX_NAMED;
      return [[name, ...positions.slice(0, MAX_NAMED), ...(more > 0 ? [`and-${more}-more`] : [])].join(';')];
    });
    return { [PERTURBED_HEADER]: named.length === 0 ? 'none' : named.join(', ') };
  }

  #add(name: PerturbationName, position?: number): void {
    const positions = this.#positions.get(name) ?? [];
    this.#positions.set(name, positions);
    if (position !== undefined) positions.push(position);
    this.#count(name);
  }
}
