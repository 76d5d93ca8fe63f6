import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/package-root.ts';

/** Runs a part of scripts/cluster-test.mjs, which writes its figures and fails if an answer is wrong. */
export async function testCluster(part: string, file: string, signal: AbortSignal): Promise<void> {
  const script = join(packageRoot, 'scripts', 'cluster-test.mjs');
  await promisify(execFile)(process.execPath, [script, part, '--out', file], { signal, maxBuffer: 2 ** 26 });
}
