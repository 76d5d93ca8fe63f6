import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { TrawlError } from '../../src/errors.ts';
import { installedMiniLm } from '../all/bench-inputs.ts';
import { SHARED } from '../serve/serve-index.ts';

/**
 * The folder of the data sets, and the checkpoint of all-MiniLM-L6-v2.
 *
 * @throws TrawlError CORPUS_NOT_FOUND without the data sets, MODEL_NOT_FOUND without the model.
 */
export function requiredInputs(): { readonly data: string; readonly checkpoint: string } {
  if (!existsSync(SHARED))
    throw new TrawlError('CORPUS_NOT_FOUND', `The data sets of this table are expected in ${SHARED}.`);
  const checkpoint = installedMiniLm(join(homedir(), '.cache', 'trawl'));
  if (checkpoint === undefined) {
    throw new TrawlError(
      'MODEL_NOT_FOUND',
      'all-MiniLM-L6-v2 is not installed. Install it: trawl bench baselines embed.',
    );
  }
  return { data: SHARED, checkpoint };
}
