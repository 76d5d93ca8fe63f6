import { TimeSlice } from '../../../base/time-slice.ts';
import type { Hit } from '../../../search/calls/query-outcome.ts';
import { retrieveDeepening } from '../../../search/deepening.ts';
import type { RetrieverInfo } from '../../../search/retriever-info.ts';
import { addTimings, NO_TIMINGS, type StageTimings } from '../../../search/timings.ts';
import { documentsOfPassages, type WholeDocument } from '../../documents/whole-document.ts';
import { type Selected, select } from '../../native-search/fusion.ts';
import { maxDepth, selectedOutcomes } from '../../native-search/selection.ts';
import type { Plan } from '../dialect.ts';
import { hitsOf, rankingFor, refuseTooLargeK, type SearchPart } from './search-plan.ts';

/** Most passages of a document in a list of hits. They are read for their beginning only. */
const PASSAGES_OF_HIT = 64;

export interface FoundDocument {
  readonly document: WholeDocument;
  /** Its best passage. */
  readonly hit: Hit;
}

export interface DocumentSearchResult {
  /** Distinct documents, by their best passage, best first. At most k. */
  readonly found: readonly FoundDocument[];
  readonly timings: StageTimings;
  readonly info: RetrieverInfo;
}

/**
 * The plan of a search for documents: as many distinct documents as requested, each with its best passage and the text of its first
 * passages. The search goes deeper until it has found enough documents, as `/v1/search` does.
 */
export function documentPlan(
  { queries: [query], k, kField, limits }: SearchPart,
  reply: (result: DocumentSearchResult) => Iterable<string>,
): Plan {
  refuseTooLargeK(k, kField, 1, limits);
  const selection = { k, minScore: null, excluded: new Set<string>(), deduplicate: 'document' } as const;
  const maxK = maxDepth(1, k, limits);
  const firstK = Math.min(maxK, Math.max(10, 2 * k, limits.rerank?.depth ?? 0));
  const call = { queries: [query!], ...rankingFor(limits, firstK) };
  return {
    queries: 1,
    k,
    async run(retriever, signal) {
      const { info } = retriever;
      if (k === 0)
        return {
          timings: NO_TIMINGS,
          search: null,
          truncated: 0,
          pieces: reply({ found: [], timings: NO_TIMINGS, info }),
        };
      const slice = new TimeSlice(signal);
      let lists: readonly Selected[] = [];
      const { outcomes, timings: searchTimings } = await retrieveDeepening(
        retriever,
        { ...call, k: firstK, signal },
        {
          maxK,
          async needMore(found) {
            lists = await select(found, selection, { length: k, acrossLists: true }, slice);
            return lists[0]!.full ? [] : [0];
          },
        },
      );
      hitsOf(outcomes[0]!, 0);
      const hits = lists[0]!.candidates.map(({ hit }) => hit);
      const whole = await documentsOfPassages(retriever, hits, { limit: PASSAGES_OF_HIT, signal, slice });
      const timings = addTimings(searchTimings, whole.timings);
      const found = hits.map((hit, i) => ({ hit, document: whole.documents[i]! }));
      const truncated = outcomes.filter((outcome) => outcome.ok && outcome.truncated).length;
      const { deduplicate } = selection;
      const search = { ...call, k, selection: { deduplicate }, outcomes: selectedOutcomes(outcomes, lists, k) };
      return { timings, search, truncated, pieces: reply({ found, timings, info }) };
    },
  };
}
