import { binsOf, type Counts, countValue, rankBins } from './histogram.ts';
import { type QueryOutcome, UNMINED_REASONS } from './mine-batch.ts';
import { DROP_REASONS, type DropReason, type MinedPassage, type MinedQuery } from './mined-query.ts';

const ROW_EXAMPLES = 5;
const DROP_EXAMPLES = 3;
const EXCERPT_CHARACTERS = 300;

/** Something to show, by a key that depends on its content alone: the smallest keys are shown. */
interface Keyed<T> {
  readonly key: string;
  readonly value: T;
}

export type ReportState = ReturnType<typeof emptyState>;

/** Counts what became of queries and candidates. Its memory does not grow with their number, and its result not with their order. */
export class MiningReport {
  readonly state: ReportState;

  /** @param state the state of an earlier report, from which this one continues. */
  constructor(state: ReportState = emptyState()) {
    this.state = state;
  }

  /** `wanted`: the most negatives of a query. `rows`: the rows written for it. */
  add(outcome: QueryOutcome, wanted: number, rows: number): void {
    const { counts, unmined, dropped } = this.state;
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
      dropped[reason]++;
      this.#addDropExample(outcome, reason, candidate);
    }
    if (typeof outcome.result === 'string') unmined[outcome.result]++;
    else this.#addMined(outcome.stored.key, outcome.result, wanted);
  }

  #addMined(key: string, mined: MinedQuery, wanted: number): void {
    const { positives, negatives } = mined;
    const { counts, ranks, negativeScores, positiveScores } = this.state;
    counts.mined++;
    counts.negatives.found += negatives.length;
    if (negatives.length < wanted) counts.short++;
    for (const { rank, score } of negatives) {
      ranks[rank!] = (ranks[rank!] ?? 0) + 1;
      if (score !== null) countValue(negativeScores, score);
    }
    for (const { score } of positives) if (score !== null) countValue(positiveScores, score);
    this.state.rowExamples = withExample(this.state.rowExamples, ROW_EXAMPLES, key, () => rowExample(mined));
  }

  #addDropExample(outcome: QueryOutcome, reason: DropReason, candidate: MinedPassage): void {
    const { dropExamples } = this.state;
    const key = `${outcome.stored.key} ${candidate.id}`;
    const make = () => dropExample(outcome, candidate);
    dropExamples[reason] = withExample(dropExamples[reason] ?? [], DROP_EXAMPLES, key, make);
  }

  body() {
    const { counts, unmined, dropped, ranks, negativeScores, positiveScores, rowExamples, dropExamples } = this.state;
    const examples = DROP_REASONS.flatMap((reason) => {
      const kept = dropExamples[reason];
      return kept === undefined ? [] : [[reason, kept.map(({ value }) => value)]];
    });
    return {
      ...counts,
      unmined,
      dropped,
      /** Ranks and scores of the negatives; the scores of the positives. */
      ranks: rankBins(ranks),
      negative_scores: binsOf(negativeScores),
      positive_scores: binsOf(positiveScores),
      examples: {
        rows: rowExamples.map(({ value }) => value),
        dropped: Object.fromEntries(examples) as Partial<Record<DropReason, readonly DropExample[]>>,
      },
    };
  }
}

/** The examples with the smallest keys, in their order. The value is made only if it is one of them. */
function withExample<T>(examples: readonly Keyed<T>[], most: number, key: string, make: () => T): readonly Keyed<T>[] {
  if (examples.length === most && key >= examples[most - 1]!.key) return examples;
  const sorted = [...examples, { key, value: make() }].sort((a, b) => (a.key < b.key ? -1 : 1));
  return sorted.slice(0, most);
}

type RowExample = ReturnType<typeof rowExample>;
type DropExample = ReturnType<typeof dropExample>;

function rowExample({ query, text, positives, negatives }: MinedQuery) {
  const positive = passageExample(positives[0]!);
  return {
    query_id: query.id,
    query: text,
    answers: query.answers,
    positive,
    negatives: negatives.map(passageExample),
  };
}

function dropExample({ stored: { query }, positive }: QueryOutcome, candidate: MinedPassage) {
  return {
    query_id: query.id,
    query: query.query ?? query.question,
    answers: query.answers,
    positive: positive === undefined ? null : passageExample(positive),
    dropped: passageExample(candidate),
  };
}

function passageExample({ id, rank, score, contents }: MinedPassage) {
  // By code points, so that no character is cut in half.
  const characters = [...contents.slice(0, 2 * EXCERPT_CHARACTERS)];
  const isLong = contents.length > EXCERPT_CHARACTERS && characters.length > EXCERPT_CHARACTERS;
  const excerpt = isLong ? `${characters.slice(0, EXCERPT_CHARACTERS).join('')}…` : contents;
  return { id, rank, score, contents: excerpt };
}

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}

/** What a report has counted at its start. A state is JSON; its counts have their names in the report file. */
function emptyState() {
  return {
    counts: {
      queries: 0,
      mined: 0,
      /** Queries with rows, but fewer negatives than wanted. */
      short: 0,
      rows: 0,
      /** Queries whose own text the token limit cut. */
      cut_queries: 0,
      positives: { wanted: 0, not_found: 0, without_answer: 0 },
      /** Golden answers that were not looked for, because their occurrence says nothing. */
      undecidable_answers: 0,
      candidates: { in_window: 0, left: 0 },
      negatives: { wanted: 0, found: 0 },
    },
    unmined: zeros(UNMINED_REASONS),
    dropped: zeros(DROP_REASONS),
    ranks: {} as Counts,
    negativeScores: {} as Counts,
    positiveScores: {} as Counts,
    rowExamples: [] as readonly Keyed<RowExample>[],
    dropExamples: {} as Partial<Record<DropReason, readonly Keyed<DropExample>[]>>,
  };
}
