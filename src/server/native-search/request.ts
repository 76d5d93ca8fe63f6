import { type Static, type TSchema, Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { defined } from '../../base/objects.ts';
import type { EncoderInput, TruncateSide } from '../../encoder/text-encoder.ts';
import type { Filter } from '../../engine/filter/filter.ts';
import { filterOf } from '../../engine/filter/filter-json.ts';
import { BM25_PROFILES, type Bm25Profile, type Bm25Ranking, DEFAULT_BM25 } from '../../engine/lexical/bm25.ts';
import type { QueryOutcome } from '../../search/calls/query-outcome.ts';
import { DEFAULT_RERANK_DEPTH, type RerankSettings, type RetrieveCall } from '../../search/calls/retrieve-call.ts';
import { HYBRID_FUSIONS, type HybridOptions, MAX_HYBRID_NUMBER } from '../../search/hybrid/hybrid-settings.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { BM25_ORDERS, SEARCH_MODES, type SearchMode } from '../../search/search-mode.ts';
import { inputWith, nullable, refuse, Template, Truncate } from '../dialects/parts/common-fields.ts';
import { rankingFor, refuseTooLargeK, tooLarge } from '../dialects/parts/search-plan.ts';
import { Issues } from '../errors/request-error.ts';
import { readBody } from '../recording/read-origins.ts';
import type { RecordedSelection } from '../recording/recorded-search.ts';
import type { RequestLimits } from '../server-config.ts';
import { DEDUPLICATIONS, FUSIONS, type Selected, type Selection } from './fusion.ts';
import { ExcludedIds } from './named-passages.ts';

const Weight = Type.Number({ minimum: 0, maximum: 1_000_000 });

export const Bm25Field = Type.Object(
  {
    k1: Type.Optional(Weight),
    b: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    profile: Type.Optional(
      Type.Enum(Object.keys(BM25_PROFILES) as Bm25Profile[], {
        description:
          "The parameters of another system: lucene (Lucene's formula with the defaults of Anserini and Pyserini, k1 0.9 and b 0.4; Lucene's own are 1.2 and 0.75) or elasticsearch (k1 1.2, b 0.75, scores multiplied by k1 + 1). k1 and b override the profile.",
      }),
    ),
    order: Type.Optional(
      Type.Enum([...BM25_ORDERS], {
        description:
          "How hits with equal scores are ordered: row (by row; the scores are exact) or pyserini (by id as text, and with Pyserini's rounded scores). Absent: the order of the server.",
      }),
    ),
    weights: Type.Optional(
      Type.Object(
        { title: Type.Optional(Weight), text: Type.Optional(Weight) },
        {
          additionalProperties: false,
          description:
            'Weights of the fields, for an index with title and text as two fields: the best field of a passage gives its score. 0: the field is not searched. Absent: 1.',
        },
      ),
    ),
    tieBreaker: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description:
          'Share of the score in the other field that is added, for an index with title and text as two fields. Absent: 0; 1 adds both scores.',
      }),
    ),
  },
  { additionalProperties: false },
);

/** The BM25 parameters of a request; undefined: the parameters of the index. */
export function bm25Ranking(given: Static<typeof Bm25Field> | null, { bm25 }: RetrieverInfo): Bm25Ranking | undefined {
  if (given === null) return undefined;
  const { profile, order: _, ...values } = given;
  const ofIndex = bm25 === null ? DEFAULT_BM25 : { ...DEFAULT_BM25, k1: bm25.k1, b: bm25.b };
  return { ...(profile === undefined ? ofIndex : BM25_PROFILES[profile]), ...values };
}

/** The field `filter` of a request. Its depth, which JSON Schema could only say with references, is checked by `filterOf`. */
const FilterField = Type.Unsafe<string | Filter>({
  oneOf: [{ type: 'string' }, { type: 'object', additionalProperties: true }],
  examples: ["source in ('news', 'wiki') and date >= 2020-01-01"],
});

/** @throws RequestError INVALID_REQUEST with the place of the fault. */
function requestFilter(json: string | Filter | null): Filter | undefined {
  if (json === null) return undefined;
  try {
    return filterOf(json);
  } catch (error) {
    if (!(error instanceof TrawlError)) throw error;
    return refuse(['filter'], error.message);
  }
}

const HybridField = Type.Object(
  {
    fusion: Type.Optional(
      Type.Enum([...HYBRID_FUSIONS], {
        description:
          'rrf: reciprocal rank fusion, weight / (rrfK + rank) of each list added; weighted: the scores of each list, in standard deviations above its floor, times its weight.',
      }),
    ),
    rrfK: Type.Optional(
      Type.Number({ minimum: 0, maximum: MAX_HYBRID_NUMBER, description: 'The constant of rrf. Absent: 60.' }),
    ),
    denseWeight: Type.Optional(Type.Number({ minimum: 0, maximum: MAX_HYBRID_NUMBER })),
    bm25Weight: Type.Optional(Type.Number({ minimum: 0, maximum: MAX_HYBRID_NUMBER })),
    depth: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'Passages of each list that are fused. A passage that neither list has among them is not found. Absent: 1,000, or the number of hits that are considered if it is larger.',
      }),
    ),
  },
  { additionalProperties: false },
);

/** @throws RequestError K_TOO_LARGE for a depth over the server's limit of k. */
export function refuseTooDeep(given: HybridOptions | null, { maxK, hybrid }: RequestLimits): void {
  const most = Math.max(maxK, hybrid.depth ?? 0);
  const depth = given?.depth ?? 0;
  if (depth <= most) return;
  const reason = `hybrid.depth is ${depth}; the limit of this server is ${most} passages per list.`;
  throw tooLarge('hybrid.depth', reason, 'Lower hybrid.depth.');
}

const RerankField = nullable(
  Type.Union([
    Type.Boolean(),
    Type.Object(
      {
        depth: Type.Optional(
          Type.Integer({
            minimum: 1,
            description: `Hits of the search that the reranker scores; at least k are scored in any case. Absent: the server's default, or else ${DEFAULT_RERANK_DEPTH}.`,
          }),
        ),
        model: Type.Optional(Type.String({ description: 'Name of the reranker. Another name is refused.' })),
        allowFailure: Type.Optional(
          Type.Boolean({
            description:
              "Whether a query gets the hits of the search, in their order, if the reranker fails. Absent: the server's default, or else false: the query fails.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
  ]),
  "Whether a reranker orders the hits: true, false, or how it does. Absent: the server's default.",
);

/** The reranking that a request asks for, or that the server does by default; null for none. */
function requestRerank(given: Static<typeof RerankField>, { rerank: ofServer }: RequestLimits): RerankSettings | null {
  if (given === false || (given === null && ofServer === null)) return null;
  const settings = typeof given === 'object' ? given : undefined;
  return { depth: DEFAULT_RERANK_DEPTH, ...defined(ofServer ?? {}), ...defined(settings ?? {}) };
}

/** @throws RequestError K_TOO_LARGE for a depth over the limits of k. */
export function refuseTooDeepReranking(
  given: Static<typeof RerankField>,
  queries: number,
  limits: RequestLimits,
): void {
  const rerank = requestRerank(given, limits);
  if (rerank !== null) refuseTooLargeK(rerank.depth, 'rerank.depth', queries, limits);
}

const Id = Type.Union([Type.String(), Type.Integer()]);
const Count = Type.Integer({ minimum: 0 });
/** Without a type, so that the reader of requests keeps its fields. */
const Tags = Type.Unsafe<Readonly<Record<string, string | number | boolean>>>({
  additionalProperties: { type: ['string', 'number', 'boolean'] },
});

/** One value for the request, or a list with one value (or null) per query. */
function perQuery<Schema extends TSchema>(schema: Schema, description: string) {
  return Type.Optional(
    Type.Union([schema, Type.Array(Type.Union([schema, Type.Null()])), Type.Null()], {
      description: `${description} One value, or a list with one value (or null) per query.`,
    }),
  );
}

/** Where the queries come from, for `--record`; it changes no reply. */
const RecordField = nullable(
  Type.Object(
    {
      trajectory: perQuery(Id, 'Id of the rollout.'),
      turn: perQuery(Count, "The agent's turn, as the client counts."),
      questionId: perQuery(Id, 'Id of the question in its data set.'),
      dataset: perQuery(Type.String(), 'Name of the data set.'),
      policy: perQuery(Id, 'The run or checkpoint of the policy.'),
      step: perQuery(Count, 'Its training step.'),
      split: perQuery(Type.String(), 'Such as train or validation.'),
      tags: perQuery(Tags, 'Further texts by name.'),
      question: perQuery(Type.String(), 'The original question of a query that is searched without it.'),
    },
    { additionalProperties: false },
  ),
  'Where the queries come from: --record writes it to their lines (docs/recording.md). It does not change the reply.',
);

/**
 * Refuses values that could not be recorded, whether the server records or not.
 *
 * @throws RequestError INVALID_REQUEST.
 */
export function checkRecordField(record: Static<typeof RecordField>, queries: number): void {
  const issues = new Issues();
  for (const { name, reason } of readBody(record, queries).ignored) {
    const place = name.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part));
    issues.add('value_error', place, `${reason[0]!.toUpperCase()}${reason.slice(1)}`, undefined);
  }
  issues.throwIfAny();
}

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
    exclude: ExcludedIds,
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
      'Hits per query that fusion or deduplication considers; at least k. Absent: the larger of 10 and 2 k.',
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

/** The search that a request asks for, except for the number of hits. */
type SearchCall = Omit<RetrieveCall, 'queries' | 'k'> & {
  readonly queries: readonly EncoderInput[];
  readonly mode: SearchMode;
  readonly truncate: TruncateSide;
};

/** @param k hits per query that the search begins with. */
export function searchCall(request: SearchRequest, limits: RequestLimits, info: RetrieverInfo, k: number): SearchCall {
  const mode = request.mode ?? limits.mode ?? info.modes[0]!;
  const config = {
    ...limits,
    bm25Order: request.bm25?.order ?? limits.bm25Order,
    rerank: requestRerank(request.rerank, limits),
  };
  return {
    queries: request.queries.map((query) =>
      typeof query === 'string' ? query : inputWith(query.query, query.question, query.history),
    ),
    ...(request.allowPartial && { allowPartial: true }),
    ...(request.exclude.length > 0 && { exclude: request.exclude.map(String) }),
    ...(request.template !== null && { template: request.template }),
    truncate: request.truncate ?? limits.truncate,
    ...rankingFor(config, k, { mode, hybrid: request.hybrid }),
    mode,
    filter: requestFilter(request.filter),
    bm25: mode === 'dense' ? undefined : bm25Ranking(request.bm25, info),
  };
}

/** Which hits the request keeps. */
export function selectionOf(request: SearchRequest, limits: RequestLimits): Selection {
  return {
    k: request.k ?? limits.topk,
    minScore: request.minScore,
    deduplicate: request.deduplicate ?? (request.fuse === 'none' ? 'none' : 'passage'),
  };
}

/** For the record: how hits are left out or merged; undefined if they are not. */
export function recordedSelection(
  { minScore, deduplicate }: Selection,
  { exclude, fuse }: SearchRequest,
): RecordedSelection | undefined {
  const selection = defined<RecordedSelection>({
    minScore: minScore ?? undefined,
    excluded: new Set(exclude.map(String)).size || undefined,
    deduplicate: deduplicate === 'none' ? undefined : deduplicate,
    fuse: fuse === 'none' ? undefined : fuse,
  });
  return Object.keys(selection).length === 0 ? undefined : selection;
}

/** Number of hits to consider per query. */
export function wantedHits({ k, deduplicate }: Selection, request: SearchRequest): number {
  if (request.fuse === 'none' && deduplicate === 'none') return k;
  return Math.max(k, request.candidates ?? Math.max(10, 2 * k));
}

/** Largest number of hits per query that a search may go through. */
export function maxDepth(queries: number, k: number, limits: RequestLimits): number {
  return Math.max(k, Math.min(limits.maxK, Math.floor(limits.maxHits / Math.max(1, queries))));
}

/** The outcomes with the selected hits only, at most k per query. */
export function selectedOutcomes(
  outcomes: readonly QueryOutcome[],
  lists: readonly Selected[],
  k: number,
): readonly QueryOutcome[] {
  return outcomes.map((outcome, i) =>
    outcome.ok
      ? {
          ...outcome,
          hits: lists[i]!.candidates.slice(0, k).map(({ hit }) => hit),
          short: lists[i]!.short ?? outcome.short,
        }
      : outcome,
  );
}
