import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { promisify } from 'node:util';

/** The share of files' bytes that the page cache holds, from 0 to 1, by util-linux's `fincore`. Undefined where there is none. */
export async function cachedShare(paths: readonly string[]): Promise<number | undefined> {
  try {
    const { stdout } = await promisify(execFile)('fincore', [
      '--raw',
      '--noheadings',
      '--bytes',
      '-o',
      'RES',
      ...paths,
    ]);
    const cached = stdout.split('\n').reduce((sum, line) => sum + Number(line), 0);
    return cached / paths.reduce((sum, path) => sum + statSync(path).size, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Drops files from the page cache, so that the next reader reads the disk. Pages that a process has mapped stay. */
export async function dropFromCache(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const words = [`if=${path}`, 'iflag=nocache', 'count=0'];
    const [code] = await once(spawn('dd', words, { stdio: 'ignore' }), 'close');
    if (code !== 0) throw new Error(`dd ${words.join(' ')} ended with ${code}`);
  }
}
