import { Type } from 'typebox';
import { TimeSlice } from '../../base/time-slice.ts';
import { totalMs } from '../../search/timings.ts';
import { cutWords } from '../documents/cut-text.ts';
import { openingOfDocument } from '../documents/openings.ts';
import type { WholeDocument } from '../documents/whole-document.ts';
import { documentsByName } from '../documents/whole-document.ts';
import { defineDialect } from './dialect.ts';
import { nullable, Query, Score } from './parts/common-fields.ts';
import { documentPlan } from './parts/document-plan.ts';
import { refuse } from './parts/questions.ts';
import { idText, list, member, text, textPassage } from './parts/reply-fields.ts';
import { separated } from './parts/search-plan.ts';

/** Words of a document in a list of hits, and of one that is opened. */
const HIT_WORDS = 1_000;
const OPEN_WORDS = 15_000;
const CUT_NOTICE = '\n[Document is truncated.]';

const DocId = Type.String({ description: 'The id of the document, or else of its first passage.' });
const Url = Type.String({ description: 'The column url, or trawl://INDEX/ID.' });
const Took = Type.Number({ description: 'Milliseconds.' });

/** FoldAgent: distinct documents, each with its first words. The original appends its notice to texts of exactly that length too. */
export const foldAgent = defineDialect({
  name: 'foldagent',
  path: '/search',
  summary: 'Whole documents for a query with k (FoldAgent)',
  projects: [{ name: 'FoldAgent', setting: '`LOCAL_SEARCH_URL=http://HOST:8000`' }],
  // The client's limit is 300 s; it gives up after three refusals in two seconds.
  holdMs: 290_000,
  request: Type.Object({
    query: Query,
    k: Type.Integer({ minimum: 0, default: 20, description: 'Documents; 0 returns none.' }),
  }),
  reply: Type.Object({
    results: Type.Array(
      Type.Object({
        docid: DocId,
        url: Url,
        text: Type.String({ description: `The first ${HIT_WORDS} words of the document.` }),
        score: Score,
      }),
      { description: 'Distinct documents, by their best passage, best first.' },
    ),
    took_ms: Took,
  }),
  example: { query: 'who designed the Brooklyn Bridge', k: 3 },
  keys: ['k'],
  client: {
    batch: false,
    ids: true,
    texts: 'excerpt',
    request: ([query], k) => ({ query, k }),
    lists: (reply) => [
      (Array.isArray(reply) ? reply : list(reply, 'results')).map((hit) => ({
        ...textPassage(text(member(hit, 'text')), member(hit, 'score')),
        id: idText(member(hit, 'docid')),
      })),
    ],
  },
  plan({ query, k }, limits) {
    return documentPlan({ queries: [query], k, kField: 'k', limits }, function* ({ found, timings }) {
      yield '{"results":[';
      yield* separated(found, ({ document, hit }) =>
        JSON.stringify({ ...shown(document, HIT_WORDS), score: hit.score }),
      );
      yield `],"took_ms":${totalMs(timings)}}`;
    });
  },
});

/** FoldAgent's page: one document by id or URL. An unknown one is a text for the model, as in the original. */
export const foldAgentOpen = defineDialect({
  name: 'foldagent-open',
  path: '/open',
  summary: 'A whole document by id or URL (FoldAgent)',
  section: 'foldagent',
  holdMs: 290_000,
  request: Type.Object({
    docid: nullable(Type.String(), 'Takes precedence over url.'),
    url: nullable(Type.String(), 'As in a hit.'),
  }),
  reply: Type.Object({
    results: Type.Array(
      Type.Object({
        docid: Type.Union([DocId, Type.Null()]),
        url: Type.Union([Url, Type.Null()]),
        text: Type.String({
          description: `The first ${OPEN_WORDS} words of the document, or a sentence if it is unknown.`,
        }),
      }),
      { description: 'One.' },
    ),
    took_ms: Took,
  }),
  example: { docid: 's-0001', url: null },
  client: null,
  plan({ docid, url }, limits) {
    const name = docid === null ? (url === null ? refuse(['docid'], 'Expected docid or url') : { url }) : { id: docid };
    return {
      queries: 1,
      k: 1,
      async run(retriever, signal) {
        const options = { limit: limits.maxK, signal, slice: new TimeSlice(signal) };
        const { documents, timings } = await documentsByName(retriever, [name], options);
        const result =
          documents[0] === undefined ? { docid, url, text: unknown(name) } : shown(documents[0], OPEN_WORDS);
        const pieces = [JSON.stringify({ results: [result], took_ms: totalMs(timings) })];
        const openings = [openingOfDocument(name.id ?? name.url, documents[0])];
        return { timings, search: null, openings, truncated: 0, pieces };
      },
    };
  },
});

function shown({ id, url, text, isCut }: WholeDocument, words: number): { docid: string; url: string; text: string } {
  const cut = cutWords(text, words);
  return { docid: id, url, text: cut.isCut || isCut ? cut.text + CUT_NOTICE : cut.text };
}

function unknown(name: { readonly id: string } | { readonly url: string }): string {
  return 'id' in name
    ? `No document has the id ${JSON.stringify(name.id.slice(0, 200))}. Open a docid of the search results.`
    : `No document has the URL ${JSON.stringify(name.url.slice(0, 200))}. Open a URL of the search results.`;
}
