import { type Static, Type } from 'typebox';
import { SEARCH_MODES } from '../../search/search-mode.ts';
import { nullable } from '../dialects/parts/common-fields.ts';
import { Template, Truncate } from '../dialects/parts/questions.ts';
import { Bm25Field } from './bm25-field.ts';
import { FilterField } from './filter-field.ts';
import { DEDUPLICATIONS, FUSIONS } from './fusion.ts';
import { HybridField } from './hybrid-field.ts';
import { RecordField } from './record-field.ts';
import { RerankField } from './rerank-field.ts';

/** The body of a request to /v1/search. */
export const SearchRequest = Type.Object(
  {
    queries: Type.Array(
      Type.Union([
        Type.String(),
        Type.Object(
          {
            question: nullable(Type.String(), 'The question that the query helps to answer.'),
            history: nullable(Type.Array(Type.String()), "The agent's earlier queries, oldest first."),
            query: Type.String(),
          },
          { additionalProperties: false },
        ),
      ]),
      { description: 'Texts, or sub-queries with their question and history.' },
    ),
    index: nullable(
      Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })]),
      'Name of the index or of a group of indexes, or a list of them to search as one. Absent: the index in the URL, or the default.',
    ),
    allowPartial: Type.Boolean({
      default: false,
      description: 'Whether a search of several indexes is answered without those that fail. The reply names them.',
    }),
    k: nullable(Type.Integer({ minimum: 1 }), "Hits per list. Absent: the server's default."),
    mode: nullable(
      Type.Enum([...SEARCH_MODES]),
      'How passages are ranked: dense (by their vectors), bm25 (by their words) or hybrid (by both lists, fused). Absent: the default of the server, or else of the index.',
    ),
    bm25: nullable(Bm25Field, 'Parameters of bm25, also in hybrid. Absent: the parameters of the index.'),
    filter: nullable(
      FilterField,
      'The passages that may be found, by the columns of the corpus: an expression such as "source = \'wiki\' and date >= 2020-01-01", or its JSON form (docs/filters.md). The search is exact among them. Absent: all passages.',
    ),
    hybrid: nullable(HybridField, 'How hybrid fuses the two lists. Absent: the settings of the server.'),
    rerank: RerankField,
    minScore: nullable(
      Type.Number(),
      'Leaves out hits with a lower score: with hybrid the fused score, with reranking that of the reranker.',
    ),
    exclude: Type.Array(Type.Union([Type.String(), Type.Integer()]), {
      default: [],
      description: 'Ids of passages to leave out. Integers beyond 2^53 as strings.',
    }),
    fuse: Type.Enum([...FUSIONS], {
      default: 'none',
      description:
        'How the lists of the queries are merged into one: none (one list per query), rrf (reciprocal rank fusion) or max (the best score of each passage).',
    }),
    deduplicate: nullable(
      Type.Enum([...DEDUPLICATIONS]),
      'Which hits appear only once in the reply: none (all hits are kept), passage (the same passage), title (passages with the same title) or document (passages of the same document: the best passage of each is kept). Absent: none if fuse is none, else passage.',
    ),
    candidates: nullable(
      Type.Integer({ minimum: 1 }),
      'Hits per query that fusion or deduplication considers, excluded ones not counted; at least k. Absent: the larger of 10 and 2 k.',
    ),
    maxChars: nullable(Type.Integer({ minimum: 20 }), 'Longest text of a hit. Absent: the whole passage.'),
    documents: Type.Boolean({
      default: false,
      description: 'Whether each hit has the whole corpus row (JSON) as document.',
    }),
    explain: Type.Boolean({
      default: false,
      description:
        'Whether each hit has the terms of its BM25 score; with mode hybrid also the part of each list, and each result the formula. Only with mode bm25 or hybrid.',
    }),
    template: Template,
    truncate: Truncate,
    record: RecordField,
  },
  { additionalProperties: false },
);
export type SearchRequest = Static<typeof SearchRequest>;
