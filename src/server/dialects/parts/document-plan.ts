import { TrawlError } from '../../../base/errors.ts';
import { TimeSlice } from '../../../base/time-slice.ts';
import type { Hit } from '../../../search/calls/query-outcome.ts';
import type { Retriever } from '../../../search/retriever.ts';
import { addTimings, NO_TIMINGS, type StageTimings } from '../../../search/timings.ts';
import {
  documentsByName,
  documentsOfPassages,
  openingOfDocument,
  type WholeDocument,
} from '../../documents/whole-document.ts';
import { maxDepth, selectedOutcomes } from '../../native-search/request.ts';
import type { RequestLimits } from '../../server-config.ts';
import type { Plan } from '../dialect.ts';
import {
  hitsOf,
  rankingFor,
  refuseTooLargeK,
  type SearchPart,
  searchSelected,
  truncatedQueries,
} from './search-plan.ts';

/** Most passages of a document in a list of hits. They are read for their beginning only. */
const PASSAGES_OF_HIT = 64;

export interface FoundDocument {
  readonly document: WholeDocument;
  /** Its best passage. */
  readonly hit: Hit;
}

/**
 * The plan of a search for documents: as many distinct documents as requested, each with its best passage and the text of its first
 * passages. The search goes deeper until it has found enough documents, as `/v1/search` does.
 *
 * @param reply gets the documents by their best passage, best first.
 */
export function documentPlan(
  { queries: [query], k, kField, limits }: SearchPart,
  reply: (result: { readonly found: readonly FoundDocument[]; readonly timings: StageTimings }) => Iterable<string>,
): Plan {
  refuseTooLargeK(k, kField, 1, limits);
  const selection = { k, minScore: null, deduplicate: 'document' } as const;
  const maxK = maxDepth(1, k, limits);
  const firstK = Math.min(maxK, Math.max(10, 2 * k, limits.rerank?.depth ?? 0));
  const call = { queries: [query!], ...rankingFor(limits, firstK) };
  return {
    queries: 1,
    k,
    async run(retriever, signal) {
      if (k === 0) return { timings: NO_TIMINGS, pieces: reply({ found: [], timings: NO_TIMINGS }) };
      const slice = new TimeSlice(signal);
      const wanted = { selection, maxK, length: k, acrossLists: true, slice };
      const searched = await searchSelected(retriever, { ...call, k: firstK, signal }, wanted);
      const { outcomes, lists } = searched;
      hitsOf(outcomes[0]!, 0);
      const hits = lists[0]!.candidates.map(({ hit }) => hit);
      const whole = await documentsOfPassages(retriever, hits, { limit: PASSAGES_OF_HIT, signal, slice });
      const timings = addTimings(searched.timings, whole.timings);
      const found = hits.map((hit, i) => ({ hit, document: whole.documents[i]! }));
      const { deduplicate } = selection;
      const search = { ...call, k, selection: { deduplicate }, outcomes: selectedOutcomes(outcomes, lists, k) };
      return { timings, search, truncated: truncatedQueries(outcomes), pieces: reply({ found, timings }) };
    },
  };
}

type DocumentName = { readonly id: string } | { readonly url: string };

/**
 * The plan of a request that opens a document by id or URL.
 *
 * @param reply the object of the reply; `document` is undefined if nothing has that name.
 */
export function openingPlan(
  name: DocumentName,
  limits: RequestLimits,
  reply: (document: WholeDocument | undefined, timings: StageTimings) => object,
): Plan {
  return {
    queries: 1,
    k: 1,
    async run(retriever, signal) {
      const { document, opening, timings } = await openDocument(retriever, name, limits, signal);
      return { timings, openings: [opening], pieces: [JSON.stringify(reply(document, timings))] };
    },
  };
}

/**
 * The plan of a request that opens a document by a link of a hit.
 *
 * @param reply the text of the reply. An unknown URL is NOT_FOUND.
 */
export function linkedPagePlan(url: string, limits: RequestLimits, reply: (document: WholeDocument) => string): Plan {
  return {
    queries: 1,
    k: 1,
    async run(retriever, signal) {
      const { document, opening, timings } = await openDocument(retriever, { url }, limits, signal);
      if (document !== undefined) return { timings, openings: [opening], pieces: [reply(document)] };
      const shown = JSON.stringify(url.slice(0, 200));
      throw new TrawlError('NOT_FOUND', `No document has the URL ${shown}. Open a link of the search results.`);
    },
  };
}

export async function openDocument(
  retriever: Retriever,
  name: DocumentName,
  { maxK }: RequestLimits,
  signal: AbortSignal,
) {
  const { documents, timings } = await documentsByName(retriever, [name], {
    limit: maxK,
    signal,
    slice: new TimeSlice(signal),
  });
  const [document] = documents;
  return { document, opening: openingOfDocument('id' in name ? name.id : name.url, document), timings };
}
