import type { TriageProgress } from '../../training/triage/triage-model.ts';
import { formatCount } from '../../src/base/format.ts';

/** The progress of a trial for `stepProgress`. */
export function shownProgress({ step, done, total }: TriageProgress): { step: string; share: number; facts: string } {
  return {
    step,
    share: total === 0 ? 1 : done / total,
    facts: total === 1 ? '' : `${formatCount(done)} of ${formatCount(total)}`,
  };
}
