import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';

/** Runs scripts/checks/gpu.mjs, which ends with 3 on a machine without an NVIDIA GPU. */
export async function testGpu(file: string, scratch: string, signal: AbortSignal): Promise<void> {
  const script = join(packageRoot, 'scripts', 'checks', 'gpu.mjs');
  const child = spawn(process.execPath, [script, '--no-setup', '--out', scratch], {
    signal,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(child, 'close');
  if (code !== 0) {
    throw new Error(
      code === 3 ? 'This machine has no usable NVIDIA GPU.' : `scripts/checks/gpu.mjs ended with ${code}.`,
    );
  }
  copyFileSync(join(scratch, 'gpu-report.json'), file);
}
