import { defined } from '../../base/objects.ts';
/**
 * How hybrid search merges the dense and the BM25 list of a query (`hybrid-fusion.ts` has the arithmetic):
 * - `rrf`: reciprocal rank fusion, by the ranks in both lists;
 * - `weighted`: by the scores, each list's in units of their standard deviation.
 */
export const HYBRID_FUSIONS = ['rrf', 'weighted'] as const;
type HybridFusion = (typeof HYBRID_FUSIONS)[number];

export interface HybridSettings {
  readonly fusion: HybridFusion;
  /** The constant of reciprocal rank fusion, ≥ 0: a larger one levels the ranks. Has no effect on `weighted`. */
  readonly rrfK: number;
  /** Multiply the parts of the score, ≥ 0; at least one is larger. With 0, the rows of that list stay candidates. */
  readonly denseWeight: number;
  readonly bm25Weight: number;
  /** Rows of each list that are fused, ≥ 1. The fused list has no others, so it is never longer than twice the depth. */
  readonly depth: number;
}

/** Settings that a user gave; the others have defaults. */
export type HybridOptions = Partial<HybridSettings>;

// docs/modes.md has the measurements from which the defaults were chosen.
const DEFAULT_FUSION: HybridFusion = 'weighted';
const DEFAULT_RRF_K = 10;
const DEFAULT_DEPTH = 1_000;
export const MAX_HYBRID_NUMBER = 1_000_000;

/** The weights of each fusion. */
const DEFAULT_WEIGHTS = {
  rrf: { denseWeight: 1, bm25Weight: 1 },
  weighted: { denseWeight: 0.5, bm25Weight: 0.5 },
} as const satisfies Record<HybridFusion, Pick<HybridSettings, 'denseWeight' | 'bm25Weight'>>;

/**
 * The settings of a search for `k` hits: the given ones, then `base`, then the defaults (`mergedHybrid`). The default depth is
 * 1,000, or k if that is larger; it must not change when a search is continued with a larger k, so callers complete the settings once.
 */
export function hybridSettings(given: HybridOptions, k: number, base: HybridOptions = {}): HybridSettings {
  const { fusion = DEFAULT_FUSION, ...others } = mergedHybrid(given, base);
  return {
    fusion,
    rrfK: DEFAULT_RRF_K,
    depth: Math.max(DEFAULT_DEPTH, k),
    ...DEFAULT_WEIGHTS[fusion],
    ...defined(others),
  };
}

/** The given settings, and `base` for the others. Weights of `base` count only if the fusion is the same. */
export function mergedHybrid(given: HybridOptions, base: HybridOptions): HybridOptions {
  const { denseWeight: _dense, bm25Weight: _bm25, ...withoutWeights } = base;
  const sameFusion = (given.fusion ?? base.fusion ?? DEFAULT_FUSION) === (base.fusion ?? DEFAULT_FUSION);
  return { ...(sameFusion ? base : withoutWeights), ...defined(given) };
}

/** What is wrong with a setting, such as `hybrid.depth is 0; expected …`; undefined if all are allowed. */
export function hybridFault(settings: HybridOptions): string | undefined {
  const { fusion, depth, denseWeight, bm25Weight } = settings;
  if (fusion !== undefined && !HYBRID_FUSIONS.includes(fusion)) {
    return `hybrid.fusion is ${JSON.stringify(fusion)}; expected ${HYBRID_FUSIONS.join(' or ')}.`;
  }
  for (const name of ['rrfK', 'denseWeight', 'bm25Weight'] as const) {
    const value = settings[name];
    if (value !== undefined && !(value >= 0 && value <= MAX_HYBRID_NUMBER)) {
      return `hybrid.${name} is ${String(value)}; expected a number from 0 to ${MAX_HYBRID_NUMBER}.`;
    }
  }
  if (depth !== undefined && !(Number.isSafeInteger(depth) && depth >= 1)) {
    return `hybrid.depth is ${String(depth)}; expected a whole number of at least 1.`;
  }
  if (denseWeight === 0 && bm25Weight === 0) {
    return 'hybrid.denseWeight and hybrid.bm25Weight are 0; expected at least one larger number.';
  }
  return undefined;
}

/** Equal keys have equal settings. */
export function hybridKey({ fusion, rrfK, denseWeight, bm25Weight, depth }: HybridSettings): string {
  return [fusion, rrfK, denseWeight, bm25Weight, depth].join();
}
