import { join } from 'node:path';
import { runTrawl } from '../serve/serve-index.ts';
import type { ReproductionRun } from './reproduction-run.ts';
import { requiredInputs } from './required-inputs.ts';

/**
 * Imports all-MiniLM-L6-v2 into the scratch folder of a run.
 *
 * @returns the folder of the data sets, the model's, and its checkpoint's.
 * @throws TrawlError CORPUS_NOT_FOUND without the data sets, MODEL_NOT_FOUND without the checkpoint.
 */
export async function importMiniLm(
  { scratch, signal }: Pick<ReproductionRun, 'scratch' | 'signal'>,
  precisions = 'float32',
): Promise<{ readonly data: string; readonly model: string; readonly checkpoint: string }> {
  const { data, checkpoint } = requiredInputs();
  const model = join(scratch, 'all-MiniLM-L6-v2');
  await runTrawl(['model', 'add', checkpoint, '--out', model, '--precision', precisions], signal);
  return { data, model, checkpoint };
}
