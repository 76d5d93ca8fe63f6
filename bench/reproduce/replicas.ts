import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/package-root.ts';

/** Runs scripts/replicas-test.mjs, which writes its figures and rejects if one of failed, mixed and oldAfterSwap is not 0. */
export async function testReplicas(file: string, signal: AbortSignal): Promise<void> {
  const script = join(packageRoot, 'scripts', 'replicas-test.mjs');
  await promisify(execFile)(process.execPath, [script, '--out', file], { signal });
}
