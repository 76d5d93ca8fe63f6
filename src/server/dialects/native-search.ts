import { TimeSlice } from '../../base/time-slice.ts';
import { retrieveDeepening } from '../../search/deepening.ts';
import { explainedFusion, explainedPlaces } from '../../search/hybrid/explain-fusion.ts';
import { addTimings } from '../../search/timings.ts';
import { wordsOf } from '../excerpt.ts';
import { explainHits, explainNeedsBm25, type FoundHit, refuseTooManyExplained } from '../native-search/explain.ts';
import { type Candidate, fuse, type Selected, select } from '../native-search/fusion.ts';
import { hitJson } from '../native-search/hit.ts';
import { refuseTooDeep } from '../native-search/hybrid-field.ts';
import { checkRecordField } from '../native-search/record-field.ts';
import { replyPieces, SearchReply } from '../native-search/reply.ts';
import { SearchRequest } from '../native-search/request.ts';
import { refuseTooDeepReranking } from '../native-search/rerank-field.ts';
import { searchCall } from '../native-search/search-call.ts';
import { maxDepth, recordedSelection, selectedOutcomes, selectionOf, wantedHits } from '../native-search/selection.ts';
import { defineDialect } from './dialect.ts';
import { idText, list, member, rowPassage } from './parts/reply-fields.ts';
import { refuseTooLargeK } from './parts/search-plan.ts';

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
    ids: true,
    texts: 'apart',
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
        const considered = Math.min(wanted + selection.excluded.size, maxK);
        const call = searchCall(request, limits, retriever.info, considered);
        const chosen = recordedSelection(selection, request);
        // All hits that are reranked are asked for, if some are left out: this then rarely needs another search.
        const firstK = chosen === undefined ? k : Math.min(Math.max(considered, call.rerank?.depth ?? 0), maxK);
        const { mode, bm25, hybrid } = call;
        if (request.explain && mode === 'dense') throw explainNeedsBm25(mode);
        const separate = request.fuse === 'none';
        let lists: readonly Selected[] = [];
        const { outcomes, timings: searchTimings } = await retrieveDeepening(
          retriever,
          { ...call, k: firstK, signal },
          {
            maxK,
            // A list is short when exclusion and deduplication left too few hits.
            async needMore(found) {
              lists = await select(found, selection, { length: separate ? k : wanted, acrossLists: separate }, slice);
              return lists.flatMap(({ full }, i) => (full ? [] : [i]));
            },
          },
        );
        const fused = request.fuse === 'none' ? undefined : await fuse(lists, request.fuse, selection, slice);
        const found: FoundHit[] =
          fused === undefined
            ? lists.flatMap(({ candidates }, query) => candidates.map(({ hit }) => ({ query, hit })))
            : fused.map(({ best, query }) => ({ query, hit: best.hit }));
        const explained = request.explain
          ? await explainHits(retriever, found, {
              queries: call.queries,
              template: call.template,
              signal,
              bm25,
            })
          : undefined;
        const timings = explained === undefined ? searchTimings : addTimings(searchTimings, explained.timings);
        const words =
          maxChars === null ? [] : queries.map((query) => wordsOf(typeof query === 'string' ? query : query.query));
        const toJson = (found: Candidate, query: number): string => {
          const { hit } = found;
          const outcome = outcomes[query]!;
          const terms = explained?.terms.get(hit);
          const places = request.explain && outcome.ok ? explainedPlaces(hit, hybrid, outcome) : hit.places;
          return hitJson(found, { words: words[query], maxChars, documents, terms, places });
        };
        return {
          timings,
          search: {
            ...call,
            k,
            selection: chosen,
            outcomes: selectedOutcomes(outcomes, lists, k),
          },
          truncated: outcomes.filter((outcome) => outcome.ok && outcome.truncated).length,
          failures: outcomes.flatMap((outcome) =>
            outcome.ok ? (outcome.failedIndexes ?? []).map(({ error }) => error) : [outcome.error],
          ),
          pieces: replyPieces(retriever, {
            mode,
            outcomes,
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
