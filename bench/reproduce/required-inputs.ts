import { existsSync } from 'node:fs';
import { TrawlError } from '../../src/base/errors.ts';
import { cacheFolder } from '../../src/base/options/cache-folder.ts';
import { installedMiniLm } from '../all/bench-inputs.ts';
import { SHARED } from '../serve/serve-index.ts';

/** The folder of the data sets. @throws TrawlError CORPUS_NOT_FOUND without it. */
export function requiredData(): string {
  if (existsSync(SHARED)) return SHARED;
  throw new TrawlError('CORPUS_NOT_FOUND', `The data sets of this table are expected in ${SHARED}.`);
}

/**
 * The folder of the data sets, and the checkpoint of all-MiniLM-L6-v2.
 *
 * @throws TrawlError CORPUS_NOT_FOUND without the data sets, MODEL_NOT_FOUND without the model.
 */
export function requiredInputs(): { readonly data: string; readonly checkpoint: string } {
  const data = requiredData();
  const checkpoint = installedMiniLm(cacheFolder('trawl'));
  if (checkpoint === undefined) {
    throw new TrawlError(
      'MODEL_NOT_FOUND',
      'all-MiniLM-L6-v2 is not installed. Install it: trawl bench baselines embed.',
    );
  }
  return { data, checkpoint };
}
