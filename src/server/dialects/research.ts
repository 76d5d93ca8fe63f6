import { type TSchema, Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Hit } from '../../search/calls/query-outcome.ts';
import { defineDialect, type ServerPassage } from './dialect.ts';
import { Contents, count, Queries, Query, Score } from './parts/common-fields.ts';
import { list, rowPassage, scoreOf } from './parts/reply-fields.ts';
import { hitLists, pieces, scoreHit, searchPlan } from './parts/search-plan.ts';

const TopN = count(10);
const ReturnScore = Type.Boolean({ default: false, description: 'Whether the reply is [documents, scores].' });
const Documents = Type.Array(Type.Object({ id: Type.String(), contents: Contents }));
const Scores = Type.Array(Score);

/**
 * ReSearch and ReCall: a list of `{id, contents}` with ids as strings and without other columns; with `return_score`, an array of
 * that list and a list of scores. The original server uses only the first 64 characters of a query; Trawl uses the whole query.
 */
export const research = defineDialect({
  name: 'research',
  path: '/search',
  summary: 'A single query (ReSearch, ReCall)',
  projects: [
    { name: 'ReSearch, ReCall', setting: '`search_url=http://HOST:8000`, without a path' },
    { name: "FlashRAG's RemoteRetriever" },
  ],
  // The client has no time limit, and gives up after five refusals in five seconds.
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({ query: Query, top_n: TopN, return_score: ReturnScore }),
  reply: Type.Union([Documents, pair(Documents, Scores)]),
  example: { query: 'who designed the Brooklyn Bridge', top_n: 3 },
  keys: ['top_n', 'return_score'],
  claims: () => true,
  statuses: { EMPTY_QUERY: 400 },
  errorBody: blankQueryBody,
  client: {
    batch: false,
    hit: ['id', 'contents'],
    request: ([query], k) => ({ query, top_n: k, return_score: true }),
    lists(reply) {
      const [documents, scores] = list(reply);
      return [withScores(documents, scores)];
    },
  },
  plan({ query, top_n, return_score }, limits) {
    if (query.trim() === '') throw new TrawlError('EMPTY_QUERY', BLANK);
    return searchPlan({ queries: [query], k: top_n, kField: 'top_n', limits }, ({ outcomes }) => {
      const documents = hitLists(outcomes, documentJson);
      return return_score ? pieces`[${documents},${hitLists(outcomes, scoreHit)}]` : documents;
    });
  },
});

export const researchBatch = defineDialect({
  name: 'research-batch',
  path: '/batch_search',
  summary: 'A batch of queries (ReSearch, ReCall)',
  section: 'research',
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({ query: Queries, top_n: TopN, return_score: ReturnScore }),
  reply: Type.Union([Type.Array(Documents), pair(Type.Array(Documents), Type.Array(Scores))]),
  example: { query: ['who designed the Brooklyn Bridge', 'capital of Finland'], top_n: 3 },
  client: {
    batch: true,
    hit: ['id', 'contents'],
    request: (queries, k) => ({ query: queries, top_n: k, return_score: true }),
    lists(reply) {
      const [documents, scores] = list(reply);
      return list(documents).map((hits, i) => withScores(hits, list(scores)[i]));
    },
  },
  plan({ query, top_n, return_score }, limits) {
    return searchPlan({ queries: query, k: top_n, kField: 'top_n', limits }, ({ outcomes }) => {
      const documents = hitLists(outcomes, documentJson);
      return return_score ? pieces`[[${documents}],[${hitLists(outcomes, scoreHit)}]]` : pieces`[${documents}]`;
    });
  },
});

/** An array of two values, in JSON Schema 2020-12. */
function pair(first: TSchema, second: TSchema): TSchema {
  return Type.Unsafe({ type: 'array', prefixItems: [first, second], minItems: 2, maxItems: 2 });
}

const BLANK = 'Query content cannot be empty';

/** The original server has a sentence as `detail` only for this error. */
function blankQueryBody(error: TrawlError): string | undefined {
  if (error.code !== 'EMPTY_QUERY') return undefined;
  return JSON.stringify({ detail: BLANK, error: { code: error.code, message: error.message } });
}

function documentJson({ row, document }: Hit): string {
  const { id, contents } = documentFields(document);
  return JSON.stringify({ id: id ?? String(row), contents });
}

function withScores(hits: unknown, scores: unknown): ServerPassage[] {
  const all = list(scores);
  return list(hits).map((hit, rank) => ({ ...rowPassage(hit), score: scoreOf(all[rank]) }));
}
