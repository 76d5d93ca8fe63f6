import { type Static, Type } from 'typebox';
import type { TrawlError } from '../../base/errors.ts';
import type { QueryAnswer, QueryOutcome } from '../../search/calls/query-outcome.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { SEARCH_MODES, type SearchMode } from '../../search/search-mode.ts';
import { STAGES, type StageTimings } from '../../search/timings.ts';
import { Score } from '../dialects/parts/common-fields.ts';
import { separated } from '../dialects/parts/search-plan.ts';
import { clientError } from '../errors/client-error.ts';
import { ERROR_STATUS } from '../errors/error-status.ts';
import { ExplainedFusion } from './explain.ts';
import type { Candidate, Fused, Selected } from './fusion.ts';
import { HitFields } from './hit.ts';

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

const QueryResult = Type.Object({
  ok: Type.Literal(true),
  embedded: Type.Object({
    text: Type.String({
      description: 'The embedded text with its prefix, before truncation; for bm25 the text that is analysed.',
    }),
    tokens: Type.Union([Type.Integer(), Type.Null()], {
      description:
        'Tokens embedded, special tokens included; null if the encoder is an endpoint that does not say it. For bm25 the distinct terms of the text.',
    }),
    cut: Cut,
  }),
  certificate: Type.Object({
    exact: Type.Boolean({
      description:
        'True if the hits are proved to be the best passages; false if the server changed them on purpose (perturbed), or the index is an approximate one in Milvus.',
    }),
    rescored: Type.Union([Type.Integer(), Type.Null()], {
      description:
        'Number of rows whose exact score was computed after the scan of the codes. It varies with the batch that the query ran in. Null if the search scored every row exactly, and for bm25.',
    }),
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
        'What the reranker did. ok is false if it failed and allowFailure is set: the hits are those of the search, in its order. Absent without reranking.',
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
          'How the server (--perturb) changed the answer on purpose, before exclusion, deduplication and fusion. Absent if it did not.',
      },
    ),
  ),
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

/** The body of a reply of /v1/search. */
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
  timings: Timings,
});

/** What a reply of /v1/search is made of. */
export interface ReplyParts {
  readonly mode: SearchMode;
  /** One per query. */
  readonly outcomes: readonly QueryOutcome[];
  /** The hits of each query, or, fused, of all queries. */
  readonly hits: { readonly lists: readonly Selected[] } | { readonly fused: readonly Fused[] };
  readonly timings: StageTimings;
  /** A hit's JSON without its closing brace. */
  readonly toJson: (hit: Candidate, query: number) => string;
  /** How the lists of a query were fused, if that is explained. */
  readonly explain: ((answer: QueryAnswer) => object) | undefined;
}

/** The pieces of the reply's JSON. */
export function* replyPieces(
  { info }: Retriever,
  { mode, outcomes, hits, timings, toJson, explain }: ReplyParts,
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
  }
  yield `,"timings":${timingsJson(timings)}}`;
}

/** The member `view` of a reply's JSON, after another member. */
export function viewMember({ within }: RetrieverInfo): string {
  return within === undefined ? '' : `,"view":${JSON.stringify(within.join())}`;
}

/** The timings of a reply. */
export function timingsJson(timings: StageTimings): string {
  return JSON.stringify(Object.fromEntries(STAGES.map((stage) => [`${stage}Ms`, rounded(timings[stage])])));
}

/** The error as the client sees it, without the details of a server error. */
export function failed(error: TrawlError): Static<typeof Failed> {
  const { code, message, details } = clientError(error);
  const isOfServer = ERROR_STATUS[code] === 500;
  return {
    ok: false,
    error: {
      code,
      message: isOfServer ? 'The server failed. Its log has the details.' : message,
      maxTied: details.maxTied,
    },
  };
}

function rounded(ms: number): number {
  return Number(ms.toFixed(3));
}
