import { TimeSlice } from '../../base/time-slice.ts';
import { explainedFusion, explainedPlaces } from '../../search/hybrid/hybrid-search.ts';
import { addTimings } from '../../search/timings.ts';
import { wordsOf } from '../excerpt.ts';
import { type Candidate, fuse } from '../native-search/fusion.ts';
import {
  explainHits,
  explainNeedsBm25,
  type FoundHit,
  hitJson,
  refuseTooManyExplained,
  replyPieces,
  SearchReply,
} from '../native-search/reply.ts';
import {
  checkRecordField,
  maxDepth,
  recordedSelection,
  refuseTooDeep,
  refuseTooDeepReranking,
  SearchRequest,
  searchCall,
  selectedOutcomes,
  selectionOf,
  wantedHits,
} from '../native-search/request.ts';
import { defineDialect } from './dialect.ts';
import { idText, list, member, rowPassage } from './parts/reply-fields.ts';
import { refuseTooLargeK, searchSelected, truncatedQueries } from './parts/search-plan.ts';

/**
 * Trawl's own search, for agents: queries with their question, exclusion of passages already seen, fusion of several queries, and
 * excerpts. Unlike the other dialects, it refuses unknown fields. `src/server/native-search/` has its parts.
 */
export const nativeSearch = defineDialect({
  name: 'native',
  path: '/v1/search',
  summary: 'Search with fusion, exclusion and excerpts',
  // A mode, weights or an order that the index does not have.
  statuses: { NOT_SUPPORTED: 501 },
  request: SearchRequest,
  reply: SearchReply,
  example: {
    queries: [
      { question: 'Where was the designer of the Brooklyn Bridge born?', query: 'designer of the Brooklyn Bridge' },
      'John A. Roebling birthplace',
    ],
    k: 3,
    fuse: 'rrf',
    exclude: ['s-0003'],
    maxChars: 200,
  },
  client: {
    batch: true,
    hit: ['id', 'title', 'text'],
    // The `text` of a hit may begin with its title or not: only the row says which.
    request: (queries, k) => ({ queries, k, documents: true }),
    lists: (reply) =>
      list(reply, 'results').map((result) => {
        if (member(result, 'ok') !== true) return { failed: String(member(member(result, 'error'), 'code')) };
        return list(result, 'hits').map((hit) => ({
          ...rowPassage(member(hit, 'document'), member(hit, 'score')),
          id: idText(member(hit, 'id')),
        }));
      }),
  },
  plan(request, limits) {
    const { queries, maxChars, documents } = request;
    const selection = selectionOf(request, limits);
    const { k } = selection;
    refuseTooLargeK(k, 'k', queries.length, limits);
    refuseTooDeep(request.hybrid, limits);
    refuseTooDeepReranking(request.rerank, queries.length, limits);
    checkRecordField(request.record, queries.length);
    if (request.explain) refuseTooManyExplained(queries.length, k);
    return {
      queries: queries.length,
      k,
      index: request.index,
      async run(retriever, signal) {
        const slice = new TimeSlice(signal);
        const wanted = wantedHits(selection, request);
        const maxK = maxDepth(queries.length, k, limits);
        const considered = Math.min(wanted, maxK);
        const call = searchCall(request, limits, retriever.info, considered);
        const chosen = recordedSelection(selection, request);
        // All hits that are reranked are asked for, if some are left out: this then rarely needs another search.
        const firstK = chosen === undefined ? k : Math.min(Math.max(considered, call.rerank?.depth ?? 0), maxK);
        const { mode, bm25, hybrid } = call;
        if (request.explain && mode === 'dense') throw explainNeedsBm25(mode);
        const isSeparate = request.fuse === 'none';
        const hits = { selection, maxK, length: isSeparate ? k : wanted, acrossLists: isSeparate, slice };
        const searched = await searchSelected(retriever, { ...call, k: firstK, signal }, hits);
        const { outcomes, lists } = searched;
        const fused = request.fuse === 'none' ? undefined : await fuse(lists, request.fuse, selection, slice);
        const found: FoundHit[] =
          fused === undefined
            ? lists.flatMap(({ candidates }, query) => candidates.map(({ hit }) => ({ query, hit })))
            : fused.map(({ best, query }) => ({ query, hit: best.hit }));
        const { queries: inputs, template } = call;
        const explained = request.explain
          ? await explainHits(retriever, found, { queries: inputs, template, signal, bm25 })
          : undefined;
        const timings = explained === undefined ? searched.timings : addTimings(searched.timings, explained.timings);
        const words =
          maxChars === null ? [] : queries.map((query) => wordsOf(typeof query === 'string' ? query : query.query));
        const selected = selectedOutcomes(outcomes, lists, k);
        const toJson = (found: Candidate, query: number): string => {
          const { hit } = found;
          const outcome = outcomes[query]!;
          const terms = explained?.terms.get(hit);
          const places = request.explain && outcome.ok ? explainedPlaces(hit, hybrid, outcome) : hit.places;
          return hitJson(found, { words: words[query], maxChars, documents, terms, places });
        };
        return {
          timings,
          search: { ...call, k, selection: chosen, outcomes: selected },
          truncated: truncatedQueries(outcomes),
          failures: outcomes.flatMap((outcome) =>
            outcome.ok ? (outcome.failedIndexes ?? []).map(({ error }) => error) : [outcome.error],
          ),
          pieces: replyPieces(retriever, {
            mode,
            k,
            outcomes: selected,
            hits: fused === undefined ? { lists } : { fused },
            timings,
            toJson,
            explain:
              request.explain && hybrid !== undefined ? (outcome) => explainedFusion(hybrid, outcome) : undefined,
          }),
        };
      },
    };
  },
});
