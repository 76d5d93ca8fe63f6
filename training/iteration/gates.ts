import type { Measures, Trial } from './records.ts';

/** Shares that differ by less are equal: 0.7 − 0.1 is 0.6. */
const TOLERANCE = 1e-9;

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

/** Limits that the estimated recall of a model must keep before the whole corpus is embedded. */
export interface TrialGates {
  /** Least recall@k, 0 to 1. */
  readonly minRecall: number | undefined;
  /** By how much recall@k may fall below the served index's recall@k. */
  readonly maxDrop: number;
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
export function refusals({ recallK, before, now, answers }: Measures, gates: Gates): Refusal[] {
  const recall = `recall@${recallK}`;
  const [old, found] = [before[recall]!, now[recall]!];
  const refused: Refusal[] = [];
  const checkRecall = (limit: number, accept: string, compared = ''): void => {
    if (found >= limit - TOLERANCE) return;
    const text = `${recall} is ${found.toFixed(4)}${compared}; at least ${limit.toFixed(4)} is required. ${accept} accepts it.`;
    refused.push({ measure: recall, value: found, limit, accept, text });
  };
  // No search in either index found a judged passage, at any rank.
  const isUnmeasured = [before, now].every((means) => means[recall] === 0 && (means.mrr ?? 0) === 0);
  if (isUnmeasured && gates.maxRecallDrop < 1) {
    const accept = '--max-recall-drop 1';
    const text =
      `${recall} is not known, because no search found a judged passage in either index. Check that the judgements of --eval or ` +
      `--qrels use the ids of the corpus. ${accept} accepts it.`;
    refused.push({ measure: recall, value: null, limit: gates.minRecall ?? 0, accept, text });
  }
  if (gates.minRecall !== undefined) checkRecall(gates.minRecall, `--min-recall ${roundedDown3(found)}`);
  const acceptDrop = `--max-recall-drop ${roundedUp3(old - found)}`;
  checkRecall(old - gates.maxRecallDrop, acceptDrop, `, and ${old.toFixed(4)} before`);
  const { k, queries, changed, replaced } = answers;
  const share = queries === 0 ? null : changed / queries;
  return [
    ...refused,
    ...above(`share of answers that change (first ${k} passages)`, share, gates.maxChanged, 'max-changed'),
    ...above(`share of passages that are replaced (first ${k})`, replaced, gates.maxReplaced, 'max-replaced'),
  ];
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

/** Which limits the estimate of a trial does not keep; empty if the index may be built. */
export function trialRefusals(trial: Trial, { minRecall, maxDrop }: TrialGates): Refusal[] {
  const { k, estimate, bound, present, error } = trial;
  const value = estimate?.value ?? bound;
  const measure = estimate === null ? `recall@${k} in the pool` : `estimated recall@${k}`;
  const limits = [
    { limit: minRecall, accept: `--triage-min-recall ${roundedDown3(value)}` },
    { limit: present - maxDrop, accept: `--triage-max-drop ${roundedUp3(present - value)}` },
  ];
  // How wrong the same estimate is for the encoder whose recall is known.
  const wrong =
    error === null
      ? ''
      : `The same estimate of the present encoder is wrong by ${error < 0 ? '-' : '+'}${Math.abs(error).toFixed(4)}. `;
  return limits.flatMap(({ limit, accept }) => {
    if (limit === undefined || value >= limit - TOLERANCE) return [];
    const found =
      bound < limit - TOLERANCE
        ? `recall@${k} of the new model is at most ${bound.toFixed(4)}, whatever the rest of the index has`
        : estimate === null
          ? `recall@${k} of the new model in the pool is ${bound.toFixed(4)}`
          : `recall@${k} of the new model is estimated as ${estimate.value.toFixed(4)}`;
    const text =
      `${found}, and ${present.toFixed(4)} in the served index; at least ${limit.toFixed(4)} is required. ${wrong}` +
      `${accept} accepts it.`;
    return [{ measure, value, limit, accept, text }];
  });
}

/** The largest number of three decimals that is not above the value: a limit that the value keeps. */
function roundedDown3(value: number): string {
  return String(Math.floor(value * 1000) / 1000);
}

/** The smallest number of three decimals that is not below the value. */
function roundedUp3(value: number): string {
  return String(Math.ceil(value * 1000) / 1000);
}
