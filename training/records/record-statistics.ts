import { Fingerprints } from './fingerprints.ts';
import type { DamagedLine } from './read-records.ts';
import { type RecordedOpening, type RecordedQuery, trajectoryKey } from './recorded-query.ts';

type Counts = Readonly<Record<string, number>>;

const COUNTED_BY = {
  errors: ({ error }) => error,
  /** Queries of which the token limit cut something, by what it cut. */
  cut: ({ cut }) => cut,
  /** Queries whose answers the server changed or delayed on purpose, by what it did. */
  perturbed: ({ perturbed = {} }) => Object.keys(perturbed),
  dialects: ({ dialect }) => dialect,
  indexes: ({ index }) => index,
  generations: ({ generation }) => generation,
  modes: ({ mode = '(default)' }) => mode,
  k: ({ k }) => k,
  turns: ({ turn }) => turn,
  policies: ({ policy }) => policy,
  datasets: ({ dataset }) => dataset,
  splits: ({ split }) => split,
} as const satisfies Readonly<
  Record<string, (query: RecordedQuery) => string | number | undefined | readonly string[]>
>;
type CountName = keyof typeof COUNTED_BY;
const COUNT_NAMES = Object.keys(COUNTED_BY) as CountName[];

export type RecordStatistics = ReturnType<RecordSummary['statistics']>;

/** Names that a list of counts distinguishes; the others are counted together, so that memory is bounded. */
const MAX_NAMES = 1000;
const MAX_DAMAGED = 20;
const OTHERS = '(others)';

/** Gathers the statistics of records. Takes about 50 bytes for each distinct query, trajectory and turn. */
export class RecordSummary {
  #queries = 0;
  #from: string | null = null;
  #to: string | null = null;
  #withoutTrajectory = 0;
  #repeated = 0;
  #retries = 0;
  /** Passages and pages that clients opened: all, those that were found, and those without a trajectory. */
  readonly #openings = { count: 0, found: 0, withoutTrajectory: 0 };
  #unfinished = 0;
  #damagedCount = 0;
  readonly #damaged: Omit<DamagedLine, 'unfinished'>[] = [];
  readonly #trajectories = { named: new Fingerprints(), traceparent: new Fingerprints(), guess: new Fingerprints() };
  readonly #turnsOfTrajectories = new Fingerprints();
  readonly #texts = new Fingerprints();
  readonly #calls = new Fingerprints();
  readonly #counts = new Map(COUNT_NAMES.map((name) => [name, new Map<string, number>()]));

  add(record: RecordedQuery): void {
    const { time, trajectory, trajectoryFrom, turn, question, query } = record;
    this.#queries++;
    if (this.#from === null || time < this.#from) this.#from = time;
    if (this.#to === null || time > this.#to) this.#to = time;
    for (const [by, counts] of this.#counts) {
      for (const found of [COUNTED_BY[by](record)].flat()) {
        if (found === undefined) continue;
        const name = counts.has(String(found)) || counts.size < MAX_NAMES ? String(found) : OTHERS;
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
    }
    if (!this.#texts.add(question, query)) this.#repeated++;
    if (trajectory === undefined) {
      this.#withoutTrajectory++;
      return;
    }
    const key = trajectoryKey(record);
    this.#trajectories[trajectoryFrom ?? 'named'].add(...key);
    if (turn === undefined) return;
    this.#turnsOfTrajectories.add(...key, turn);
    if (!this.#calls.add(...key, turn, question, query)) this.#retries++;
  }

  addOpening({ rows, trajectory }: RecordedOpening): void {
    this.#openings.count++;
    if (rows.length > 0) this.#openings.found++;
    if (trajectory === undefined) this.#openings.withoutTrajectory++;
  }

  addDamaged({ unfinished, ...line }: DamagedLine): void {
    if (unfinished) {
      this.#unfinished++;
      return;
    }
    this.#damagedCount++;
    if (this.#damaged.length < MAX_DAMAGED) this.#damaged.push(line);
  }

  statistics() {
    const sorted = Array.from(this.#counts, ([name, counts]) => [
      name,
      Object.fromEntries([...counts].sort(([, a], [, b]) => b - a)),
    ]);
    const { errors, ...counts } = Object.fromEntries(sorted) as Record<CountName, Counts>;
    return {
      queries: this.#queries,
      /** Times of the first and last query; null without queries. */
      from: this.#from,
      to: this.#to,
      errors,
      trajectories: {
        /** Distinct trajectories, by where their names come from. */
        named: this.#trajectories.named.size,
        fromTraces: this.#trajectories.traceparent.size,
        guessed: this.#trajectories.guess.size,
        queriesWithout: this.#withoutTrajectory,
        /** Distinct pairs of trajectory and turn. */
        turns: this.#turnsOfTrajectories.size,
      },
      /** Distinct pairs of question and query, and queries whose pair an earlier one has. */
      distinctQueries: this.#queries - this.#repeated,
      repeatedQueries: this.#repeated,
      /** Queries that equal an earlier one in trajectory, turn and text: repeated calls of a client. */
      retries: this.#retries,
      openings: this.#openings,
      ...counts,
      /** Last lines that a killed server left unfinished. */
      unfinishedLines: this.#unfinished,
      damagedLines: this.#damagedCount,
      damaged: this.#damaged,
    };
  }
}
