import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../src/package-root.ts';

/** What `npm run test:peers` installs. */
export const PEER_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements.txt');

/** The environment's folder: a new one for new requirements, shared by all checkouts. */
export function peerFolder(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const version = createHash('sha256').update(readFileSync(PEER_REQUIREMENTS)).digest('hex').slice(0, 12);
  return join(cache, 'trawl', `peers-${version}`);
}

/** Written when the environment is complete. */
export function peerMarker(): string {
  return join(peerFolder(), '.complete');
}

export function peerPython(): string {
  return join(peerFolder(), 'bin', 'python');
}

/** For the `skip` option of a test: false where the peers are there, else the reason. */
export function withoutPeers(): string | false {
  return existsSync(peerMarker())
    ? false
    : 'the Python peers are not installed: npm run test:peers installs and runs them';
}

/** Runs a script of test/peers with JSON on its standard input and gives the JSON it prints. */
export async function runPeer(script: string, input: unknown): Promise<unknown> {
  const child = spawn(peerPython(), [join(packageRoot, 'test', 'peers', script)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stdin.end(JSON.stringify(input));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  if (code !== 0) throw new Error(`${script} ended with ${code}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}
