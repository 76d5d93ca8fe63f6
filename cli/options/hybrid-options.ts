import { usageError } from '../../src/base/errors.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { HYBRID_FUSIONS, type HybridOptions, MAX_HYBRID_NUMBER } from '../../src/search/hybrid/hybrid-settings.ts';
import { namedNumbers, numberFrom } from './numbers.ts';
import * as option from './option.ts';

/** The options of commands that set how hybrid search fuses its lists. */
export const HYBRID_OPTIONS = {
  'hybrid-fusion': option.choice(
    HYBRID_FUSIONS,
    'With mode hybrid: how the dense list and the list of bm25 are fused. rrf: reciprocal rank fusion; weighted: by the scores, in standard deviations of each list. Default: weighted.',
  ),
  'hybrid-weights': option.text(
    'LIST=N,…',
    'With mode hybrid: the weights of the two lists, such as dense=0.4,bm25=0.6. Default: 1 each for rrf, 0.5 each for weighted.',
  ),
  'hybrid-rrf-k': option.text(
    'NUMBER',
    'With mode hybrid: the constant of reciprocal rank fusion, 0 or larger. Default: 10.',
  ),
  'hybrid-depth': option.integer(
    { min: 1 },
    'With mode hybrid: the number of passages of each list that are fused. Default: 1,000, or the number of passages per query if it is larger.',
  ),
} as const satisfies OptionTable;

type Values = OptionValues<typeof HYBRID_OPTIONS>;

/** The settings that were given. @throws TrawlError USAGE. */
export function hybridOptions(options: Values): HybridOptions {
  const { 'hybrid-fusion': fusion, 'hybrid-weights': weights, 'hybrid-rrf-k': rrfK, 'hybrid-depth': depth } = options;
  return {
    fusion,
    ...parseWeights(weights),
    rrfK: rrfK === undefined ? undefined : numberFrom('hybrid-rrf-k', rrfK, { max: MAX_HYBRID_NUMBER }),
    depth,
  };
}

function parseWeights(text: string | undefined): Pick<HybridOptions, 'denseWeight' | 'bm25Weight'> {
  if (text === undefined) return {};
  const { dense, bm25 } = namedNumbers('hybrid-weights', text, {
    names: ['dense', 'bm25'],
    max: MAX_HYBRID_NUMBER,
    example: 'dense=0.4,bm25=0.6',
  });
  if (dense === 0 && bm25 === 0) {
    throw usageError(`--hybrid-weights is ${JSON.stringify(text)}; at least one weight must not be 0.`);
  }
  return { denseWeight: dense, bm25Weight: bm25 };
}
