import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { TrawlError } from '../../src/base/errors.ts';
import { cacheFolder } from '../../src/base/options/cache-folder.ts';
import { installedMiniLm } from '../all/bench-inputs.ts';
import { baselinePython } from '../baselines.ts';
import { SHARED } from '../serve/serve-index.ts';
import { systemsFile } from './evaluated-systems.ts';
import { SystemsMeasurement, type SystemsOptions } from './measure-systems.ts';

/**
 * Measures the rows over the data sets of ../shared/data, and writes a SystemsResult. all-MiniLM-L6-v2, FAISS and usearch are
 * measured where `trawl bench baselines` and `trawl bench baselines embed` were run.
 *
 * @throws TrawlError CORPUS_NOT_FOUND without the data sets.
 */
export async function evaluateSystems(file: string, scratch: string, signal: AbortSignal): Promise<void> {
  const cache = cacheFolder('trawl');
  await writeSystems(file, {
    data: SHARED,
    checkpoint: installedMiniLm(cache),
    python: baselinePython(cache, 'flat'),
    work: scratch,
    signal,
    note: () => {},
  });
}

export async function writeSystems(file: string, options: SystemsOptions): Promise<void> {
  if (!existsSync(options.data)) {
    throw new TrawlError(
      'CORPUS_NOT_FOUND',
      `The data sets of this table are expected in ${options.data}. With others: scripts/evaluation-table.mjs --data DIR.`,
    );
  }
  await writeFile(file, systemsFile(await new SystemsMeasurement(options).rows()));
}
