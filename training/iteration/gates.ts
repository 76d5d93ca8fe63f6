import type { Measures } from './records.ts';

/** Shares that differ by less are equal: 0.7 − 0.1 is 0.6. */
export const TOLERANCE = 1e-9;

/** Limits that an iteration must keep to be published. */
export interface Gates {
  /** Least recall@k, 0 to 1. */
  readonly minRecall: number | undefined;
  /** By how much recall@k may fall below the previous index's recall@k. */
  readonly maxRecallDrop: number;
  /** Largest share of queries whose first k passages change. */
  readonly maxChanged: number | undefined;
  /** Largest mean share of the first k passages that are others. */
  readonly maxReplaced: number | undefined;
}

export interface Refusal {
  readonly measure: string;
  /** Null if it could not be measured. */
  readonly value: number | null;
  readonly limit: number;
  /** The option that sets the limit, with a value that accepts the measured one. */
  readonly accept: string;
  readonly text: string;
}

/** Which limits the measures do not keep; empty if the iteration may be published. */
export function refusals(measures: Measures, gates: Gates): Refusal[] {
  const { recallK, before, now, answers } = measures;
  const recall = `recall@${recallK}`;
  const [old, found] = [before[recall]!, now[recall]!];
  const { k, queries, changed, replaced } = answers;
  const share = queries === 0 ? null : changed / queries;
  return [
    ...(isUnmeasured(measures) && gates.maxRecallDrop < 1 ? [unmeasured(recall, gates.minRecall ?? 0)] : []),
    ...(gates.minRecall !== undefined && found < gates.minRecall - TOLERANCE
      ? [below(recall, found, gates.minRecall, 'min-recall', roundedDown3(found))]
      : []),
    ...(found < old - gates.maxRecallDrop - TOLERANCE
      ? [below(recall, found, old - gates.maxRecallDrop, 'max-recall-drop', roundedUp3(old - found), old)]
      : []),
    ...above(`share of answers that change (first ${k} passages)`, share, gates.maxChanged, 'max-changed'),
    ...above(`share of passages that are replaced (first ${k})`, replaced, gates.maxReplaced, 'max-replaced'),
  ];
}

/** Whether no search in either index found a judged passage, at any rank. */
function isUnmeasured({ recallK, before, now }: Measures): boolean {
  return [before, now].every((means) => means[`recall@${recallK}`] === 0 && (means.mrr ?? 0) === 0);
}

function unmeasured(measure: string, limit: number): Refusal {
  const accept = '--max-recall-drop 1';
  const text =
    `${measure} is not known, because no search found a judged passage in either index. Check that the judgements of --eval or ` +
    `--qrels use the ids of the corpus. ${accept} accepts it.`;
  return { measure, value: null, limit, accept, text };
}

function below(
  measure: string,
  value: number,
  limit: number,
  option: string,
  accepted: string,
  before?: number,
): Refusal {
  const accept = `--${option} ${accepted}`;
  const compared = before === undefined ? '' : `, and ${before.toFixed(4)} before`;
  const text = `${measure} is ${value.toFixed(4)}${compared}; at least ${limit.toFixed(4)} is required. ${accept} accepts it.`;
  return { measure, value, limit, accept, text };
}

function above(measure: string, value: number | null, limit: number | undefined, option: string): Refusal[] {
  if (limit === undefined || (value !== null && value <= limit + TOLERANCE)) return [];
  if (value === null) {
    const text = `The ${measure} is not known, because no query could be compared; at most ${limit} is allowed. Give other --records, or omit --${option}.`;
    return [{ measure, value, limit, accept: '', text }];
  }
  const accept = `--${option} ${roundedUp3(value)}`;
  const text = `The ${measure} is ${value.toFixed(4)}; at most ${limit} is allowed. ${accept} accepts it.`;
  return [{ measure, value, limit, accept, text }];
}

/** The largest number of three decimals that is not above the value: a limit that the value keeps. */
export function roundedDown3(value: number): string {
  return String(Math.floor(value * 1000) / 1000);
}

/** The smallest number of three decimals that is not below the value. */
export function roundedUp3(value: number): string {
  return String(Math.ceil(value * 1000) / 1000);
}
