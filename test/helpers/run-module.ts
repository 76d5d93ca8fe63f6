import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BUILT_ROOT = new URL('../../', import.meta.url).href;

/** Runs ES module code in a process of its own; `#root/` in it is the folder of the built files. */
export function runModule(code: string): { status: number | null; stdout: string; stderr: string } {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  try {
    // A file, because the worker threads of `node --input-type=module --eval` do not start.
    const file = join(folder, 'module.mjs');
    writeFileSync(file, code.replaceAll('#root/', BUILT_ROOT));
    const { status, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8', timeout: 30_000 });
    return { status, stdout, stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
