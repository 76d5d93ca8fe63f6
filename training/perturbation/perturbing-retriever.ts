import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { hasOtherHits, type QueryAnswer, type QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import {
  type AskedQuestion,
  type CallOptions,
  inputOf,
  type RetrieveCall,
  type RetrieveResult,
  type RowScope,
} from '../../src/search/calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from '../../src/search/calls/tree-call.ts';
import { passingRetriever } from '../../src/search/layers/passing-retriever.ts';
import type { Retriever, Search } from '../../src/search/retriever.ts';
import type { HookLimits } from '../../src/server/search-hook.ts';
import { mixDistractors } from './distractors.ts';
import { draw } from './draw.ts';
import { type IsGold, retrieveWithoutGold, searchTreeWithoutGold } from './drop-gold.ts';
import type { RequestPerturbation } from './request-perturbation.ts';
import { treeConditions } from './tree-conditions.ts';

type Texts = readonly [question: string, query: string];

/** What happens to the hits of a query. */
interface Change {
  readonly texts: Texts;
  /** Undefined if no gold passage is known for its question. */
  readonly isGold: IsGold | undefined;
  readonly drops: boolean;
  readonly mixes: boolean;
}

/**
 * A retriever for one request whose searches are perturbed. It stands around the cache, whose answers stay unperturbed, and around the
 * views and the filter of the request, which distractors do not leave. Look-ups by id, scores of given passages, vectors and reranked
 * texts are not searches and pass unchanged.
 *
 * It keeps nothing between two calls, because a request may have several searches at a time. A deeper search names the call that it
 * continues.
 */
export function perturbingRetriever(
  inner: Retriever,
  request: RequestPerturbation,
  options: HookLimits = {},
): Retriever {
  const search = new PerturbingSearch(inner, request, options);
  return passingRetriever(inner, (call) => call, {
    retrieve: (call) => search.retrieve(call),
    searchTree: (call) => search.searchTree(call),
  });
}

class PerturbingSearch implements Search {
  readonly #inner: Retriever;
  readonly #request: RequestPerturbation;
  readonly #options: HookLimits;

  constructor(inner: Retriever, request: RequestPerturbation, options: HookLimits) {
    this.#inner = inner;
    this.#request = request;
    this.#options = options;
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    // A deeper search has passed with the call that it continues.
    const first = call.continues?.call ?? call;
    const delayMs = await this.#request.pass(textsIn(first), first.signal);
    const asked = this.#askedIn(call);
    const changes = textsIn(call).map((each, i) => this.#changeOf(each, asked[i]));
    const found = await retrieveWithoutGold(
      this.#inner,
      call,
      changes.map(({ drops, isGold }) => (drops ? isGold : undefined)),
      this.#options.maxHits,
    );
    const outcomes = await this.#mixed(call, found.outcomes, changes);
    return { timings: found.timings, outcomes: outcomes.map((outcome) => withPerturbationFacts(outcome, delayMs)) };
  }

  async searchTree(call: TreeCall): Promise<TreeResult> {
    if (call.text === undefined) return this.#inner.searchTree(call);
    const texts: Texts = ['', call.text];
    const delayMs = await this.#request.pass([texts], call.signal);
    const { drops, mixes, isGold } = this.#changeOf(texts, this.#request.asked(1)[0]);
    const delayed = delayMs === 0 ? {} : { delayMs };
    if (call.size === 0 || !(mixes || (drops && isGold !== undefined))) {
      const result = await this.#inner.searchTree(call);
      return delayMs === 0 ? result : { ...result, perturbed: delayed };
    }
    const { from, size } = call;
    const { result, droppedGold } = await searchTreeWithoutGold(
      this.#inner,
      call,
      drops ? isGold : undefined,
      this.#options.maxHits,
    );
    const { seed, distractors: count } = this.#request.perturbation.settings;
    const [list = { hits: result.hits, distractors: 0 }] = await mixDistractors(
      this.#inner,
      mixes ? [{ hits: result.hits, texts, isGold }] : [],
      { seed, count, lastRank: size, length: from + size, scope: scopeOf(call), conditions: treeConditions(call) },
    );
    const { hits, distractors } = list;
    const changed = {
      ...(droppedGold === 0 ? {} : { droppedGold }),
      ...(distractors === 0 ? {} : { distractors }),
      ...delayed,
    };
    return {
      ...result,
      hits: hits.slice(from, from + size),
      // That of a dropped passage would show it.
      best: call.order === undefined ? (hits[0]?.score ?? null) : result.best,
      ...(Object.keys(changed).length === 0 ? {} : { perturbed: changed }),
    };
  }

  /** The question of each query, found by position: equal queries may have different ones. */
  #askedIn(call: RetrieveCall): readonly AskedQuestion[] {
    const { call: first, positions } = call.continues ?? { call, positions: undefined };
    const asked = this.#request.asked(first.queries.length).map((named, i) => ({ ...named, ...first.asked?.[i] }));
    return positions === undefined ? asked : positions.map((i) => asked[i] ?? {});
  }

  #changeOf(texts: Texts, asked: AskedQuestion | undefined): Change {
    const { gold, settings } = this.#request.perturbation;
    const { rates, seed } = settings;
    const isDrawn = (name: 'drop-gold' | 'distractors'): boolean => draw(seed, name, ...texts) < rates[name];
    const [question, query] = texts;
    const drops = isDrawn('drop-gold');
    const mixes = isDrawn('distractors');
    const isGold = drops || mixes ? gold?.of({ ...asked, ...(question === '' ? {} : { question }), query }) : undefined;
    return { texts, isGold, drops, mixes };
  }

  async #mixed(
    call: RetrieveCall,
    outcomes: readonly QueryOutcome[],
    changes: readonly Change[],
  ): Promise<readonly QueryOutcome[]> {
    const { k } = call;
    const { seed, distractors: count } = this.#request.perturbation.settings;
    const places = outcomes.flatMap((outcome, i) => (outcome.ok && changes[i]!.mixes ? [i] : []));
    const lists = await mixDistractors(
      this.#inner,
      places.map((i) => ({ ...changes[i]!, hits: (outcomes[i] as QueryAnswer).hits })),
      { seed, count, lastRank: Math.min(this.#options.shown ?? k, k), length: k, scope: scopeOf(call) },
    );
    const mixed = [...outcomes];
    for (const [at, i] of places.entries()) {
      const outcome = outcomes[i] as QueryAnswer;
      const { hits, distractors } = lists[at]!;
      if (distractors > 0) mixed[i] = { ...outcome, hits, perturbed: { ...outcome.perturbed, distractors } };
    }
    return mixed;
  }
}

/** The outcome with its delay. An outcome whose hits were changed is not exact. */
function withPerturbationFacts(outcome: QueryOutcome, delayMs: number): QueryOutcome {
  if (!outcome.ok) return outcome;
  const perturbed = { ...outcome.perturbed, ...(delayMs === 0 ? {} : { delayMs }) };
  if (Object.keys(perturbed).length === 0) return outcome;
  const { certificate } = outcome;
  return {
    ...outcome,
    perturbed,
    certificate: hasOtherHits(perturbed) ? { ...certificate, exact: false } : certificate,
  };
}

function textsIn({ queries }: RetrieveCall): readonly Texts[] {
  return queries.map((query) => textsOf(inputOf(query)));
}

function textsOf(input: EncoderInput): Texts {
  return typeof input === 'string' ? ['', input] : [input.question, input.query];
}

function scopeOf({ filter, views, signal }: RowScope & CallOptions): RowScope & CallOptions {
  return { filter, views, signal };
}
