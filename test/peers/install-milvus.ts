import { execFile } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
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
  return existsSync(join(milvusFolder(), '.complete'));
}

/**
 * Installs a real Milvus, which PyPI has for Linux x64 and macOS alone, unless it is in the cache.
 *
 * @throws Error if it cannot be installed.
 */
export async function installMilvus(note: (text: string) => void): Promise<void> {
  if (isMilvusInstalled()) return;
  const folder = milvusFolder();
  note(`Installing Milvus into ${folder} (once)`);
  rmSync(folder, { recursive: true, force: true });
  const run = promisify(execFile);
  await run('python3', ['-m', 'venv', folder]);
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', ...PACKAGES];
  await run(milvusPython(), install);
  writeFileSync(join(folder, '.complete'), '');
}
