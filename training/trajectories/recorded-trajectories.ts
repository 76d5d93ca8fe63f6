import { createHash } from 'node:crypto';
import type { Question } from '../../evaluation/read-questions.ts';
import type { QueryTemplate } from '../../src/encoder/identity/model-identity.ts';
import { applyTemplate, composeText } from '../../src/encoder/text-encoder.ts';
import { COMPOSED_SEPARATOR, composedParts, withoutQuestion } from '../../src/server/recording/composed-query.ts';
import { KnownQuestions } from '../records/known-questions.ts';
import type { RecordLine } from '../records/read-records.ts';
import type { RecordedQuery } from '../records/recorded-query.ts';
import { trajectoryKey } from '../records/trajectory-key.ts';
import type { Search, Trajectory } from './trajectory.ts';
import { trajectoryId } from './trajectory-id.ts';

/** Queries in memory at once, about 1 KB each. More are read in several passes over the records. */
const QUERIES_IN_MEMORY = 500_000;

const MOST_GENERATIONS = 10;

export interface RecordedCounts {
  /** Recorded queries. */
  readonly queries: number;
  /** Left out: their client named no trajectory. */
  readonly withoutTrajectory: number;
  /** Left out: they failed, so that the agent saw nothing. */
  readonly failed: number;
  /** Of the others: their trajectory is a guess from equal questions on one connection. */
  readonly guessed: number;
}

/** An index generation that answered a query, and where the first such query stands. */
export interface RecordedGeneration {
  readonly generation: string;
  readonly file: string;
  readonly line: number;
}

interface RecordedTrajectories {
  readonly counts: RecordedCounts;
  /** SHA-256 of all lines. */
  readonly sha256: string;
  /** The first place of each index generation that answered, at most 10 of them. */
  readonly generations: readonly RecordedGeneration[];
  /**
   * The trajectories. Each is complete, wherever its queries stand in the records; their order is the same in every reading. `skip`: how
   * many are left out at the start.
   */
  read(skip?: number): AsyncGenerator<Trajectory, void>;
}

export interface RecordedOptions {
  /** Questions that give golden answers, found as `KnownQuestions` says. */
  readonly questions?: readonly Question[];
  readonly queriesInMemory?: number;
}

/**
 * Groups recorded queries into trajectories. Queries of one run, step and trajectory belong together, in the order of their turns, else
 * of time. A query that a turn has twice counts once: clients repeat a request that failed. `records` is called for each pass over the
 * records.
 */
export async function openRecordedTrajectories(
  records: () => AsyncIterable<RecordLine>,
  { questions = [], queriesInMemory = QUERIES_IN_MEMORY }: RecordedOptions = {},
): Promise<RecordedTrajectories> {
  const hash = createHash('sha256');
  const counts = { queries: 0, withoutTrajectory: 0, failed: 0, guessed: 0 };
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
  const passes = Math.max(1, Math.ceil((counts.queries - counts.withoutTrajectory - counts.failed) / queriesInMemory));
  const known = new KnownQuestions(questions);
  return {
    counts,
    sha256: hash.digest('hex'),
    generations: [...generations.values()],
    async *read(skip = 0) {
      let position = 0;
      for (let pass = 0; pass < passes; pass++) {
        const found = await groups(records(), (key) => placeOf(key, passes) === pass);
        for (const { id, queries } of found.values()) {
          position += 1;
          if (position > skip) yield trajectoryOf(id, queries, known);
        }
      }
    },
  };
}

/** What a trajectory is made of: the other fields of a record would only take memory. */
type KeptQuery = Pick<
  RecordedQuery,
  | 'time'
  | 'requestId'
  | 'place'
  | 'turn'
  | 'questionId'
  | 'dataset'
  | 'question'
  | 'query'
  | 'history'
  | 'template'
  | 'cut'
> & {
  /** Ids of the hits; `row:N` for a passage without one. */
  readonly shown: readonly string[];
};

interface Group {
  /** See `trajectoryId`. */
  readonly id: string;
  readonly queries: KeptQuery[];
}

/** Queries by trajectory, in the order of their first queries. `isWanted` is asked with the key of a trajectory. */
async function groups(
  records: AsyncIterable<RecordLine>,
  isWanted: (key: string) => boolean,
): Promise<ReadonlyMap<string, Group>> {
  const found = new Map<string, Group>();
  for await (const { query } of records) {
    if (query.trajectory === undefined || query.error !== undefined) continue;
    const key = JSON.stringify(trajectoryKey(query));
    if (!isWanted(key)) continue;
    const group = found.get(key);
    if (group === undefined)
      found.set(key, { id: trajectoryId(query, query.trajectory), queries: [keptFields(query)] });
    else group.queries.push(keptFields(query));
  }
  return found;
}

function keptFields({ ids, rows, ...record }: RecordedQuery): KeptQuery {
  const { time, requestId, place, turn, questionId, dataset, question, query, history, template, cut } = record;
  return {
    time,
    requestId,
    place,
    query,
    shown: ids.map((id, i) => id ?? `row:${rows[i]}`),
    turn,
    questionId,
    dataset,
    question,
    history,
    template,
    cut,
  };
}

/** A number below `places` from a key. */
function placeOf(key: string, places: number): number {
  return places === 1 ? 0 : createHash('sha256').update(key).digest().readUInt32LE(0) % places;
}

function trajectoryOf(id: string, queries: readonly KeptQuery[], known: KnownQuestions<Question>): Trajectory {
  const ordered = inOrder(queries);
  const parts = ordered.map(({ query }) => partsOf(query));
  const text = parts.find(({ question }) => question !== undefined)?.question;
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
    searches: ordered.map(({ query, turn }, i) => searchOf(query, parts[i]!, turn)),
    output: {},
    place: `the recorded trajectory ${JSON.stringify(id)}`,
  };
}

interface OrderedQuery {
  readonly query: KeptQuery;
  /** From 1. */
  readonly turn: number;
}

/** Numbers the turns from 1. If a query has no turn, the requests are the turns. */
function inOrder(queries: readonly KeptQuery[]): OrderedQuery[] {
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
    return [{ query, turn }];
  });
}

interface QueryParts {
  readonly question: string | undefined;
  readonly query: string;
  readonly searchedText: string;
}

/** The question and the sub-query, also if the client sent both as one text. */
function partsOf(recorded: KeptQuery): QueryParts {
  const { question, query, history = [], template } = recorded;
  if (question !== undefined) {
    const searched = applyTemplate({ question, query, history }, template as QueryTemplate | undefined);
    return {
      question,
      query: withoutQuestion(query, question),
      searchedText: composeText(searched, '', COMPOSED_SEPARATOR.trim()),
    };
  }
  const { question: part, query: rest } = composedParts(query) ?? { question: undefined, query };
  return { question: part, query: rest, searchedText: query };
}

function searchOf({ shown, cut }: KeptQuery, { query, searchedText }: QueryParts, turn: number): Search {
  return {
    query,
    searchedText,
    turn,
    truncated: cut !== undefined,
    shown: shown.map((id) => ({ id, contents: undefined })),
  };
}
