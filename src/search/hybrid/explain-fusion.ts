import type { Hit, QueryAnswer } from '../calls/query-outcome.ts';
import { type HybridPlaces, type ListRanges, partOf } from './hybrid-fusion.ts';
import type { HybridSettings } from './hybrid-settings.ts';

/** How the lists of a hybrid search were fused: its settings, the formula in words, and the scores between which lists are scaled. */
export interface ExplainedFusion extends HybridSettings {
  readonly formula: string;
  readonly lists: readonly (ListRanges & { readonly index?: string })[];
}

export function explainedFusion(settings: HybridSettings, { ranges = [] }: QueryAnswer): ExplainedFusion {
  const { fusion, rrfK, denseWeight, bm25Weight, depth } = settings;
  const part = (side: string, weight: number): string =>
    fusion === 'rrf' ? `${weight} / (${rrfK} + ${side} rank)` : `${weight} · (${side} score − floor) / (best − floor)`;
  const formula = `${part('dense', denseWeight)} + ${part('bm25', bm25Weight)}`;
  return { fusion, rrfK, denseWeight, bm25Weight, depth, formula, lists: ranges };
}

/** The places of a hit of hybrid search, each with `part`: what the list adds to the score. Undefined in other modes. */
export function explainedPlaces(
  { places, source }: Hit,
  settings: HybridSettings | undefined,
  { ranges = [] }: QueryAnswer,
): HybridPlaces | undefined {
  const own = ranges.find(({ index }) => index === source?.index);
  if (places === undefined || own === undefined || settings === undefined) return places;
  const withPart = (side: keyof HybridPlaces) => {
    const place = places[side];
    return place === null ? null : { ...place, part: partOf(place, side, own, settings) };
  };
  return { dense: withPart('dense'), bm25: withPart('bm25') };
}
