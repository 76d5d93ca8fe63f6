import type { LexicalQuery } from '../../src/engine/lexical/lexical-query.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import {
  hasOtherHits,
  type Perturbed,
  type QueryAnswer,
  type QueryOutcome,
} from '../../src/search/calls/query-outcome.ts';
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
import type { Retriever } from '../../src/search/retriever.ts';
import type { HookLimits } from '../../src/server/search-hook.ts';
import { mixDistractors } from './distractors.ts';
import { draw } from './draw.ts';
import { retrieveWithoutGold, searchTreeWithoutGold } from './drop-gold.ts';
import type { IsGold, RequestPerturbation, Texts } from './request-perturbation.ts';

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
 * texts are not searches and pass unchanged; `HookedRequest.pass` holds back a request for vectors or reranking.
 *
 * It keeps nothing between two calls, because a request may have several searches at a time. A deeper search names the call that it
 * continues.
 */
export function perturbingRetriever(
  inner: Retriever,
  request: RequestPerturbation,
  options: HookLimits = {},
): Retriever {
  const search = { inner, request, options };
  return passingRetriever(inner, (call) => call, {
    retrieve: (call) => retrieve(search, call),
    searchTree: (call) => searchTree(search, call),
  });
}

interface PerturbedSearch {
  readonly inner: Retriever;
  readonly request: RequestPerturbation;
  readonly options: HookLimits;
}

async function retrieve(search: PerturbedSearch, call: RetrieveCall): Promise<RetrieveResult> {
  const { inner, request, options } = search;
  // A deeper search has passed with the call that it continues.
  const first = call.continues?.call ?? call;
  const delayMs = await request.pass(textsIn(first), first.signal);
  const asked = askedIn(search, call);
  const changes = textsIn(call).map((texts, i) => changeOf(request, texts, asked[i]));
  const goldTests = changes.map(({ drops, isGold }) => (drops ? isGold : undefined));
  const found = await retrieveWithoutGold(inner, call, goldTests, options.maxHits);
  const outcomes = await mixedOutcomes(search, call, found.outcomes, changes);
  return { timings: found.timings, outcomes: outcomes.map((outcome) => withDelay(outcome, delayMs)) };
}

async function searchTree({ inner, request, options }: PerturbedSearch, call: TreeCall): Promise<TreeResult> {
  if (call.text === undefined) return inner.searchTree(call);
  const texts: Texts = ['', call.text];
  const { asked, perturbation } = request.options;
  const delayMs = await request.pass([texts], call.signal);
  const { drops, mixes, isGold } = changeOf(request, texts, asked(1)[0]);
  if (call.size === 0 || !(mixes || (drops && isGold !== undefined))) {
    return { ...(await inner.searchTree(call)), perturbed: perturbedFacts({ delayMs }) };
  }
  const { from, size } = call;
  const { result, droppedGold } = await searchTreeWithoutGold(inner, call, drops ? isGold : undefined, options.maxHits);
  const { seed, distractors: count } = perturbation.settings;
  const [{ hits, distractors } = { hits: result.hits, distractors: 0 }] = await mixDistractors(
    inner,
    mixes ? [{ hits: result.hits, texts, isGold }] : [],
    { seed, count, lastRank: size, length: from + size, scope: scopeOf(call), conditions: treeConditions(call) },
  );
  return {
    ...result,
    hits: hits.slice(from, from + size),
    // The best score of a dropped passage would reveal it.
    best: call.order === undefined ? (hits[0]?.score ?? null) : result.best,
    perturbed: perturbedFacts({ droppedGold, distractors, delayMs }),
  };
}

/** The question of each query, found by position: equal queries may have different ones. */
function askedIn({ request }: PerturbedSearch, call: RetrieveCall): readonly AskedQuestion[] {
  const { call: first, positions } = call.continues ?? { call, positions: undefined };
  const named = request.options.asked(first.queries.length);
  const asked = named.map((question, i) => ({ ...question, ...first.asked?.[i] }));
  return positions === undefined ? asked : positions.map((i) => asked[i] ?? {});
}

function changeOf(request: RequestPerturbation, texts: Texts, asked: AskedQuestion | undefined): Change {
  const { gold, settings } = request.options.perturbation;
  const { rates, seed } = settings;
  const isDrawn = (name: 'drop-gold' | 'distractors'): boolean => draw(seed, name, ...texts) < rates[name];
  const [question, query] = texts;
  const drops = isDrawn('drop-gold');
  const mixes = isDrawn('distractors');
  const isGold = drops || mixes ? gold?.of({ ...asked, ...(question === '' ? {} : { question }), query }) : undefined;
  return { texts, isGold, drops, mixes };
}

async function mixedOutcomes(
  { inner, request, options }: PerturbedSearch,
  call: RetrieveCall,
  outcomes: readonly QueryOutcome[],
  changes: readonly Change[],
): Promise<readonly QueryOutcome[]> {
  const { k } = call;
  const { seed, distractors: count } = request.options.perturbation.settings;
  const places = outcomes.flatMap((outcome, i) => (outcome.ok && changes[i]!.mixes ? [i] : []));
  const lists = await mixDistractors(
    inner,
    places.map((i) => ({ ...unmixed(changes[i]!, call), hits: (outcomes[i] as QueryAnswer).hits })),
    { seed, count, lastRank: Math.min(options.shown ?? k, k), length: k, scope: scopeOf(call) },
  );
  const mixed = [...outcomes];
  for (const [at, i] of places.entries()) {
    const outcome = outcomes[i] as QueryAnswer;
    const { hits, distractors } = lists[at]!;
    if (distractors > 0) mixed[i] = { ...outcome, hits, perturbed: { ...outcome.perturbed, distractors } };
  }
  return mixed;
}

/** The change, without excluded passages among the distractors. */
function unmixed(change: Change, { exclude = [] }: RetrieveCall): Change {
  if (exclude.length === 0) return change;
  const excluded = new Set(exclude);
  const isGold: IsGold = (document) =>
    excluded.has(documentFields(document).id ?? '') || change.isGold?.(document) === true;
  return { ...change, isGold };
}

/** The outcome with its delay. An outcome whose hits were changed is not exact. */
function withDelay(outcome: QueryOutcome, delayMs: number): QueryOutcome {
  if (!outcome.ok) return outcome;
  const perturbed = perturbedFacts({ ...outcome.perturbed, delayMs });
  if (perturbed === undefined) return outcome;
  const { certificate } = outcome;
  return {
    ...outcome,
    perturbed,
    certificate: hasOtherHits(perturbed) ? { ...certificate, exact: false } : certificate,
  };
}

/** The facts that are not 0; undefined if all are. */
function perturbedFacts(facts: Perturbed): Perturbed | undefined {
  const changed = Object.entries(facts).filter(([, amount]) => amount > 0);
  return changed.length === 0 ? undefined : Object.fromEntries(changed);
}

function textsIn({ queries }: RetrieveCall): readonly Texts[] {
  return queries.map((query) => {
    const input = inputOf(query);
    return typeof input === 'string' ? ['', input] : [input.question, input.query];
  });
}

function scopeOf({ filter, views, signal }: RowScope & CallOptions): RowScope & CallOptions {
  return { filter, views, signal };
}

/**
 * What a query tree demands of a passage beside its words: its filters and what must not match. A distractor need not have the words of a
 * search, but it must not leave the filters of the client. Undefined if there are none.
 */
function treeConditions({ query }: Pick<TreeCall, 'query'>): LexicalQuery | undefined {
  const filter = conditionsOf(query);
  return filter.length === 0 ? undefined : { type: 'bool', filter };
}

function conditionsOf(query: LexicalQuery): readonly LexicalQuery[] {
  switch (query.type) {
    case 'bool': {
      const { must = [], should = [], filter = [], mustNot = [], minimumShouldMatch = 0 } = query;
      const excluded = { type: 'bool', filter: [{ type: 'match-all' }], mustNot } as const;
      const least = Math.max(minimumShouldMatch, must.length + filter.length === 0 ? 1 : 0);
      return [
        ...filter,
        ...must.flatMap(conditionsOf),
        ...alternatives(should, least),
        ...(mustNot.length === 0 ? [] : [excluded]),
      ];
    }
    case 'dis-max':
      return alternatives(query.queries, 1);
    case 'constant-score':
      return [query.query];
    // Sets with scores are the nearest passages of a vector: they are what was searched for, among the rows of its filter.
    case 'rows':
      if (query.scores === undefined) return [query];
      return query.among === undefined ? [] : [{ type: 'rows', rows: query.among }];
    case 'match-none':
      return [query];
    default:
      return [];
  }
}

/** What holds for a passage that matches at least `least` of the queries. */
function alternatives(queries: readonly LexicalQuery[], least: number): readonly LexicalQuery[] {
  const conditions = queries.map(conditionsOf).filter((of) => of.length > 0);
  // The queries without conditions can be as many as are needed.
  const needed = least - (queries.length - conditions.length);
  if (needed <= 0) return [];
  const should = conditions.map((filter) => ({ type: 'bool', filter }) as const);
  return [{ type: 'bool', should, minimumShouldMatch: needed }];
}
