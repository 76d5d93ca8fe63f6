import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { ClusterFigures } from './cluster-figures.ts';
import { TRIAL_DIMENSION, TRIAL_K, TRIAL_ROWS } from './trial-index.ts';

/** Writes the figures of a trial, if `npm run check -- cluster` was given a file for them. */
export function writeFigures(figures: Omit<ClusterFigures, 'cores' | 'rows' | 'dimension' | 'k'>): void {
  const file = process.env.TRAWL_CLUSTER_FIGURES;
  if (file === undefined) return;
  const { engine, ...others } = figures;
  const shared = { cores: availableParallelism(), rows: TRIAL_ROWS, dimension: TRIAL_DIMENSION, k: TRIAL_K };
  const result: ClusterFigures = { engine, ...shared, ...others };
  writeFileSync(file, `${JSON.stringify(result, undefined, 2)}\n`);
}
