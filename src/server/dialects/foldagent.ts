import { Type } from 'typebox';
import { totalMs } from '../../search/timings.ts';
import { cutWords, type WholeDocument } from '../documents/whole-document.ts';
import { defineDialect } from './dialect.ts';
import { count, nullable, Query, refuse, Score } from './parts/common-fields.ts';
import { documentPlan, openingPlan } from './parts/document-plan.ts';
import { idText, list, member, text, textPassage } from './parts/reply-fields.ts';
import { pieces, separated } from './parts/search-plan.ts';

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
  request: Type.Object({ query: Query, k: count(20, 'Documents') }),
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
    hit: ['id', 'title', 'excerpt'],
    request: ([query], k) => ({ query, k }),
    lists: (reply) => [
      (Array.isArray(reply) ? reply : list(reply, 'results')).map((hit) => ({
        ...textPassage(text(member(hit, 'text')), member(hit, 'score')),
        id: idText(member(hit, 'docid')),
      })),
    ],
  },
  plan({ query, k }, limits) {
    return documentPlan({ queries: [query], k, kField: 'k', limits }, ({ found, timings }) => {
      const hits = separated(found, ({ document, hit }) =>
        JSON.stringify({ ...cutDocument(document, HIT_WORDS), score: hit.score }),
      );
      return pieces`{"results":[${hits}],"took_ms":${totalMs(timings)}}`;
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
  plan({ docid, url }, limits) {
    const name = docid === null ? (url === null ? refuse(['docid'], 'Expected docid or url') : { url }) : { id: docid };
    return openingPlan(name, limits, (document, timings) => {
      const result = document === undefined ? { docid, url, text: unknown(name) } : cutDocument(document, OPEN_WORDS);
      return { results: [result], took_ms: totalMs(timings) };
    });
  },
});

function cutDocument({ id, url, text, isCut }: WholeDocument, words: number) {
  const cut = cutWords(text, words);
  return { docid: id, url, text: cut.isCut || isCut ? cut.text + CUT_NOTICE : cut.text };
}

function unknown(name: { readonly id: string } | { readonly url: string }): string {
  return 'id' in name
    ? `No document has the id ${JSON.stringify(name.id.slice(0, 200))}. Open a docid of the search results.`
    : `No document has the URL ${JSON.stringify(name.url.slice(0, 200))}. Open a URL of the search results.`;
}
