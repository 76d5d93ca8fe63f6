import { defined } from '../../src/base/objects.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { BM25_PROFILES, type Bm25Ranking, DEFAULT_BM25, type FieldRanking } from '../../src/engine/lexical/bm25.ts';
import type { Bm25Settings, LexicalField } from '../../src/engine/lexical/lexical-settings.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import { hybridSettings } from '../../src/search/hybrid/hybrid-settings.ts';
import type { SearchSourceInfo } from '../../src/search/retriever.ts';
import { BM25_ORDERS, SEARCH_MODES, type SearchMode } from '../../src/search/search-mode.ts';
import { refuseOptions } from './checks.ts';
import { checkFilter, FILTER_OPTION, filterOption } from './filter-option.ts';
import { HYBRID_OPTIONS, hybridOptions } from './hybrid-options.ts';
import { namedNumbers, numberFrom } from './numbers.ts';
import * as option from './option.ts';
import { type RerankOptions, rerankCall } from './rerank-options.ts';

/** How passages are ranked. */
export const MODE_OPTION = option.choice(
  SEARCH_MODES,
  'How passages are ranked: dense (by their vectors), bm25 (by their words; needs an index made with --bm25, and no encoder) or hybrid (by both lists, fused; needs both). Default: dense where the index has vectors.',
);

/** The options of search commands that set how passages are ranked. */
export const RANKING_OPTIONS = {
  mode: MODE_OPTION,
  filter: FILTER_OPTION,
  k1: option.text('NUMBER', 'With --mode bm25 or hybrid: k1, 0 or larger. Default: the k1 of the index.'),
  b: option.text('NUMBER', 'With --mode bm25 or hybrid: b, from 0 to 1. Default: the b of the index.'),
  'bm25-profile': option.choice(
    Object.keys(BM25_PROFILES) as (keyof typeof BM25_PROFILES)[],
    "With --mode bm25 or hybrid: use the parameters of another system. lucene: Lucene's formula with the defaults of Anserini and Pyserini, k1 0.9 and b 0.4 (Lucene's own are 1.2 and 0.75); elasticsearch: k1 1.2, b 0.75 and Elasticsearch's factor k1 + 1.",
  ),
  'bm25-order': option.choice(
    BM25_ORDERS,
    "With --mode bm25: how hits with equal scores are ordered. row: by row, with exact scores; pyserini: by id as text, with Pyserini's rounded scores. Default: row.",
  ),
  'bm25-weights': option.text(
    'FIELD=N,…',
    'With --mode bm25 or hybrid on an index made with --bm25-fields title,text: the weights of the fields, such as title=2,text=1. The best field of a passage gives its score. 0: the field is not searched. Default: 1.',
  ),
  'tie-breaker': option.text(
    'NUMBER',
    'With --mode bm25 or hybrid on an index made with --bm25-fields title,text: the share of the score in the other field that is added, from 0 to 1. Default: 0; 1 adds both scores.',
  ),
  ...HYBRID_OPTIONS,
} as const satisfies OptionTable;

type Values = OptionValues<typeof RANKING_OPTIONS>;

/** Options that only some modes use. */
const USED_BY: readonly { readonly modes: readonly SearchMode[]; readonly names: readonly (keyof Values)[] }[] = [
  { modes: ['bm25', 'hybrid'], names: ['k1', 'b', 'bm25-profile', 'bm25-weights', 'tie-breaker'] },
  { modes: ['bm25'], names: ['bm25-order'] },
  { modes: ['hybrid'], names: Object.keys(HYBRID_OPTIONS) as (keyof typeof HYBRID_OPTIONS)[] },
];

/** Returns the modes to open; undefined: all modes of the index. @throws TrawlError USAGE. */
export function modesOption({ mode }: Values, given: ReadonlySet<string>): readonly SearchMode[] | undefined {
  for (const { modes, names } of USED_BY) {
    if (mode === undefined || !modes.includes(mode))
      refuseOptions(given, names, `without --mode ${modes.join(' or ')}`);
  }
  return mode === undefined ? undefined : [mode];
}

/** The fields that can be searched apart, and so have weights. */
const WEIGHTED_FIELDS: readonly LexicalField[] = ['title', 'text'];
const WEIGHTS = { names: WEIGHTED_FIELDS, max: 1_000_000, example: 'title=2,text=1' };

/** @throws TrawlError USAGE. */
export function fieldRanking(options: Pick<Values, 'bm25-weights' | 'tie-breaker'>): FieldRanking {
  const { 'bm25-weights': weights, 'tie-breaker': tieBreaker } = options;
  return defined({
    weights: weights === undefined ? undefined : namedNumbers('bm25-weights', weights, WEIGHTS),
    tieBreaker: tieBreaker === undefined ? undefined : numberFrom('tie-breaker', tieBreaker, { max: 1 }),
  });
}

/** Returns the mode with its settings, the filter and the reranking, for searches with `k` hits. @throws TrawlError USAGE. */
export function rankingOf(options: Values & RerankOptions, info: SearchSourceInfo, k: number): Ranking {
  const filter = filterOption(options.filter);
  checkFilter(filter, info);
  const { mode } = options;
  const { rerank } = rerankCall(options);
  const byWords = mode === 'bm25' || mode === 'hybrid';
  return defined({
    filter,
    mode,
    bm25: byWords ? bm25Of(options, info.bm25!) : undefined,
    bm25Order: byWords ? options['bm25-order'] : undefined,
    hybrid: mode === 'hybrid' ? hybridSettings(hybridOptions(options), Math.max(k, rerank?.depth ?? 0)) : undefined,
    rerank,
  });
}

export type Ranking = Pick<RetrieveCall, 'mode' | 'filter' | 'bm25' | 'bm25Order' | 'hybrid' | 'rerank'>;

/** Undefined if no parameter is given: each index keeps its own. */
function bm25Of(options: Values, ofIndex: Bm25Settings): Bm25Ranking | undefined {
  const { k1, b, 'bm25-profile': profile, 'bm25-weights': weights, 'tie-breaker': tieBreaker } = options;
  if ([k1, b, profile, weights, tieBreaker].every((value) => value === undefined)) return undefined;
  const defaults = profile === undefined ? { ...DEFAULT_BM25, k1: ofIndex.k1, b: ofIndex.b } : BM25_PROFILES[profile];
  return {
    ...defaults,
    k1: k1 === undefined ? defaults.k1 : numberFrom('k1', k1, { max: 1_000_000 }),
    b: b === undefined ? defaults.b : numberFrom('b', b, { max: 1 }),
    ...fieldRanking(options),
  };
}
