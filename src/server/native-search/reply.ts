import { type Static, Type } from 'typebox';
import type { TrawlError } from '../../base/errors.ts';
import { orNull } from '../../base/or-null.ts';
import type { EncoderInput } from '../../encoder/text-encoder.ts';
import {
  type Hit,
  type QueryAnswer,
  type QueryOutcome,
  SHORT_REASONS,
  shortReason,
} from '../../search/calls/query-outcome.ts';
import type { HybridPlaces } from '../../search/hybrid/hybrid-fusion.ts';
import { HYBRID_FUSIONS } from '../../search/hybrid/hybrid-settings.ts';
import type { ExplainCall, ExplainedTerm, Retriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { SEARCH_MODES, type SearchMode } from '../../search/search-mode.ts';
import { STAGES, type StageTimings } from '../../search/timings.ts';
import { Contents, Document, Score } from '../dialects/parts/common-fields.ts';
import { separated, tooLarge } from '../dialects/parts/search-plan.ts';
import { clientMessage } from '../errors/error-status.ts';
import { RequestError } from '../errors/request-error.ts';
import { excerpt } from '../excerpt.ts';
import type { Candidate, Fused, Selected } from './fusion.ts';

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

const Place = Type.Object({
  rank: Type.Integer({ description: 'From 1.' }),
  score: Score,
  part: Type.Optional(
    Type.Number({
      description:
        'With explain: what the list adds to the score of the hit, which is the sum of both parts, rounded to float32.',
    }),
  ),
});

const HitFields = {
  index: Type.Optional(
    Type.String({ description: 'With several indexes: the index of the passage. Absent with one index.' }),
  ),
  row: Type.Integer({ description: "The passage's row in its index, from 0." }),
  id: Type.Optional(Type.Unknown({ description: 'As in the corpus; absent if the passage has none.' })),
  title: Type.Optional(Type.String()),
  score: Score,
  indexScore: Type.Optional(
    Type.Number({
      description:
        "With several indexes: the passage's score in its index. score differs from it where the lists were fused by rank.",
    }),
  ),
  dense: Type.Optional(
    orNull(
      Place,
      'With mode hybrid: where the dense list has the passage; null if it is not among the first passages to the depth. Absent in other modes.',
    ),
  ),
  bm25: Type.Optional(orNull(Place, 'The same for the list of bm25.')),
  firstStage: Type.Optional(
    Type.Object(
      { rank: Type.Integer({ description: 'From 1.' }), score: Score },
      {
        description:
          "With reranking: rank and score of the hit in the search; score is then the reranker's. Absent without reranking.",
      },
    ),
  ),
  terms: Type.Optional(
    Type.Array(HitTerm, {
      description:
        'With explain: the terms of the query that the passage has, in the order of the query. Absent without explain.',
    }),
  ),
  distractor: Type.Optional(
    Type.Literal(true, {
      description: 'No search found the passage: the server mixed it in on purpose, with the score of a neighbour.',
    }),
  ),
  text: Contents,
  whole: Type.Boolean({ description: 'False if text is an excerpt.' }),
  document: Type.Optional(Document),
};

/** A hit's JSON without its closing brace. */
export function hitJson(
  { hit, fields }: Candidate,
  {
    words,
    maxChars,
    documents,
    terms,
    places = hit.places,
  }: {
    words: ReadonlySet<string> | undefined;
    maxChars: number | null;
    documents: boolean;
    terms: readonly ExplainedTerm[] | undefined;
    /** Default: the places of the hit. */
    places?: HybridPlaces;
  },
): string {
  const { text, whole } =
    maxChars === null || words === undefined
      ? { text: fields.contents, whole: true }
      : excerpt(fields.contents, words, maxChars);
  const { row, score, source, firstStage, distractor } = hit;
  const place = JSON.stringify({ index: source?.index, row: source?.row ?? row }).slice(0, -1);
  // As in the corpus: parsing would round an integer beyond 2^53.
  const id = fields.idJson === undefined ? '' : `,"id":${fields.idJson}`;
  const rest = { title: fields.title, score, indexScore: source?.score, firstStage, ...places, terms, distractor };
  const facts = JSON.stringify({ ...rest, text, whole }).slice(1, -1);
  return `${place}${id},${facts}${documents ? `,"document":${hit.document}` : ''}`;
}

/** Largest number of hits that a request can have explained. A hit has a few dozen terms at most times. */
const MAX_EXPLAINED_HITS = 10_000;

export interface FoundHit {
  /** Position of the query that found it. */
  readonly query: number;
  readonly hit: Hit;
}

/** The terms of each hit for the query that found it. */
export async function explainHits(
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

export function refuseTooManyExplained(queries: number, k: number): void {
  if (queries * k <= MAX_EXPLAINED_HITS) return;
  const reason = `${queries} queries with ${k} passages each exceed the limit of ${MAX_EXPLAINED_HITS} explained passages per reply.`;
  throw tooLarge('explain', reason, 'Send fewer queries per request, or leave out explain.');
}

export function explainNeedsBm25(mode: SearchMode): RequestError {
  const reason = `explain needs mode bm25 or hybrid, but the mode is ${mode}.`;
  return new RequestError('INVALID_REQUEST', `body.explain: ${reason} Set "mode": "bm25", or leave out explain.`, [
    { type: 'value_error', loc: ['body', 'explain'], msg: reason },
  ]);
}

const Cut = Type.String({
  description:
    'The part that truncation to the token limit shortened: nothing, tail (the end of the query), history (its oldest queries or all), question (all history too), or question-and-tail.',
});

/** Why a query has no result. */
export const Failed = Type.Object({
  ok: Type.Literal(false),
  error: Type.Object({
    code: Type.String(),
    message: Type.String(),
    maxTied: Type.Optional(
      Type.Integer({
        description:
          'With NOT_SUPPORTED in the order pyserini: the number of passages with equal scores that it compares, of which the query has more. Every further search for the query fails too.',
      }),
    ),
  }),
});

const Reranked = Type.Object({
  ok: Type.Literal(true),
  model: Type.String({ description: 'Name of the reranker.' }),
  passages: Type.Integer({ description: 'Number of passages that it scored.' }),
  truncated: Type.Integer({ description: 'Of these, the number that were truncated to its token limit.' }),
});

const Scale = orNull(
  Type.Object({
    floor: Type.Number({ description: 'The score that counts as 0: the last one, or 0 for a short list of bm25.' }),
    deviation: Type.Number({ description: 'The standard deviation of the scores of the list.' }),
  }),
  'Null for an empty list.',
);

/** The field `fusion` of a result. */
const ExplainedFusion = Type.Object({
  fusion: Type.Enum([...HYBRID_FUSIONS]),
  rrfK: Type.Number(),
  denseWeight: Type.Number(),
  bm25Weight: Type.Number(),
  depth: Type.Integer(),
  formula: Type.String({ description: 'The score of a hit. A list that does not have the passage adds 0.' }),
  lists: Type.Array(Type.Object({ index: Type.Optional(Type.String()), dense: Scale, bm25: Scale }), {
    description: 'Between which scores each list is scaled; with several indexes one entry per index.',
  }),
});

const Short = Type.Enum([...SHORT_REASONS], {
  description:
    'Why the list has fewer than k hits. all: it has every passage that the request may find (with bm25: that has a word of the query). minScore: the further ones score lower. duplicates: the further candidates repeat these. limit: no more hits are gone through, because of the limits of the server or of hybrid.depth. failedIndexes: indexes failed. inexact: see certificate.exact. Absent from a list of k hits.',
});

const QueryResult = Type.Object({
  ok: Type.Literal(true),
  embedded: Type.Object({
    text: Type.String({
      description: 'The embedded text with its prefix, before truncation; for bm25 the text that is analysed.',
    }),
    tokens: orNull(
      Type.Integer(),
      'Tokens embedded, special tokens included; null if the encoder is an endpoint that does not say it. For bm25 the distinct terms of the text.',
    ),
    cut: Cut,
  }),
  certificate: Type.Object({
    exact: Type.Boolean({
      description:
        'True if the hits are proved to be the best passages; false if the server changed them on purpose (perturbed), or the index is an approximate one in Milvus.',
    }),
    rescored: orNull(
      Type.Integer(),
      'Number of rows whose exact score was computed after the scan of the codes. It varies with the batch that the query ran in. Null if the search scored every row exactly, and for bm25.',
    ),
    depth: Type.Optional(
      Type.Integer({
        description:
          'With mode hybrid: the hits are the best of the fusion of two lists, which are proved to be the best passages of dense and of bm25 search to this depth.',
      }),
    ),
  }),
  fusion: Type.Optional(ExplainedFusion),
  rerank: Type.Optional(
    Type.Union([Reranked, Failed], {
      description:
        'What the reranker did. ok is false if it failed and allowFailure is set: the hits are as the search found them, in its order. Absent without reranking.',
    }),
  ),
  failedIndexes: Type.Optional(
    Type.Array(
      Type.Object({ index: Type.String(), error: Type.Object({ code: Type.String(), message: Type.String() }) }),
      {
        description:
          'With allowPartial: the indexes that failed, whose passages are missing. Absent if there are none.',
      },
    ),
  ),
  perturbed: Type.Optional(
    Type.Object(
      {
        droppedGold: Type.Optional(Type.Integer({ description: 'Gold passages that are missing from the hits.' })),
        distractors: Type.Optional(Type.Integer({ description: 'Passages among the hits that no search found.' })),
        delayMs: Type.Optional(
          Type.Integer({ description: 'How long the request was held back before its search, in milliseconds.' }),
        ),
      },
      {
        description:
          'How the server (--perturb) changed the answer on purpose, before deduplication and fusion. Absent if it did not.',
      },
    ),
  ),
  short: Type.Optional(Short),
  hits: Type.Optional(Type.Array(Type.Object(HitFields), { description: 'Best first. Absent with fuse.' })),
});

/** Milliseconds per stage. */
export const Timings = Type.Object({
  queueMs: Type.Number(),
  embedMs: Type.Number(),
  searchMs: Type.Number(),
  fetchMs: Type.Number(),
  rerankMs: Type.Number(),
});

/** The field `view` of a reply. */
export const View = Type.String({
  description: 'The views that limit the request, with commas in between. Absent if there are none.',
});

export const SearchReply = Type.Object({
  index: Type.Object({
    name: Type.String(),
    generation: Type.String(),
    members: Type.Optional(
      Type.Array(Type.Object({ index: Type.String(), generation: Type.String() }), {
        description: 'The indexes that are searched as one. Absent with one index.',
      }),
    ),
  }),
  view: Type.Optional(View),
  mode: Type.Enum([...SEARCH_MODES], { description: 'How the passages were ranked.' }),
  results: Type.Array(Type.Union([QueryResult, Failed]), {
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
  short: Type.Optional(Short),
  timings: Timings,
});

interface ReplyParts {
  readonly mode: SearchMode;
  /** Hits per list. */
  readonly k: number;
  /** With the selected hits only. */
  readonly outcomes: readonly QueryOutcome[];
  /** The hits of each query, or, fused, of all queries. */
  readonly hits: { readonly lists: readonly Selected[] } | { readonly fused: readonly Fused[] };
  readonly timings: StageTimings;
  /** A hit's JSON without its closing brace. */
  readonly toJson: (hit: Candidate, query: number) => string;
  /** How the lists of a query were fused, if that is explained. */
  readonly explain: ((answer: QueryAnswer) => object) | undefined;
}

export function* replyPieces(
  { info }: Retriever,
  { mode, k, outcomes, hits, timings, toJson, explain }: ReplyParts,
): Generator<string> {
  const members = info.members?.map(({ index, generation }) => ({ index, generation }));
  yield `{"index":${JSON.stringify({ name: info.index, generation: info.generation, members })}${viewMember(info)},"mode":${JSON.stringify(mode)},"results":[`;
  for (const [i, outcome] of outcomes.entries()) {
    if (i > 0) yield ',';
    if (!outcome.ok) {
      yield JSON.stringify(failed(outcome.error));
      continue;
    }
    const { text: embedded, tokens, cut, certificate } = outcome;
    const rerank = outcome.rerank?.ok === false ? failed(outcome.rerank.error) : outcome.rerank;
    const failedIndexes = outcome.failedIndexes?.map(({ index, error }) => ({ index, error: failed(error).error }));
    yield JSON.stringify({
      ok: true,
      embedded: { text: embedded, tokens, cut },
      certificate,
      fusion: explain?.(outcome),
      rerank,
      failedIndexes,
      perturbed: outcome.perturbed,
      short: 'lists' in hits ? shortReason(outcome, k) : undefined,
    }).slice(0, -1);
    if ('lists' in hits) {
      yield ',"hits":[';
      yield* separated(hits.lists[i]!.candidates, (hit) => `${toJson(hit, i)}}`);
      yield ']';
    }
    yield '}';
  }
  yield ']';
  if ('fused' in hits) {
    yield ',"hits":[';
    yield* separated(
      hits.fused,
      ({ best, query, score, from }) =>
        `${toJson(best, query)},"fused":${JSON.stringify(score)},"from":${JSON.stringify(from)}}`,
    );
    yield ']';
    if (hits.fused.length < k) {
      const reasons = outcomes.flatMap((outcome) => (outcome.ok ? (shortReason(outcome, k) ?? 'duplicates') : []));
      yield `,"short":${JSON.stringify(reasons.find((reason) => reason !== 'all') ?? 'all')}`;
    }
  }
  yield `,"timings":${timingsJson(timings)}}`;
}

/** The member `view` of a reply's JSON, after another member. */
export function viewMember({ within }: RetrieverInfo): string {
  return within === undefined ? '' : `,"view":${JSON.stringify(within.join())}`;
}

export function timingsJson(timings: StageTimings): string {
  return JSON.stringify(Object.fromEntries(STAGES.map((stage) => [`${stage}Ms`, Number(timings[stage].toFixed(3))])));
}

/** The error as the client sees it, without the details of a server error. */
export function failed(error: TrawlError): Static<typeof Failed> {
  const { code, details } = error;
  return { ok: false, error: { code, message: clientMessage(error), maxTied: details.maxTied } };
}
