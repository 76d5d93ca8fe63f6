import { type Static, Type } from 'typebox';
import type { TrawlError } from '../../base/errors.ts';
import { orNull } from '../../base/or-null.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { composeText, type EncoderInput } from '../../encoder/text-encoder.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import { answerMatcher } from '../../search/answer-match.ts';
import type { FoundPassage, Retriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { addTimings, type StageTimings } from '../../search/timings.ts';
import { PassageIds, PassageRows, passagesNamed } from '../native-search/named-passages.ts';
import { Failed, failed, Timings, timingsJson, View, viewMember } from '../native-search/reply.ts';
import { Bm25Field, bm25Ranking } from '../native-search/request.ts';
import type { RequestLimits } from '../server-config.ts';
import { defineDialect } from './dialect.ts';
import { nullable, refuse, Score, Truncate } from './parts/common-fields.ts';
import { pieces, separated, tooLarge } from './parts/search-plan.ts';

/** The ways in which a passage can be scored. */
const SCORE_MODES = ['dense', 'bm25', 'rerank'] as const;
type ScoreMode = (typeof SCORE_MODES)[number];

/** Largest rank that a request can ask for. It bounds the search that finds ranks. */
const MAX_RANK = 100_000;

const ScoreRequest = Type.Object(
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
type ScoreRequest = Static<typeof ScoreRequest>;

const ScoreAndRank = Type.Object({
  score: Score,
  rank: orNull(
    Type.Integer(),
    'Rank among the passages of the index (of the view, if there is one), from 1; null if it is larger than maxRank, or if the passage has no word of the query.',
  ),
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

const ScoreReply = Type.Object({
  index: Type.Object({ name: Type.String(), generation: Type.String() }),
  view: Type.Optional(View),
  results: Type.Array(
    Type.Union([
      Type.Object({
        ok: Type.Literal(true),
        passages: Type.Array(
          Type.Union([ScoredPassage, Type.Null({ description: 'No passage has that id or row.' })]),
          { description: 'In the order of ids, then of rows.' },
        ),
      }),
      Failed,
    ]),
    { description: 'One per query, in the order of the queries.' },
  ),
  timings: Timings,
});

/**
 * Scores of given passages for given queries, in every mode of the index, with their exact ranks and whether they have an answer: for
 * process rewards and analyses that do not hold the corpus in the trainer's memory.
 */
export const nativeScore = defineDialect({
  name: 'native-score',
  path: '/v1/score',
  summary: 'Scores and ranks of given passages',
  // A mode or weights that the index does not have.
  statuses: { NOT_SUPPORTED: 501 },
  request: ScoreRequest,
  reply: ScoreReply,
  example: {
    queries: [{ query: 'who designed the Brooklyn Bridge', ids: ['s-0001', 's-0003'], answers: ['John A. Roebling'] }],
    maxRank: 100,
  },
  plan(request, limits) {
    const { queries, maxRank } = request;
    refuseTooMuch(request, limits);
    return {
      queries: queries.length,
      k: maxRank,
      index: request.index,
      async run(retriever, signal) {
        const { info } = retriever;
        const slice = new TimeSlice(signal);
        if (info.members !== undefined) refuseRows(queries);
        const found = await findAll(retriever, request, signal);
        const served = [...info.modes, ...(info.reranker === null ? [] : ['rerank'])];
        const modes = request.modes ?? SCORE_MODES.filter((mode) => served.includes(mode));
        const asked: AskedQuery[] = queries.map(({ question, query }, i) => ({
          query: question ? { question, query } : query,
          passages: found.passages[i]!.filter((passage) => passage !== undefined),
        }));
        const call = {
          queries: asked.map(({ query, passages }) => ({ query, rows: passages.map(({ row }) => row) })),
          maxRank,
          bm25: bm25Ranking(request.bm25, info),
          truncate: request.truncate ?? limits.truncate,
          signal,
        };
        let { timings } = found;
        const scores = new Map<ScoreMode, readonly ScoreOutcome[]>();
        for (const mode of new Set(modes)) {
          const result =
            mode === 'rerank' ? await rerankScores(retriever, asked, signal) : await retriever.score({ ...call, mode });
          timings = addTimings(timings, result.timings);
          scores.set(mode, result.outcomes);
        }
        const failures: TrawlError[] = [];
        const results: string[] = [];
        for (const [i, { answers }] of queries.entries()) {
          const byMode = [...scores].map(([mode, outcomes]) => [mode, outcomes[i]!] as const);
          // Of several modes that fail, the reply names the last one.
          const failure = byMode.flatMap(([, outcome]) => (outcome.ok ? [] : [outcome.error])).at(-1);
          if (failure !== undefined) failures.push(failure);
          results.push(
            failure === undefined ? resultJson(found.passages[i]!, byMode, answers) : JSON.stringify(failed(failure)),
          );
          if (slice.isOver) await slice.yield();
        }
        return { timings, failures, pieces: reply(info, results, timings) };
      },
    };
  },
});

interface AskedQuery {
  readonly query: EncoderInput;
  readonly passages: readonly FoundPassage[];
}

/** The scores of a query's passages in one mode, as the reply has them. */
type ScoreOutcome =
  | { readonly ok: true; readonly scores: readonly object[] }
  | { readonly ok: false; readonly error: TrawlError };

/** Scores as the reranker of a search gives them. */
async function rerankScores(retriever: Retriever, asked: readonly AskedQuery[], signal: AbortSignal) {
  const lists = asked.map(({ query, passages }) => ({
    query: composeText(query, '', null),
    passages: passages.map(({ document }) => documentFields(document).contents),
  }));
  const { outcomes, timings } = await retriever.rerank({ lists, signal });
  return {
    outcomes: outcomes.map(
      (outcome): ScoreOutcome =>
        outcome.ok ? { ok: true, scores: Array.from(outcome.scores, (score) => ({ score })) } : outcome,
    ),
    timings,
  };
}

/** Limits the lists of a search among the passages and of one for the ranks. @throws RequestError K_TOO_LARGE. */
function refuseTooMuch({ queries, maxRank }: ScoreRequest, { maxHits }: RequestLimits): void {
  const passages = queries.reduce((sum, { ids, rows }) => sum + ids.length + rows.length, 0);
  for (const [field, count, what] of [
    ['queries', passages, 'passages'],
    ['maxRank', maxRank, 'ranks'],
  ] as const) {
    if (count * queries.length <= maxHits) continue;
    const reason = `${queries.length} queries times ${count} ${what} exceed the limit of ${maxHits} per request.`;
    throw tooLarge(field, reason, `Send fewer queries per request${field === 'maxRank' ? ', or lower maxRank' : ''}.`);
  }
}

/** Rows of several indexes would be ambiguous. @throws RequestError INVALID_REQUEST. */
function refuseRows(queries: ScoreRequest['queries']): void {
  const at = queries.findIndex(({ rows }) => rows.length > 0);
  const msg =
    'A row number belongs to one index. Name the passages by ids, or score each index in a request of its own.';
  if (at !== -1) refuse(['queries', at, 'rows'], msg);
}

/** The passages of each query, in the order of its ids and rows. */
async function findAll(
  retriever: Retriever,
  { queries }: ScoreRequest,
  signal: AbortSignal,
): Promise<{ passages: (FoundPassage | undefined)[][]; timings: StageTimings }> {
  const ids = queries.flatMap((query) => query.ids);
  const rows = queries.flatMap((query) => query.rows);
  const { passages: all, timings } = await passagesNamed(retriever, { ids, rows }, signal);
  let id = 0;
  let row = ids.length;
  const passages = queries.map((query) => {
    const own = [...all.slice(id, id + query.ids.length), ...all.slice(row, row + query.rows.length)];
    id += query.ids.length;
    row += query.rows.length;
    return own;
  });
  return { passages, timings };
}

function resultJson(
  passages: readonly (FoundPassage | undefined)[],
  byMode: readonly (readonly [mode: ScoreMode, outcome: ScoreOutcome])[],
  answers: readonly string[] | null,
): string {
  const hasAnswer = answers === null ? undefined : answerMatcher(answers);
  let at = 0;
  const list = passages.map((passage) => {
    if (passage === undefined) return 'null';
    const { row, source, document } = passage;
    const { idJson, contents } = documentFields(document);
    const scores = Object.fromEntries(byMode.map(([mode, outcome]) => [mode, outcome.ok && outcome.scores[at]]));
    at++;
    const place = JSON.stringify(source === undefined ? { row } : { index: source.index, row: source.row });
    const members = JSON.stringify({ ...scores, answer: hasAnswer?.(contents) });
    const id = idJson === undefined ? '' : `,"id":${idJson}`;
    return `${place.slice(0, -1)}${id}${members === '{}' ? '}' : `,${members.slice(1)}`}`;
  });
  return `{"ok":true,"passages":[${list.join(',')}]}`;
}

function reply(info: RetrieverInfo, results: readonly string[], timings: StageTimings): Iterable<string> {
  const index = JSON.stringify({ name: info.index, generation: info.generation });
  const list = separated(results, (result) => result);
  return pieces`{"index":${index}${viewMember(info)},"results":[${list}],"timings":${timingsJson(timings)}}`;
}
