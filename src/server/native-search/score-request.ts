import { type Static, Type } from 'typebox';
import { nullable, Score } from '../dialects/parts/common-fields.ts';
import { Truncate } from '../dialects/parts/questions.ts';
import { Bm25Field } from './bm25-field.ts';
import { PassageIds, PassageRows } from './named-passages.ts';
import { Failed, Timings, View } from './reply.ts';

/** The ways in which a passage can be scored. */
export const SCORE_MODES = ['dense', 'bm25', 'rerank'] as const;
export type ScoreMode = (typeof SCORE_MODES)[number];

/** Largest rank that a request can ask for. It bounds the search that finds ranks. */
const MAX_RANK = 100_000;

/** The body of a request to /v1/score. */
export const ScoreRequest = Type.Object(
  {
    queries: Type.Array(
      Type.Object(
        {
          question: nullable(Type.String(), 'The question that the query helps to answer.'),
          query: Type.String(),
          ids: PassageIds,
          rows: PassageRows,
          answers: nullable(
            Type.Array(Type.String()),
            'Golden answers. With them, each passage has answer: whether one of them stands in it.',
          ),
        },
        { additionalProperties: false },
      ),
      { description: 'Each query with the passages to score for it.' },
    ),
    index: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 }), Type.Null()], {
      default: null,
      description:
        'Name of the index or group, or several to score as one. Absent: the index in the URL, or the default. With several, passages are named by ids, and scores and ranks are those in the index of the passage.',
    }),
    modes: nullable(
      Type.Array(Type.Enum([...SCORE_MODES])),
      'Which scores are computed: dense, bm25, rerank (the cross-encoder). Absent: those that the index and the server have.',
    ),
    maxRank: Type.Integer({
      minimum: 0,
      maximum: MAX_RANK,
      default: 1_000,
      description: 'Ranks up to this one are found, by a search for that number of hits. 0: no ranks.',
    }),
    bm25: nullable(Bm25Field, 'Parameters of bm25. Absent: the parameters of the index. The order has no effect.'),
    truncate: Truncate,
  },
  { additionalProperties: false },
);
export type ScoreRequest = Static<typeof ScoreRequest>;

const ScoreAndRank = Type.Object({
  score: Score,
  rank: Type.Union([Type.Integer(), Type.Null()], {
    description:
      'Rank among the passages of the index (of the view, if there is one), from 1; null if it is larger than maxRank, or if the passage has no word of the query.',
  }),
});

const ScoredPassage = Type.Object({
  index: Type.Optional(
    Type.String({ description: 'With several indexes: the index of the passage. Absent with one index.' }),
  ),
  row: Type.Integer({ description: "The passage's row in the index." }),
  id: Type.Optional(Type.Unknown({ description: 'As in the corpus; absent if the passage has none.' })),
  dense: Type.Optional(ScoreAndRank),
  bm25: Type.Optional(ScoreAndRank),
  rerank: Type.Optional(Type.Object({ score: Score }, { description: 'The score of the reranker.' })),
  answer: Type.Optional(Type.Boolean({ description: 'Whether a golden answer stands in the passage.' })),
});

/** The body of a reply of /v1/score. */
export const ScoreReply = Type.Object({
  index: Type.Object({ name: Type.String(), generation: Type.String() }),
  view: Type.Optional(View),
  results: Type.Array(
    Type.Union([
      Type.Object({
        ok: Type.Literal(true),
        passages: Type.Array(
          Type.Union([ScoredPassage, Type.Null({ description: 'No passage has that id or row.' })]),
          {
            description: 'In the order of ids, then of rows.',
          },
        ),
      }),
      Failed,
    ]),
    { description: 'One per query, in the order of the queries.' },
  ),
  timings: Timings,
});
