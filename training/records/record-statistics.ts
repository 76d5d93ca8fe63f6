import { Fingerprints } from './fingerprints.ts';
import type { DamagedLine } from './read-records.ts';
import type { RecordedOpening } from './recorded-opening.ts';
import type { RecordedQuery } from './recorded-query.ts';
import { trajectoryKey } from './trajectory-key.ts';

/** Numbers by name, the largest first. */
type Counts = Readonly<Record<string, number>>;

export interface RecordStatistics {
  readonly queries: number;
  /** Times of the first and last query; null without queries. */
  readonly from: string | null;
  readonly to: string | null;
  /** Failed queries by error code. */
  readonly errors: Counts;
  readonly trajectories: {
    /** Distinct trajectories, by where their names come from. */
    readonly named: number;
    readonly fromTraces: number;
    readonly guessed: number;
    /** Queries without a trajectory. */
    readonly queriesWithout: number;
    /** Distinct pairs of trajectory and turn. */
    readonly turns: number;
  };
  /** Distinct pairs of question and query, and queries whose pair an earlier one has. */
  readonly distinctQueries: number;
  readonly repeatedQueries: number;
  /** Queries that equal an earlier one in trajectory, turn and text: repeated calls of a client. */
  readonly retries: number;
  /** Passages and pages that clients opened: all, those that were found, and those without a trajectory. */
  readonly openings: { readonly count: number; readonly found: number; readonly withoutTrajectory: number };
  /** Queries of which the token limit cut something, by what it cut. */
  readonly cut: Counts;
  /** Queries whose answers the server changed or delayed on purpose, by what it did. */
  readonly perturbed: Counts;
  readonly dialects: Counts;
  readonly indexes: Counts;
  readonly generations: Counts;
  readonly modes: Counts;
  readonly k: Counts;
  readonly turns: Counts;
  readonly policies: Counts;
  readonly datasets: Counts;
  readonly splits: Counts;
  /** Last lines that a killed server left unfinished. */
  readonly unfinishedLines: number;
  readonly damagedLines: number;
  /** The first damaged lines. */
  readonly damaged: readonly Omit<DamagedLine, 'unfinished'>[];
}

/** Names that a list of counts distinguishes; the others are counted together, so that memory is bounded. */
const MAX_NAMES = 1000;
const MAX_DAMAGED = 20;
const OTHERS = '(others)';

class Tally {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    const known = this.#counts.has(name) || this.#counts.size < MAX_NAMES ? name : OTHERS;
    this.#counts.set(known, (this.#counts.get(known) ?? 0) + 1);
  }

  counts(): Counts {
    return Object.fromEntries([...this.#counts].sort(([, a], [, b]) => b - a));
  }
}

/** Gathers the statistics of records. Takes about 50 bytes for each distinct query, trajectory and turn. */
export class RecordSummary {
  #queries = 0;
  #from: string | null = null;
  #to: string | null = null;
  #withoutTrajectory = 0;
  #repeated = 0;
  #retries = 0;
  #openings = 0;
  #openingsFound = 0;
  #openingsWithoutTrajectory = 0;
  #unfinished = 0;
  #damagedCount = 0;
  readonly #damaged: Omit<DamagedLine, 'unfinished'>[] = [];
  readonly #trajectories = { named: new Fingerprints(), traceparent: new Fingerprints(), guess: new Fingerprints() };
  readonly #turnsOfTrajectories = new Fingerprints();
  readonly #texts = new Fingerprints();
  readonly #calls = new Fingerprints();
  readonly #errors = new Tally();
  readonly #cut = new Tally();
  readonly #perturbed = new Tally();
  readonly #dialects = new Tally();
  readonly #indexes = new Tally();
  readonly #generations = new Tally();
  readonly #modes = new Tally();
  readonly #k = new Tally();
  readonly #turns = new Tally();
  readonly #policies = new Tally();
  readonly #datasets = new Tally();
  readonly #splits = new Tally();

  add(query: RecordedQuery): void {
    this.#queries++;
    if (this.#from === null || query.time < this.#from) this.#from = query.time;
    if (this.#to === null || query.time > this.#to) this.#to = query.time;
    if (query.error !== undefined) this.#errors.add(query.error);
    if (query.cut !== undefined) this.#cut.add(query.cut);
    for (const name of Object.keys(query.perturbed ?? {})) this.#perturbed.add(name);
    this.#dialects.add(query.dialect);
    this.#indexes.add(query.index);
    this.#generations.add(query.generation);
    this.#modes.add(query.mode ?? '(default)');
    this.#k.add(String(query.k));
    if (query.turn !== undefined) this.#turns.add(String(query.turn));
    if (query.policy !== undefined) this.#policies.add(query.policy);
    if (query.dataset !== undefined) this.#datasets.add(query.dataset);
    if (query.split !== undefined) this.#splits.add(query.split);
    if (!this.#texts.add(query.question, query.query)) this.#repeated++;
    this.#addTrajectory(query);
  }

  addOpening({ rows, trajectory }: RecordedOpening): void {
    this.#openings++;
    if (rows.length > 0) this.#openingsFound++;
    if (trajectory === undefined) this.#openingsWithoutTrajectory++;
  }

  #addTrajectory(record: RecordedQuery): void {
    const { trajectory, trajectoryFrom, turn, question, query } = record;
    if (trajectory === undefined) {
      this.#withoutTrajectory++;
      return;
    }
    this.#trajectories[trajectoryFrom ?? 'named'].add(...trajectoryKey(record));
    if (turn === undefined) return;
    this.#turnsOfTrajectories.add(...trajectoryKey(record), turn);
    if (!this.#calls.add(...trajectoryKey(record), turn, question, query)) this.#retries++;
  }

  addDamaged({ unfinished, ...line }: DamagedLine): void {
    if (unfinished) {
      this.#unfinished++;
      return;
    }
    this.#damagedCount++;
    if (this.#damaged.length < MAX_DAMAGED) this.#damaged.push(line);
  }

  statistics(): RecordStatistics {
    return {
      queries: this.#queries,
      from: this.#from,
      to: this.#to,
      errors: this.#errors.counts(),
      trajectories: {
        named: this.#trajectories.named.size,
        fromTraces: this.#trajectories.traceparent.size,
        guessed: this.#trajectories.guess.size,
        queriesWithout: this.#withoutTrajectory,
        turns: this.#turnsOfTrajectories.size,
      },
      distinctQueries: this.#queries - this.#repeated,
      repeatedQueries: this.#repeated,
      retries: this.#retries,
      openings: {
        count: this.#openings,
        found: this.#openingsFound,
        withoutTrajectory: this.#openingsWithoutTrajectory,
      },
      cut: this.#cut.counts(),
      perturbed: this.#perturbed.counts(),
      dialects: this.#dialects.counts(),
      indexes: this.#indexes.counts(),
      generations: this.#generations.counts(),
      modes: this.#modes.counts(),
      k: this.#k.counts(),
      turns: this.#turns.counts(),
      policies: this.#policies.counts(),
      datasets: this.#datasets.counts(),
      splits: this.#splits.counts(),
      unfinishedLines: this.#unfinished,
      damagedLines: this.#damagedCount,
      damaged: this.#damaged,
    };
  }
}
