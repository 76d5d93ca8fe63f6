import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TrawlError } from '../../src/errors.ts';
import { packageRoot } from '../../src/package-root.ts';
import { baselinePython } from '../baselines.ts';

const DATA = join(packageRoot, '..', 'shared', 'data');

/**
 * Runs scripts/evaluation-table.mjs over the data sets of ../shared/data, and writes a SystemsResult. The rows of FAISS are measured
 * where `trawl bench baselines` was run.
 *
 * @throws TrawlError CORPUS_NOT_FOUND without the data sets.
 */
export async function evaluateSystems(file: string, scratch: string, signal: AbortSignal): Promise<void> {
  if (!existsSync(DATA)) {
    throw new TrawlError(
      'CORPUS_NOT_FOUND',
      `The data sets of this table are expected in ${DATA}. With others: scripts/evaluation-table.mjs --data DIR.`,
    );
  }
  const run = promisify(execFile);
  const script = join(packageRoot, 'scripts', 'evaluation-table.mjs');
  const interpreter = baselinePython(join(homedir(), '.cache', 'trawl'), 'flat');
  const python = interpreter === undefined ? [] : ['--python', interpreter];
  await run(process.execPath, [script, '--data', DATA, '--out', file, '--work', scratch, ...python], { signal });
}
