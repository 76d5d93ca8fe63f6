import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { packageRoot } from '../../src/package-root.ts';

/** Runs scripts/size-test.mjs, which writes its figures and fails if a query differs from a scan. */
export async function testSize(file: string, signal: AbortSignal): Promise<void> {
  const script = join(packageRoot, 'scripts', 'size-test.mjs');
  const child = spawn(process.execPath, [script, '--out', file], {
    signal,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`scripts/size-test.mjs ended with ${code}; the same command resumes it.`);
}
