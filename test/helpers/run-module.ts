import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BUILT_ROOT = new URL('../../', import.meta.url).href;

/**
 * V8 compiles in the background. If such a thread waits for a garbage collection while the main thread is in `process.exit`, Node.js 24
 * waits for it forever: `WorkerThreadsTaskRunner::Shutdown` joins a thread in `CollectionBarrier::AwaitCollectionBackground`.
 */
const COMPILE_IN_FOREGROUND = ['--no-concurrent-recompilation', '--no-concurrent-sparkplug'];

/** Runs ES module code in a new process. `#root/` in the code becomes the folder of the built files. */
export function runModule(
  code: string,
  environment: Readonly<Record<string, string>> = {},
): { status: number | null; stdout: string; stderr: string } {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  try {
    // A file, because `node --input-type=module --eval` cannot start worker threads.
    const file = join(folder, 'module.mjs');
    writeFileSync(file, code.replaceAll('#root/', BUILT_ROOT));
    const { status, stdout, stderr } = spawnSync(process.execPath, [...COMPILE_IN_FOREGROUND, file], {
      encoding: 'utf8',
      timeout: 30_000,
      env: { ...process.env, ...environment },
    });
    return { status, stdout, stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
