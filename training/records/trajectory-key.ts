import type { RecordHead } from './record-head.ts';

/**
 * What a trajectory's id is unique with: trainers number the trajectories of each run and step anew, and every data set its questions.
 */
export function trajectoryKey(record: RecordHead): readonly (string | number | undefined)[] {
  const { dataset, policy, step, split, trajectory } = record;
  return [dataset, policy, step, split, trajectory];
}
