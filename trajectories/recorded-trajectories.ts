import { createHash } from 'node:crypto';
import type { Question } from '../evaluation/read-questions.ts';
import type { RecordLine } from '../records/read-records.ts';
import type { RecordedQuery } from '../records/recorded-query.ts';
import { applyTemplate, composeText } from '../src/embedding/text-encoder.ts';
import type { QueryTemplate } from '../src/manifest/model-identity.ts';
import type { Search, Trajectory } from './trajectory.ts';

/** Queries in memory at once, about 1 KB each. More are read in several passes over the records. */
const QUERIES_IN_MEMORY = 500_000;

/** What stands between question and query in a text that a client composed. */
const SEPARATOR = ' [SEP] ';

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

export interface RecordedTrajectories {
  readonly counts: RecordedCounts;
  /** SHA-256 of all lines. */
  readonly sha256: string;
  /**
   * The trajectories. Each is complete, wherever its queries stand in the records; their order is the same in every reading. `skip`: how
   * many are left out at the start.
   */
  read(skip?: number): AsyncGenerator<Trajectory, void>;
}

export interface RecordedOptions {
  /** Questions that give golden answers, found by id, else by their text. */
  readonly questions?: readonly Question[] | undefined;
  readonly queriesInMemory?: number;
}

/**
 * Puts recorded queries together to trajectories. Those of one run, step and trajectory belong together, in the order of their turns, else
 * of time. A query that a turn has twice counts once: clients repeat a request that failed. `records` is called for each pass over the
 * records.
 */
export async function openRecordedTrajectories(
  records: () => AsyncIterable<RecordLine>,
  { questions = [], queriesInMemory = QUERIES_IN_MEMORY }: RecordedOptions = {},
): Promise<RecordedTrajectories> {
  const hash = createHash('sha256');
  const counts = { queries: 0, withoutTrajectory: 0, failed: 0, guessed: 0 };
  for await (const { text, query } of records()) {
    hash.update(text).update('\n');
    counts.queries += 1;
    if (query.trajectory === undefined) counts.withoutTrajectory += 1;
    else if (query.error !== undefined) counts.failed += 1;
    else if (query.trajectoryFrom === 'guess') counts.guessed += 1;
  }
  const passes = Math.max(1, Math.ceil((counts.queries - counts.withoutTrajectory - counts.failed) / queriesInMemory));
  const known = new KnownQuestions(questions);
  return {
    counts,
    sha256: hash.digest('hex'),
    async *read(skip = 0) {
      let position = 0;
      for (let pass = 0; pass < passes; pass++) {
        for (const [id, queries] of await groups(records(), (key) => placeOf(key, passes) === pass)) {
          position += 1;
          if (position > skip) yield trajectoryOf(id, queries, known);
        }
      }
    },
  };
}

/** Queries by trajectory, in the order of their first queries. */
async function groups(
  records: AsyncIterable<RecordLine>,
  isWanted: (id: string) => boolean,
): Promise<Map<string, RecordedQuery[]>> {
  const found = new Map<string, RecordedQuery[]>();
  for await (const { query } of records) {
    if (query.trajectory === undefined || query.error !== undefined) continue;
    const id = idOf(query, query.trajectory);
    if (!isWanted(id)) continue;
    const group = found.get(id);
    if (group === undefined) found.set(id, [query]);
    else group.push(query);
  }
  return found;
}

/** Trainers number the trajectories of each step anew. */
function idOf({ policy, step, split, dataset }: RecordedQuery, trajectory: string): string {
  return [dataset, policy, step, split, trajectory].filter((part) => part !== undefined).join('/');
}

/** A number below `places` from an id. */
function placeOf(id: string, places: number): number {
  return places === 1 ? 0 : createHash('sha256').update(id).digest().readUInt32LE(0) % places;
}

function trajectoryOf(id: string, queries: readonly RecordedQuery[], known: KnownQuestions): Trajectory {
  const ordered = inOrder(queries);
  const parts = ordered.map(({ query }) => partsOf(query));
  const text = parts.find(({ question }) => question !== undefined)?.question;
  const questionId = queries.find((query) => query.questionId !== undefined)?.questionId;
  const question = known.find(questionId, text);
  return {
    id,
    question: text ?? question?.question,
    questionId: questionId ?? question?.id ?? id,
    goldenAnswers: question?.goldenAnswers ?? [],
    searches: ordered.map(({ query, turn }, i) => searchOf(query, parts[i]!, turn)),
    output: {},
    place: `the recorded trajectory ${JSON.stringify(id)}`,
  };
}

interface OrderedQuery {
  readonly query: RecordedQuery;
  /** From 1. */
  readonly turn: number;
}

/** Numbers the turns from 1. If a query has no turn, the requests are the turns. */
function inOrder(queries: readonly RecordedQuery[]): OrderedQuery[] {
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
function partsOf(recorded: RecordedQuery): QueryParts {
  const { question, query, history = [], template } = recorded;
  if (question !== undefined) {
    const searched = applyTemplate({ question, query, history }, template as QueryTemplate | undefined);
    return { question, query, searchedText: composeText(searched, '', SEPARATOR.trim()) };
  }
  const at = query.indexOf(SEPARATOR);
  if (at === -1) return { question: undefined, query, searchedText: query };
  return { question: query.slice(0, at), query: query.slice(at + SEPARATOR.length), searchedText: query };
}

function searchOf({ ids, rows, cut }: RecordedQuery, { query, searchedText }: QueryParts, turn: number): Search {
  return {
    query,
    searchedText,
    turn,
    truncated: cut !== undefined,
    shown: ids.map((id, i) => ({ id: id ?? `row:${rows[i]}`, contents: undefined })),
  };
}

class KnownQuestions {
  readonly #byId: ReadonlyMap<string, Question>;
  readonly #byText: ReadonlyMap<string, Question>;

  constructor(questions: readonly Question[]) {
    this.#byId = new Map(questions.map((question) => [question.id, question]));
    this.#byText = new Map(questions.map((question) => [question.question.trim(), question]));
  }

  find(id: string | undefined, text: string | undefined): Question | undefined {
    const byId = id === undefined ? undefined : this.#byId.get(id);
    return byId ?? (text === undefined ? undefined : this.#byText.get(text.trim()));
  }
}
