import type { TrawlError } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { composeText, type EncoderInput } from '../../encoder/text-encoder.ts';
import type { Bm25Ranking } from '../../engine/lexical/bm25.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import { answerMatcher } from '../../search/answer-match.ts';
import type { FoundPassage, ScoreCall } from '../../search/calls/lookup-calls.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { addTimings, type StageTimings } from '../../search/timings.ts';
import { RequestError } from '../errors/request-error.ts';
import { bm25Ranking } from '../native-search/bm25-field.ts';
import { passagesNamed } from '../native-search/named-passages.ts';
import { failed, timingsJson, viewMember } from '../native-search/reply.ts';
import { SCORE_MODES, type ScoreMode, ScoreReply, ScoreRequest } from '../native-search/score-request.ts';
import type { RequestLimits } from '../server-config.ts';
import { defineDialect } from './dialect.ts';
import { separated } from './parts/search-plan.ts';

/**
 * Scores of given passages for given queries, in every mode of the index, with their exact ranks and whether they have an answer: for
 * process rewards and analyses without the corpus in the trainer's memory.
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
  client: null,
  plan(request, limits) {
    const { queries, maxRank } = request;
    refuseTooMuch(request, limits);
    return {
      queries: queries.length,
      k: maxRank,
      index: request.index,
      async run(retriever, signal) {
        const slice = new TimeSlice(signal);
        if (retriever.info.members !== undefined) refuseRows(queries);
        const found = await findAll(retriever, request, signal);
        const modes = request.modes ?? SCORE_MODES.filter((mode) => isServed(mode, retriever.info));
        const asked: AskedQuery[] = queries.map(({ question, query }, i) => ({
          query: question === null || question === '' ? query : { question, query },
          passages: found.passages[i]!.filter((passage) => passage !== undefined),
        }));
        const call = {
          maxRank,
          bm25: bm25Ranking(request.bm25, retriever.info),
          truncate: request.truncate ?? limits.truncate,
          signal,
        };
        const failures: (TrawlError | undefined)[] = queries.map(() => undefined);
        const scores = new Map<ScoreMode, readonly (readonly object[])[]>();
        let { timings } = found;
        for (const mode of new Set(modes)) {
          const result = await (mode === 'rerank'
            ? rerankScores(retriever, asked, signal)
            : searchScores(retriever, asked, { ...call, mode }));
          timings = addTimings(timings, result.timings);
          scores.set(
            mode,
            result.outcomes.map((outcome, i) => {
              if (outcome.ok) return outcome.scores;
              failures[i] = outcome.error;
              return [];
            }),
          );
        }
        const results: string[] = [];
        for (const [i, { answers }] of queries.entries()) {
          const failure = failures[i];
          results.push(
            failure === undefined
              ? resultJson(
                  found.passages[i]!,
                  [...scores].map(([mode, each]) => [mode, each[i]!]),
                  answers,
                )
              : JSON.stringify(failed(failure)),
          );
          if (slice.isOver) await slice.yield();
        }
        return {
          timings,
          search: null,
          truncated: 0,
          failures: failures.filter((failure) => failure !== undefined),
          pieces: reply(retriever, results, timings),
        };
      },
    };
  },
});

interface AskedQuery {
  readonly query: EncoderInput;
  readonly passages: readonly FoundPassage[];
}

/** The scores of each query's passages in one mode, as the reply has them. */
interface ModeScores {
  readonly outcomes: readonly (
    | { readonly ok: true; readonly scores: readonly object[] }
    | { readonly ok: false; readonly error: TrawlError }
  )[];
  readonly timings: StageTimings;
}

function isServed(mode: ScoreMode, { modes, reranker }: RetrieverInfo): boolean {
  return mode === 'rerank' ? reranker !== null : modes.includes(mode);
}

function searchScores(
  retriever: Retriever,
  asked: readonly AskedQuery[],
  { bm25, ...call }: Omit<ScoreCall, 'queries' | 'bm25'> & { readonly bm25: Bm25Ranking | undefined },
): Promise<ModeScores> {
  const queries = asked.map(({ query, passages }) => ({ query, rows: passages.map(({ row }) => row) }));
  return retriever.score({ ...call, queries, bm25 });
}

/** Scores as the reranker of a search gives them. */
async function rerankScores(
  retriever: Retriever,
  asked: readonly AskedQuery[],
  signal: AbortSignal,
): Promise<ModeScores> {
  const lists = asked.map(({ query, passages }) => ({
    query: composeText(query, '', null),
    passages: passages.map(({ document }) => documentFields(document).contents),
  }));
  const { outcomes, timings } = await retriever.rerank({ lists, signal });
  return {
    outcomes: outcomes.map((outcome) =>
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
    throw new RequestError(
      'K_TOO_LARGE',
      `${reason} Send fewer queries per request${field === 'maxRank' ? ', or lower maxRank' : ''}.`,
      [{ type: 'less_than_equal', loc: ['body', field], msg: reason }],
    );
  }
}

/** Rows of several indexes would be ambiguous. @throws RequestError INVALID_REQUEST. */
function refuseRows(queries: ScoreRequest['queries']): void {
  const at = queries.findIndex(({ rows }) => rows.length > 0);
  if (at === -1) return;
  const msg = 'A row is a row of one index. Name passages of several indexes by ids, or score each index for itself';
  throw new RequestError('INVALID_REQUEST', `body.queries.${at}.rows: ${msg}.`, [
    { type: 'value_error', loc: ['body', 'queries', at, 'rows'], msg },
  ]);
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
  scores: readonly (readonly [mode: ScoreMode, scores: readonly object[]])[],
  answers: readonly string[] | null,
): string {
  const hasAnswer = answers === null ? undefined : answerMatcher(answers);
  let at = 0;
  const list = passages.map((passage) => {
    if (passage === undefined) return 'null';
    const { idJson, contents } = documentFields(passage.document);
    const { source } = passage;
    const byMode = Object.fromEntries(scores.map(([mode, each]) => [mode, each[at]!]));
    at++;
    const members = JSON.stringify({ ...byMode, answer: hasAnswer?.(contents) }).slice(1);
    const id = idJson === undefined ? '' : `"id":${idJson}`;
    const place =
      source === undefined ? `"row":${passage.row}` : `"index":${JSON.stringify(source.index)},"row":${source.row}`;
    const head = [place, id].filter((part) => part !== '').join(',');
    return `{${head}${members === '}' ? '' : ','}${members}`;
  });
  return `{"ok":true,"passages":[${list.join(',')}]}`;
}

function* reply({ info }: Retriever, results: readonly string[], timings: StageTimings): Generator<string> {
  yield `{"index":${JSON.stringify({ name: info.index, generation: info.generation })}${viewMember(info)},"results":[`;
  yield* separated(results, (result) => result);
  yield `],"timings":${timingsJson(timings)}}`;
}
