import { Type } from 'typebox';
import type { EncoderInput } from '../../embedding/text-encoder.ts';
import type { TrawlError } from '../../errors.ts';
import { BM25_PROFILES, type Bm25Ranking, DEFAULT_BM25, type FieldRanking } from '../../lexical-index/bm25.ts';
import { retrieveDeepening } from '../../retrieval/deepening.ts';
import {
  BM25_ORDERS,
  type Bm25Order,
  type ExplainCall,
  type ExplainedTerm,
  type Hit,
  type QueryOutcome,
  type Retriever,
  type RetrieverInfo,
  SEARCH_MODES,
  type SearchMode,
} from '../../retrieval/retriever.ts';
import { addTimings, STAGES, type StageTimings } from '../../retrieval/timings.ts';
import { ERROR_STATUS } from '../errors/error-status.ts';
import { RequestError } from '../errors/request-error.ts';
import { excerpt, wordsOf } from '../excerpt.ts';
import {
  type Candidate,
  DEDUPLICATIONS,
  FUSIONS,
  type Fused,
  fuse,
  type Selected,
  type Selection,
  select,
} from '../fusion.ts';
import { TimeSlice } from '../time-slice.ts';
import { Contents, Document, nullable, Score } from './common-fields.ts';
import { defineDialect, type RequestLimits } from './dialect.ts';
import { Truncate } from './questions.ts';
import { refuseTooLargeK, separated } from './search-plan.ts';

const Cut = Type.String({
  description:
    'The part that truncation to the token limit shortened: nothing, tail (the end of the query), question, or question-and-tail.',
});

const HitTerm = Type.Object({
  term: Type.String({ description: 'A word of the query after analysis (lower case, stemming).' }),
  field: Type.String({
    description: 'The part of the passage that has the term: contents, or title or text in an index with both apart.',
  }),
  boost: Type.Number({ description: 'Number of times that the query has the term, times the weight of the field.' }),
  documentFrequency: Type.Integer({ description: 'Number of passages of the index that have the term in the field.' }),
  score: Type.Number({
    description: "The term's part of the field's score, which is the sum of its parts, rounded to float32. A float32.",
  }),
});

/** Largest number of hits that a request can have explained. A hit has a few dozen terms at most times. */
const MAX_EXPLAINED_HITS = 10_000;

const Weight = Type.Number({ minimum: 0, maximum: 1_000_000 });

const HitFields = {
  row: Type.Integer({ description: "The passage's row in the index, from 0." }),
  id: Type.Optional(Type.Unknown({ description: 'As in the corpus; absent if the passage has none.' })),
  title: Type.Optional(Type.String()),
  score: Score,
  terms: Type.Optional(
    Type.Array(HitTerm, {
      description:
        'With explain: the terms of the query that the passage has, in the order of the query. Absent without explain.',
    }),
  ),
  text: Contents,
  whole: Type.Boolean({ description: 'False if text is an excerpt.' }),
  document: Type.Optional(Document),
};

const QueryResult = Type.Object({
  ok: Type.Literal(true),
  embedded: Type.Object({
    text: Type.String({
      description: 'The embedded text with its prefix, before truncation; for bm25 the text that is analysed.',
    }),
    tokens: Type.Integer({
      description: 'Tokens embedded, special tokens included; for bm25 the distinct terms of the text.',
    }),
    cut: Cut,
  }),
  certificate: Type.Object({
    exact: Type.Boolean({ description: 'True if the hits are proved to be the best passages.' }),
    rescored: Type.Union([Type.Integer(), Type.Null()], {
      description:
        'Number of rows whose exact score was computed after the scan of the codes. It varies with the batch that the query ran in. Null if the search scored every row exactly, and for bm25.',
    }),
  }),
  hits: Type.Optional(Type.Array(Type.Object(HitFields), { description: 'Best first. Absent with fuse.' })),
});

const FailedQuery = Type.Object({
  ok: Type.Literal(false),
  error: Type.Object({ code: Type.String(), message: Type.String() }),
});

/**
 * Trawl's own search, for agents: queries with their question, exclusion of passages already seen, fusion of several queries, and
 * excerpts. Unlike the other dialects, it refuses unknown fields.
 */
export const nativeSearch = defineDialect({
  name: 'native',
  path: '/v1/search',
  summary: 'Search with fusion, exclusion and excerpts',
  // A mode, weights or an order that the index does not have.
  statuses: { NOT_SUPPORTED: 501 },
  request: Type.Object(
    {
      queries: Type.Array(
        Type.Union([
          Type.String(),
          Type.Object(
            { question: nullable(Type.String(), 'The question that the query helps to answer.'), query: Type.String() },
            { additionalProperties: false },
          ),
        ]),
        { description: 'Texts, or sub-queries with their question.' },
      ),
      index: nullable(Type.String(), 'Name of the index. Absent: the index in the URL, or the default.'),
      k: nullable(Type.Integer({ minimum: 1 }), "Hits per list. Absent: the server's default."),
      mode: nullable(
        Type.Enum([...SEARCH_MODES]),
        'How passages are ranked: dense (by their vectors) or bm25 (by their words). Absent: the default of the server, or else of the index.',
      ),
      bm25: nullable(
        Type.Object(
          {
            k1: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
            b: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
            profile: Type.Optional(
              Type.Enum(['lucene', 'elasticsearch'], {
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
        ),
        'Parameters of bm25. Absent: the parameters of the index.',
      ),
      minScore: nullable(Type.Number(), 'Leaves out hits with a lower score.'),
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
        'Which hits appear only once in the reply: none (all hits are kept), passage (the same passage) or title (passages with the same title). Absent: none if fuse is none, else passage.',
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
        description: 'Whether each hit has the terms of its score. Only with mode bm25.',
      }),
      truncate: Truncate,
    },
    { additionalProperties: false },
  ),
  reply: Type.Object({
    index: Type.Object({ name: Type.String(), generation: Type.String() }),
    mode: Type.Enum([...SEARCH_MODES], { description: 'How the passages were ranked.' }),
    results: Type.Array(Type.Union([QueryResult, FailedQuery]), {
      description: 'One per query, in the order of the queries.',
    }),
    hits: Type.Optional(
      Type.Array(
        Type.Object({
          ...HitFields,
          fused: Type.Number({ description: 'The fused score, by which the list is ordered.' }),
          from: Type.Array(
            Type.Object({
              query: Type.Integer({ description: 'Position of the query in the request, from 0.' }),
              rank: Type.Integer({ description: 'Rank in the list of this query, from 1.' }),
              score: Score,
            }),
            { description: 'The queries that found the passage, best score first.' },
          ),
        }),
        { description: 'The fused list, best first. Absent without fuse.' },
      ),
    ),
    timings: Type.Object({
      queueMs: Type.Number(),
      embedMs: Type.Number(),
      searchMs: Type.Number(),
      fetchMs: Type.Number(),
    }),
  }),
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
  plan(request, limits) {
    const { queries, maxChars, documents } = request;
    const truncate = request.truncate ?? limits.truncate;
    const k = request.k ?? limits.topk;
    refuseTooLargeK(k, 'k', queries.length, limits);
    if (request.explain) refuseTooManyExplained(queries.length, k);
    const selection: Selection = {
      k,
      minScore: request.minScore,
      excluded: new Set(request.exclude.map(String)),
      deduplicate: request.deduplicate ?? (request.fuse === 'none' ? 'none' : 'passage'),
    };
    const inputs = queries.map((query) =>
      typeof query === 'string' ? query : { question: query.question ?? '', query: query.query },
    );
    return {
      queries: queries.length,
      k,
      index: request.index,
      async run(retriever, signal) {
        const slice = new TimeSlice(signal);
        const mode = request.mode ?? limits.mode ?? retriever.info.modes[0]!;
        const bm25 = mode === 'bm25' ? parametersOf(request.bm25, retriever.info) : undefined;
        if (request.explain && mode !== 'bm25') throw explainNeedsBm25(mode);
        const bm25Order = request.bm25?.order ?? limits.bm25Order;
        const call = {
          queries: inputs,
          truncate,
          mode,
          ...(bm25 === undefined ? {} : { bm25 }),
          ...(bm25Order === 'row' ? {} : { bm25Order }),
        };
        const wanted = wantedHits(selection, request);
        const separate = request.fuse === 'none';
        const maxK = maxDepth(queries.length, k, limits);
        const depth = Math.min(wanted + selection.excluded.size, maxK);
        let lists: readonly Selected[] = [];
        const { outcomes, timings: searchTimings } = await retrieveDeepening(
          retriever,
          { ...call, k: depth, signal },
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
          ? await explainHits(retriever, found, { queries: inputs, signal, ...(bm25 === undefined ? {} : { bm25 }) })
          : undefined;
        const timings = explained === undefined ? searchTimings : addTimings(searchTimings, explained.timings);
        const words =
          maxChars === null ? [] : queries.map((query) => wordsOf(typeof query === 'string' ? query : query.query));
        const toJson = (hit: Candidate, query: number): string =>
          hitJson(hit, { words: words[query], maxChars, documents, terms: explained?.terms.get(hit.hit) });
        return {
          timings,
          search: { ...call, k, outcomes: selectedOutcomes(outcomes, lists, k) },
          truncated: outcomes.filter((outcome) => outcome.ok && outcome.truncated).length,
          failures: outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error])),
          pieces: reply(retriever, mode, outcomes, fused === undefined ? lists : undefined, fused, timings, toJson),
        };
      },
    };
  },
});

interface FoundHit {
  /** Position of the query that found it. */
  readonly query: number;
  readonly hit: Hit;
}

/** The terms of each hit for the query that found it. */
async function explainHits(
  retriever: Retriever,
  found: readonly FoundHit[],
  { queries, ...call }: Omit<ExplainCall, 'queries'> & { readonly queries: readonly EncoderInput[] },
): Promise<{ terms: ReadonlyMap<Hit, readonly ExplainedTerm[]>; timings: StageTimings }> {
  const hits = queries.map((): Hit[] => []);
  for (const { query, hit } of found) hits[query]!.push(hit);
  const { explained, timings } = await retriever.explain({
    ...call,
    queries: queries.map((query, i) => ({ query, rows: hits[i]!.map(({ row }) => row) })),
  });
  const terms = new Map(hits.flatMap((list, i) => list.map((hit, at) => [hit, explained[i]![at]!] as const)));
  return { terms, timings };
}

function refuseTooManyExplained(queries: number, k: number): void {
  if (queries * k <= MAX_EXPLAINED_HITS) return;
  const reason = `${queries} queries with ${k} passages each exceed the limit of ${MAX_EXPLAINED_HITS} explained passages per reply.`;
  throw new RequestError('K_TOO_LARGE', `${reason} Send fewer queries per request, or leave out explain.`, [
    { type: 'less_than_equal', loc: ['body', 'explain'], msg: reason },
  ]);
}

function explainNeedsBm25(mode: SearchMode): RequestError {
  const reason = `explain needs mode bm25, but the mode is ${mode}.`;
  return new RequestError('INVALID_REQUEST', `body.explain: ${reason} Set "mode": "bm25", or leave out explain.`, [
    { type: 'value_error', loc: ['body', 'explain'], msg: reason },
  ]);
}

/** Returns the BM25 parameters of a request; undefined: use the parameters of the index. */
function parametersOf(
  given:
    | ({
        readonly k1?: number;
        readonly b?: number;
        readonly profile?: keyof typeof BM25_PROFILES;
        readonly order?: Bm25Order;
      } & FieldRanking)
    | null,
  { bm25 }: RetrieverInfo,
): Bm25Ranking | undefined {
  if (given === null) return undefined;
  const { profile, order: _, ...values } = given;
  const ofIndex = bm25 === null ? DEFAULT_BM25 : { ...DEFAULT_BM25, k1: bm25.k1, b: bm25.b };
  return { ...(profile === undefined ? ofIndex : BM25_PROFILES[profile]), ...values };
}

/** Number of hits to consider per query, without excluded ones. */
function wantedHits(
  { k, deduplicate }: Selection,
  request: { readonly fuse: string; readonly candidates: number | null },
): number {
  if (request.fuse === 'none' && deduplicate === 'none') return k;
  return Math.max(k, request.candidates ?? Math.max(10, 2 * k));
}

/** Largest number of hits per query that a search may go through. */
function maxDepth(queries: number, k: number, limits: RequestLimits): number {
  return Math.max(k, Math.min(limits.maxK, Math.floor(limits.maxHits / Math.max(1, queries))));
}

/** The outcomes with the selected hits only, at most k per query. */
function selectedOutcomes(
  outcomes: readonly QueryOutcome[],
  lists: readonly Selected[],
  k: number,
): readonly QueryOutcome[] {
  return outcomes.map((outcome, i) =>
    outcome.ok ? { ...outcome, hits: lists[i]!.candidates.slice(0, k).map(({ hit }) => hit) } : outcome,
  );
}

/** The pieces of the reply's JSON. `toJson`: a hit's JSON without its closing brace. */
function* reply(
  { info }: Retriever,
  mode: SearchMode,
  outcomes: readonly QueryOutcome[],
  lists: readonly Selected[] | undefined,
  fused: readonly Fused[] | undefined,
  timings: StageTimings,
  toJson: (hit: Candidate, query: number) => string,
): Generator<string> {
  yield `{"index":${JSON.stringify({ name: info.index, generation: info.generation })},"mode":${JSON.stringify(mode)},"results":[`;
  for (const [i, outcome] of outcomes.entries()) {
    if (i > 0) yield ',';
    if (!outcome.ok) {
      yield JSON.stringify({ ok: false, error: publicError(outcome.error) });
      continue;
    }
    const { text: embedded, tokens, cut, certificate } = outcome;
    yield JSON.stringify({ ok: true, embedded: { text: embedded, tokens, cut }, certificate }).slice(0, -1);
    if (lists !== undefined) {
      yield ',"hits":[';
      yield* separated(lists[i]!.candidates, (hit) => `${toJson(hit, i)}}`);
      yield ']';
    }
    yield '}';
  }
  yield ']';
  if (fused !== undefined) {
    yield ',"hits":[';
    yield* separated(
      fused,
      ({ best, query, score, from }) =>
        `${toJson(best, query)},"fused":${JSON.stringify(score)},"from":${JSON.stringify(from)}}`,
    );
    yield ']';
  }
  const roundedTimings = STAGES.map((stage) => [`${stage}Ms`, rounded(timings[stage])]);
  yield `,"timings":${JSON.stringify(Object.fromEntries(roundedTimings))}}`;
}

/** A hit's JSON without its closing brace. */
function hitJson(
  { hit, fields }: Candidate,
  {
    words,
    maxChars,
    documents,
    terms,
  }: {
    words: ReadonlySet<string> | undefined;
    maxChars: number | null;
    documents: boolean;
    terms: readonly ExplainedTerm[] | undefined;
  },
): string {
  const { text, whole } =
    maxChars === null || words === undefined
      ? { text: fields.contents, whole: true }
      : excerpt(fields.contents, words, maxChars);
  const id = fields.idJson === undefined ? '' : `,"id":${fields.idJson}`;
  const title = fields.title === undefined ? '' : `,"title":${JSON.stringify(fields.title)}`;
  const parts = terms === undefined ? '' : `,"terms":${JSON.stringify(terms)}`;
  const rest = `,"score":${JSON.stringify(hit.score)}${parts},"text":${JSON.stringify(text)},"whole":${whole}`;
  return `{"row":${hit.row}${id}${title}${rest}${documents ? `,"document":${hit.document}` : ''}`;
}

/** The error as the client sees it, without the details of a server error. */
function publicError({ code, message }: TrawlError): { code: string; message: string } {
  return ERROR_STATUS[code] === 500
    ? { code, message: 'The server failed. Its log has the details.' }
    : { code, message };
}

function rounded(ms: number): number {
  return Number(ms.toFixed(3));
}
