import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { isInstalled } from '../../bench/install-once.ts';
import { packageRoot } from '../../src/package-root.ts';
import { peerCache } from '../helpers/peers.ts';

/** The versions of elasticsearch-py that ArtSearch's requirements pin. */
export const PYTHON_CLIENTS = ['8.17.2', '9.1.1'] as const;
/** The versions of the client for Node.js of the same releases. */
export const NODE_CLIENTS = ['8.17.1', '9.1.1'] as const;

/** The environment of a version of elasticsearch-py. */
export function pythonClientFolder(version: string): string {
  return join(peerCache(), `elasticsearch-py-${version}`);
}

/** The folder of a version of @elastic/elasticsearch. It is no dependency of this package. */
export function nodeClientFolder(version: string): string {
  return join(peerCache(), `elasticsearch-js-${version}`);
}

/** For the `skip` option of a test: false if the client is installed, else the reason. */
export function withoutClient(folder: string): string | false {
  return isInstalled(folder) ? false : `${folder} is not installed: run npm run test:peers`;
}

/** Runs test/peers/elasticsearch_client.py with JSON on stdin and returns the JSON that it prints. */
export function runPythonClient(version: string, input: unknown): Promise<unknown> {
  return runPythonScript(version, 'elasticsearch_client.py', input);
}

/** The same with another script of test/peers. */
export async function runPythonScript(version: string, name: string, input: unknown): Promise<unknown> {
  const python = join(pythonClientFolder(version), 'bin', 'python');
  const script = join(packageRoot, 'test', 'peers', name);
  const child = spawn(python, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stdin.end(JSON.stringify(input));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  if (code !== 0) throw new Error(`${name} ended with exit code ${code}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}
