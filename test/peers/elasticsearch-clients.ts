import { join } from 'node:path';
import { isInstalled } from '../../bench/install-once.ts';
import { peerCache, runScript } from '../helpers/peers.ts';

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
  return isInstalled(folder) ? false : `${folder} is not installed: run npm run check -- peers`;
}

/** Runs test/peers/elasticsearch_client.py with JSON on stdin and returns the JSON that it prints. */
export function runPythonClient(version: string, input: unknown): Promise<unknown> {
  return runPythonScript(version, 'elasticsearch_client.py', input);
}

/** The same with another script of test/peers. */
export function runPythonScript(version: string, name: string, input: unknown): Promise<unknown> {
  return runScript(join(pythonClientFolder(version), 'bin', 'python'), name, input);
}
