import { DROP_REASONS, type DropReason } from './candidate.ts';
import { type Bin, binsOf, countValue, rankBins } from './histogram.ts';
import type { MinedPassage } from './mined-query.ts';
import { type QueryOutcome, UNMINED_REASONS, type UnminedReason } from './query-outcome.ts';

/** Examples of rows, and of dropped candidates for each reason. */
const ROW_EXAMPLES = 5;
const DROP_EXAMPLES = 3;
const EXCERPT_CHARACTERS = 300;

/** A passage to read. */
interface PassageExample {
  readonly id: string;
  readonly rank: number | null;
  readonly score: number | null;
  /** The beginning of its contents. */
  readonly contents: string;
}

interface RowExample {
  readonly query_id: string;
  readonly query: string;
  readonly answers: readonly string[];
  readonly positive: PassageExample;
  readonly negatives: readonly PassageExample[];
}

interface DropExample {
  readonly query_id: string;
  readonly query: string;
  readonly answers: readonly string[];
  readonly positive: PassageExample | null;
  readonly dropped: PassageExample;
}

/** The counts of a run, under the names of the report file. */
interface MiningCounts {
  /** Searched queries. */
  queries: number;
  /** Queries with rows. */
  mined: number;
  /** Queries with rows, but fewer negatives than wanted. */
  short: number;
  rows: number;
  /** Queries whose own text the token limit cut. */
  cut_queries: number;
  positives: { wanted: number; not_found: number; without_answer: number };
  /** Golden answers that were not looked for, because their occurrence says nothing. */
  undecidable_answers: number;
  candidates: { in_window: number; left: number };
  negatives: { wanted: number; found: number };
}

export interface ReportBody extends MiningCounts {
  readonly unmined: Readonly<Record<UnminedReason, number>>;
  readonly dropped: Readonly<Record<DropReason, number>>;
  /** Ranks and scores of the negatives; the scores of the positives. */
  readonly ranks: readonly Bin[];
  readonly negative_scores: readonly Bin[];
  readonly positive_scores: readonly Bin[];
  readonly examples: {
    readonly rows: readonly RowExample[];
    readonly dropped: Readonly<Partial<Record<DropReason, readonly DropExample[]>>>;
  };
}

/** Something to show, by a key that depends on its content alone: the smallest keys are shown. */
interface Keyed<T> {
  readonly key: string;
  readonly value: T;
}

/** The state of a report as JSON. */
export interface ReportState {
  readonly counts: MiningCounts;
  readonly unmined: Record<UnminedReason, number>;
  readonly dropped: Record<DropReason, number>;
  readonly ranks: readonly (readonly [number, number])[];
  readonly negativeScores: readonly (readonly [number, number])[];
  readonly positiveScores: readonly (readonly [number, number])[];
  readonly rowExamples: readonly Keyed<RowExample>[];
  readonly dropExamples: Partial<Record<DropReason, Keyed<DropExample>[]>>;
}

/** Counts what became of queries and candidates. Its memory does not grow with their number, and its result not with their order. */
export class MiningReport {
  readonly #counts: MiningCounts;
  readonly #unmined: Record<UnminedReason, number>;
  readonly #dropped: Record<DropReason, number>;
  readonly #ranks: Map<number, number>;
  readonly #negativeScores: Map<number, number>;
  readonly #positiveScores: Map<number, number>;
  #rowExamples: readonly Keyed<RowExample>[];
  readonly #dropExamples: Partial<Record<DropReason, readonly Keyed<DropExample>[]>>;

  /** Continues from the state of an earlier report. */
  constructor(state?: ReportState) {
    this.#counts = state?.counts ?? emptyCounts();
    this.#unmined = state?.unmined ?? zeros(UNMINED_REASONS);
    this.#dropped = state?.dropped ?? zeros(DROP_REASONS);
    this.#ranks = new Map(state?.ranks);
    this.#negativeScores = new Map(state?.negativeScores);
    this.#positiveScores = new Map(state?.positiveScores);
    this.#rowExamples = state?.rowExamples ?? [];
    this.#dropExamples = state?.dropExamples ?? {};
  }

  /** `wanted`: the most negatives of a query. `rows`: the rows written for it. */
  add(outcome: QueryOutcome, wanted: number, rows: number): void {
    const counts = this.#counts;
    counts.queries++;
    counts.rows += rows;
    if (outcome.isCut) counts.cut_queries++;
    counts.positives.wanted += outcome.stored.query.positiveIds.length;
    counts.positives.not_found += outcome.positivesNotFound;
    counts.positives.without_answer += outcome.positivesWithoutAnswer;
    counts.undecidable_answers += outcome.undecidableAnswers;
    counts.candidates.in_window += outcome.candidates;
    counts.candidates.left += outcome.left;
    counts.negatives.wanted += wanted;
    for (const { candidate, reason } of outcome.dropped) {
      this.#dropped[reason]++;
      this.#addDropExample(outcome, reason, candidate);
    }
    if ('unmined' in outcome.result) this.#unmined[outcome.result.unmined]++;
    else this.#addMined(outcome, outcome.result.mined, wanted);
  }

  #addMined(
    { stored }: QueryOutcome,
    { positives, negatives, text, query }: Extract<QueryOutcome['result'], { mined: unknown }>['mined'],
    wanted: number,
  ): void {
    this.#counts.mined++;
    this.#counts.negatives.found += negatives.length;
    if (negatives.length < wanted) this.#counts.short++;
    for (const { rank, score } of negatives) {
      this.#ranks.set(rank!, (this.#ranks.get(rank!) ?? 0) + 1);
      if (score !== null) countValue(this.#negativeScores, score);
    }
    for (const { score } of positives) if (score !== null) countValue(this.#positiveScores, score);
    this.#rowExamples = withExample(this.#rowExamples, ROW_EXAMPLES, stored.key, () => ({
      query_id: query.id,
      query: text,
      answers: query.answers,
      positive: passageExample(positives[0]!),
      negatives: negatives.map(passageExample),
    }));
  }

  #addDropExample({ stored, positive }: QueryOutcome, reason: DropReason, candidate: MinedPassage): void {
    const { query, key } = stored;
    const examples = this.#dropExamples[reason] ?? [];
    this.#dropExamples[reason] = withExample(examples, DROP_EXAMPLES, `${key} ${candidate.id}`, () => ({
      query_id: query.id,
      query: query.query ?? query.question,
      answers: query.answers,
      positive: positive === undefined ? null : passageExample(positive),
      dropped: passageExample(candidate),
    }));
  }

  get counts(): MiningCounts {
    return this.#counts;
  }

  state(): ReportState {
    return {
      counts: this.#counts,
      unmined: this.#unmined,
      dropped: this.#dropped,
      ranks: [...this.#ranks],
      negativeScores: [...this.#negativeScores],
      positiveScores: [...this.#positiveScores],
      rowExamples: this.#rowExamples,
      dropExamples: this.#dropExamples as ReportState['dropExamples'],
    };
  }

  body(): ReportBody {
    const examples = Object.entries(this.#dropExamples).map(([reason, list]) => [
      reason,
      list.map(({ value }) => value),
    ]);
    return {
      ...this.#counts,
      unmined: this.#unmined,
      dropped: this.#dropped,
      ranks: rankBins(this.#ranks),
      negative_scores: binsOf(this.#negativeScores),
      positive_scores: binsOf(this.#positiveScores),
      examples: {
        rows: this.#rowExamples.map(({ value }) => value),
        dropped: Object.fromEntries(examples.sort(([a], [b]) => order(a as DropReason) - order(b as DropReason))),
      },
    };
  }
}

function order(reason: DropReason): number {
  return DROP_REASONS.indexOf(reason);
}

/** The examples with the smallest keys, in their order. The value is made only if it is one of them. */
function withExample<T>(examples: readonly Keyed<T>[], most: number, key: string, make: () => T): readonly Keyed<T>[] {
  if (examples.length === most && key >= examples[most - 1]!.key) return examples;
  const sorted = [...examples, { key, value: make() }].sort((a, b) => (a.key < b.key ? -1 : 1));
  return sorted.slice(0, most);
}

function passageExample({ id, rank, score, contents }: MinedPassage): PassageExample {
  // By code points, so that no character is cut in half.
  const characters = [...contents.slice(0, 2 * EXCERPT_CHARACTERS)];
  const isLong = contents.length > EXCERPT_CHARACTERS && characters.length > EXCERPT_CHARACTERS;
  const excerpt = isLong ? `${characters.slice(0, EXCERPT_CHARACTERS).join('')}…` : contents;
  return { id, rank, score, contents: excerpt };
}

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}

function emptyCounts(): MiningCounts {
  return {
    queries: 0,
    mined: 0,
    short: 0,
    rows: 0,
    cut_queries: 0,
    positives: { wanted: 0, not_found: 0, without_answer: 0 },
    undecidable_answers: 0,
    candidates: { in_window: 0, left: 0 },
    negatives: { wanted: 0, found: 0 },
  };
}
