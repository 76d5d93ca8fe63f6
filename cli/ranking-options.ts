import { TrawlError } from '../src/errors.ts';
import { BM25_PROFILES, DEFAULT_BM25, type FieldRanking } from '../src/lexical-index/bm25.ts';
import type { LexicalField } from '../src/lexical-index/lexical-settings.ts';
import type { OptionTable, OptionValues } from '../src/options/option-spec.ts';
import {
  BM25_ORDERS,
  type RetrieveCall,
  type RetrieverInfo,
  SEARCH_MODES,
  type SearchMode,
} from '../src/retrieval/retriever.ts';
import { numberFrom } from './number-from.ts';

/** How passages are ranked. */
export const MODE_OPTION = {
  type: 'choice',
  choices: SEARCH_MODES,
  help: 'How passages are ranked: dense (by their vectors) or bm25 (by their words; needs an index made with --bm25, and no encoder). Default: dense where the index has vectors.',
} as const;

/** The options of search commands that set how passages are ranked. */
export const RANKING_OPTIONS = {
  mode: MODE_OPTION,
  k1: {
    type: 'string',
    value: 'NUMBER',
    help: 'With --mode bm25: k1, 0 or larger. Default: the k1 of the index.',
  },
  b: {
    type: 'string',
    value: 'NUMBER',
    help: 'With --mode bm25: b, from 0 to 1. Default: the b of the index.',
  },
  'bm25-profile': {
    type: 'choice',
    choices: Object.keys(BM25_PROFILES) as (keyof typeof BM25_PROFILES)[],
    help: "With --mode bm25: use the parameters of another system. lucene: Lucene's formula with the defaults of Anserini and Pyserini, k1 0.9 and b 0.4 (Lucene's own are 1.2 and 0.75); elasticsearch: k1 1.2, b 0.75 and Elasticsearch's factor k1 + 1.",
  },
  'bm25-order': {
    type: 'choice',
    choices: BM25_ORDERS,
    help: "With --mode bm25: how hits with equal scores are ordered. row: by row, with exact scores; pyserini: by id as text, with Pyserini's rounded scores. Default: row.",
  },
  'bm25-weights': {
    type: 'string',
    value: 'FIELD=N,…',
    help: 'With --mode bm25 on an index made with --bm25-fields title,text: the weights of the fields, such as title=2,text=1. The best field of a passage gives its score. 0: the field is not searched. Default: 1.',
  },
  'tie-breaker': {
    type: 'string',
    value: 'NUMBER',
    help: 'With --mode bm25 on an index made with --bm25-fields title,text: the share of the score in the other field that is added, from 0 to 1. Default: 0; 1 adds both scores.',
  },
} as const satisfies OptionTable;

type Values = OptionValues<typeof RANKING_OPTIONS>;

/** Returns the modes to open; undefined: all modes of the index. @throws TrawlError USAGE. */
export function modesOption({ mode }: Values, given: ReadonlySet<string>): readonly SearchMode[] | undefined {
  const useless = ['k1', 'b', 'bm25-profile', 'bm25-weights', 'tie-breaker', 'bm25-order'].find((name) =>
    given.has(name),
  );
  if (useless !== undefined && mode !== 'bm25')
    throw new TrawlError('USAGE', `--${useless} has no effect without --mode bm25.`);
  return mode === undefined ? undefined : [mode];
}

/** The fields that can be searched apart, and so have weights. */
const WEIGHTED_FIELDS: readonly LexicalField[] = ['title', 'text'];
const MAX_WEIGHT = 1_000_000;

/** @throws TrawlError USAGE. */
export function fieldRanking(options: Pick<Values, 'bm25-weights' | 'tie-breaker'>): FieldRanking {
  const { 'bm25-weights': weights, 'tie-breaker': tieBreaker } = options;
  return {
    ...(weights === undefined ? {} : { weights: parseWeights(weights) }),
    ...(tieBreaker === undefined ? {} : { tieBreaker: numberFrom('tie-breaker', tieBreaker, { max: 1 }) }),
  };
}

function parseWeights(text: string): NonNullable<FieldRanking['weights']> {
  const weights: Partial<Record<LexicalField, number>> = {};
  for (const part of text.split(',')) {
    const [name, number = '', ...more] = part.split('=').map((side) => side.trim());
    const field = WEIGHTED_FIELDS.find((known) => known === name);
    if (field === undefined || field in weights || more.length > 0) {
      throw new TrawlError(
        'USAGE',
        `--bm25-weights is ${JSON.stringify(text)}; expected each field once, as in title=2,text=1.`,
      );
    }
    weights[field] = numberFrom('bm25-weights', number, { max: MAX_WEIGHT });
  }
  return weights;
}

/** Returns the mode, and the parameters and the order of BM25, for searches. @throws TrawlError USAGE. */
export function rankingOf(options: Values, { bm25 }: RetrieverInfo): Pick<RetrieveCall, 'mode' | 'bm25' | 'bm25Order'> {
  const { mode, k1, b } = options;
  if (mode !== 'bm25') return mode === undefined ? {} : { mode };
  const profile = options['bm25-profile'];
  const bm25Order = options['bm25-order'];
  const defaults = profile === undefined ? { ...DEFAULT_BM25, k1: bm25!.k1, b: bm25!.b } : BM25_PROFILES[profile];
  return {
    mode,
    bm25: {
      ...defaults,
      ...(k1 === undefined ? {} : { k1: numberFrom('k1', k1, { max: 1_000_000 }) }),
      ...(b === undefined ? {} : { b: numberFrom('b', b, { max: 1 }) }),
      ...fieldRanking(options),
    },
    ...(bm25Order === undefined ? {} : { bm25Order }),
  };
}
