import { type Refusal, roundedDown3, roundedUp3, TOLERANCE } from './gates.ts';
import type { Trial } from './records.ts';

/** Limits that the estimated recall of a model must keep before the whole corpus is embedded. */
export interface TrialGates {
  /** Least recall@k, 0 to 1. */
  readonly minRecall: number | undefined;
  /** By how much recall@k may fall below the served index's recall@k. */
  readonly maxDrop: number;
}

/** Which limits the estimate does not keep; empty if the index may be built. */
export function trialRefusals(trial: Trial, { minRecall, maxDrop }: TrialGates): Refusal[] {
  const value = trial.estimate?.value ?? trial.bound;
  const limits = [
    ...(minRecall === undefined
      ? []
      : [{ option: 'triage-min-recall', limit: minRecall, accepted: roundedDown3(value) }]),
    { option: 'triage-max-drop', limit: trial.present - maxDrop, accepted: roundedUp3(trial.present - value) },
  ];
  return limits.flatMap(({ option, limit, accepted }) => {
    if (value >= limit - TOLERANCE) return [];
    const accept = `--${option} ${accepted}`;
    return [{ measure: measureOf(trial), value, limit, accept, text: textOf(trial, limit, accept) }];
  });
}

function measureOf({ k, estimate }: Trial): string {
  return estimate === null ? `recall@${k} in the pool` : `estimated recall@${k}`;
}

function textOf(trial: Trial, limit: number, accept: string): string {
  const { k, estimate, bound, present } = trial;
  const found =
    bound < limit - TOLERANCE
      ? `recall@${k} of the new model is at most ${bound.toFixed(4)}, whatever the rest of the index has`
      : estimate === null
        ? `recall@${k} of the new model in the pool is ${bound.toFixed(4)}`
        : `recall@${k} of the new model is estimated as ${estimate.value.toFixed(4)}`;
  return (
    `${found}, and ${present.toFixed(4)} in the served index; at least ${limit.toFixed(4)} is required. ${errorText(trial)}` +
    `${accept} accepts it.`
  );
}

/** How wrong the same estimate is for the encoder whose recall is known; empty if it was not made. */
function errorText({ error }: Trial): string {
  if (error === null) return '';
  const sign = error < 0 ? '-' : '+';
  return `The same estimate of the present encoder is wrong by ${sign}${Math.abs(error).toFixed(4)}. `;
}
