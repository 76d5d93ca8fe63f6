import { createHash } from 'node:crypto';
import type { Question } from '../../evaluation/read-questions.ts';
import { formatCount } from '../../src/base/format.ts';
import type { QueryTemplate } from '../../src/encoder/identity/model-identity.ts';
import { applyTemplate, composeText } from '../../src/encoder/text-encoder.ts';
import { COMPOSED_SEPARATOR, composedParts, withoutQuestion } from '../../src/server/recording/composed-query.ts';
import { KnownQuestions } from '../records/known-questions.ts';
import { type RecordLine, readRecords } from '../records/read-records.ts';
import { type RecordedQuery, trajectoryKey } from '../records/recorded-query.ts';
import type { OpenTrajectories, RecordedGeneration, Search, Trajectory } from './trajectory.ts';

/** Queries in memory at once, about 1 KB each. More are read in several passes over the records. */
const QUERIES_IN_MEMORY = 500_000;

const MOST_GENERATIONS = 10;

export interface RecordedOptions {
  /** Questions that give golden answers, found as `KnownQuestions` says. */
  readonly questions?: readonly Question[];
  readonly queriesInMemory?: number;
}

/**
 * Trajectories of recorded calls, with the golden answers of `questions`, if there are any.
 *
 * @throws TrawlError CORPUS_NOT_FOUND, CORPUS_BAD_LINE, CANCELLED.
 */
export async function openRecords(
  files: readonly string[],
  questions: readonly Question[] | undefined,
  { signal, note }: { readonly signal: AbortSignal; readonly note: (text: string) => void },
): Promise<OpenTrajectories> {
  const recorded = await openRecordedTrajectories(() => readRecords(files, { signal }), { questions });
  const { queries, withoutTrajectory, failed, guessed } = recorded.counts;
  if (withoutTrajectory > 0) {
    note(
      `${formatCount(withoutTrajectory)} of ${formatCount(queries)} recorded queries have no trajectory and are left out; docs/recording.md says how clients name it.`,
    );
  }
  if (failed > 0) note(`${formatCount(failed)} failed queries are left out.`);
  if (guessed > 0) note(`${formatCount(guessed)} queries are in guessed trajectories.`);
  return recorded;
}

/**
 * Groups recorded queries into trajectories. Queries of one run, step and trajectory belong together, in the order of their turns, else
 * of time. A query that a turn has twice counts once: clients repeat a request that failed. Each trajectory is complete, wherever its
 * queries stand in the records, and the trajectories have the same order in every reading.
 *
 * @param records called for each pass over the records.
 *
 * @internal Exported for tests.
 */
export async function openRecordedTrajectories(
  records: () => AsyncIterable<RecordLine>,
  { questions = [], queriesInMemory = QUERIES_IN_MEMORY }: RecordedOptions = {},
) {
  const hash = createHash('sha256');
  const counts = {
    queries: 0,
    /** Left out: their client named no trajectory, or they failed, so that the agent saw nothing. */
    withoutTrajectory: 0,
    failed: 0,
    /** Of the others: their trajectory is a guess from equal questions on one connection. */
    guessed: 0,
  };
  const generations = new Map<string, RecordedGeneration>();
  for await (const { text, query, file, line } of records()) {
    hash.update(text).update('\n');
    counts.queries += 1;
    if (query.trajectory === undefined) counts.withoutTrajectory += 1;
    else if (query.error !== undefined) counts.failed += 1;
    else {
      const { generation } = query;
      if (query.trajectoryFrom === 'guess') counts.guessed += 1;
      if (generations.size < MOST_GENERATIONS && !generations.has(generation)) {
        generations.set(generation, { generation, file, line });
      }
    }
  }
  const used = counts.queries - counts.withoutTrajectory - counts.failed;
  const passes = Math.max(1, Math.ceil(used / queriesInMemory));
  const known = new KnownQuestions(questions);
  return {
    counts,
    sha256: hash.digest('hex'),
    generations: [...generations.values()],
    async *read(skip: number, onShare: (share: number) => void) {
      let position = 0;
      let done = 0;
      for (let pass = 0; pass < passes; pass++) {
        for (const { id, queries } of await groups(records(), pass, passes)) {
          position += 1;
          if (position <= skip) continue;
          const trajectory = recordedTrajectory(id, queries, known);
          done += trajectory.searches.length;
          onShare(Math.min(1, done / used));
          yield trajectory;
        }
      }
    },
  };
}

type KeptQuery = ReturnType<typeof keptFields>;

/** What a trajectory is made of: the other fields of a record would only take memory. */
function keptFields({ ids, rows, ...record }: RecordedQuery) {
  const { time, requestId, place, turn, questionId, dataset, question, query, history, template, cut } = record;
  const shown = ids.map((id, i) => id ?? `row:${rows[i]}`);
  return { time, requestId, place, turn, questionId, dataset, question, query, history, template, cut, shown };
}

/** The trajectories of a pass with their queries, in the order of their first queries. A hash divides trajectories among the passes. */
async function groups(records: AsyncIterable<RecordLine>, pass: number, passes: number) {
  const found = new Map<string, { readonly id: string; readonly queries: KeptQuery[] }>();
  for await (const { query } of records) {
    if (query.trajectory === undefined || query.error !== undefined) continue;
    const key = JSON.stringify(trajectoryKey(query));
    if (passes > 1 && createHash('sha256').update(key).digest().readUInt32LE(0) % passes !== pass) continue;
    const group = found.get(key);
    if (group === undefined) found.set(key, { id: trajectoryId(query), queries: [keptFields(query)] });
    else group.queries.push(keptFields(query));
  }
  return found.values();
}

/** An id that could be read as one with names. */
const NAMED = /^(dataset|policy|step|split|trajectory)=/;

/**
 * The id of a recorded trajectory for people and files: the recorded one, or `dataset=D/policy=P/step=N/split=S/trajectory=ID` of what the
 * record names. `/` and `%` in names are written in percent encoding, so that different trajectories have different ids.
 */
function trajectoryId({ dataset, policy, step, split, trajectory = '' }: RecordedQuery): string {
  const named = Object.entries({ dataset, policy, step, split }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${String(value).replace(/[%/]/g, encodeURIComponent)}`],
  );
  if (named.length === 0 && !NAMED.test(trajectory)) return trajectory;
  return [...named, `trajectory=${trajectory}`].join('/');
}

function recordedTrajectory(id: string, queries: readonly KeptQuery[], known: KnownQuestions<Question>): Trajectory {
  const searches = searchesInOrder(queries);
  const text = searches.find(({ question }) => question !== undefined)?.question;
  const questionId = queries.find((query) => query.questionId !== undefined)?.questionId;
  // All queries of a trajectory have one data set.
  const dataset = queries[0]!.dataset;
  const question = known.find({ id: questionId, dataset, text });
  return {
    id,
    question: text ?? question?.question,
    questionId: questionId ?? question?.id,
    dataset,
    goldenAnswers: question?.goldenAnswers ?? [],
    searches: searches.map(({ question: _, ...search }) => search),
    output: {},
    place: `the recorded trajectory ${JSON.stringify(id)}`,
  };
}

type RecordedSearch = Search & { readonly question: string | undefined };

/** Numbers the turns from 1. If a query has no turn, the requests are the turns. */
function searchesInOrder(queries: readonly KeptQuery[]): RecordedSearch[] {
  const hasTurns = queries.every(({ turn }) => turn !== undefined);
  const sorted = [...queries].sort(
    (a, b) => (hasTurns ? a.turn! - b.turn! : 0) || (a.time === b.time ? a.place - b.place : a.time < b.time ? -1 : 1),
  );
  const turns = new Map<string, number>();
  const seen = new Set<string>();
  return sorted.flatMap((query, i) => {
    const name = hasTurns ? String(query.turn) : query.requestId || `#${i}`;
    const turn = turns.get(name) ?? turns.size + 1;
    turns.set(name, turn);
    const key = `${turn}\0${query.query}`;
    if (seen.has(key)) return [];
    seen.add(key);
    const shown = query.shown.map((id) => ({ id, contents: undefined }));
    return [{ ...searchedTexts(query), turn, truncated: query.cut !== undefined, shown }];
  });
}

/** The question and the sub-query, also if the client sent both as one text, and the text that was searched. */
function searchedTexts({
  question,
  query,
  history = [],
  template,
}: KeptQuery): Pick<RecordedSearch, 'question' | 'query' | 'searchedText'> {
  if (question === undefined) {
    const { question: part, query: rest } = composedParts(query) ?? { question: undefined, query };
    return { question: part, query: rest, searchedText: query };
  }
  const searched = applyTemplate({ question, query, history }, template as QueryTemplate | undefined);
  const searchedText = composeText(searched, '', COMPOSED_SEPARATOR.trim());
  return { question, query: withoutQuestion(query, question), searchedText };
}
