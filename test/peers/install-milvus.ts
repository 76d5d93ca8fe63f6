import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installOnce, isInstalled } from '../../bench/install-once.ts';
import { peerCache } from '../helpers/peers.ts';

/** The last version with a server on PyPI. setuptools: it imports pkg_resources. */
const PACKAGES = ['milvus==2.3.5', 'setuptools<80'];
export const MILVUS_VERSION = '2.3.5';

export function milvusFolder(): string {
  return join(peerCache(), `milvus-${MILVUS_VERSION}`);
}

export function milvusPython(): string {
  return join(milvusFolder(), 'bin', 'python');
}

export function isMilvusInstalled(): boolean {
  return isInstalled(milvusFolder());
}

/**
 * Installs a real Milvus, which PyPI has for Linux x64 and macOS alone, unless it is in the cache.
 *
 * @throws Error if it cannot be installed.
 */
export async function installMilvus(note: (text: string) => void): Promise<void> {
  const folder = milvusFolder();
  await installOnce(folder, { note }, async () => {
    note(`Installing Milvus into ${folder} (once)`);
    const run = promisify(execFile);
    await run('python3', ['-m', 'venv', folder]);
    await run(milvusPython(), [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '--no-deps',
      ...PACKAGES,
    ]);
  });
}
