import { readFileSync } from 'node:fs';
import { TrawlError } from '../errors.ts';

export interface OpenSearchCredentials {
  readonly username: string;
  readonly password: string;
}

const USER = 'TRAWL_OPENSEARCH_USER';
const PASSWORD = 'TRAWL_OPENSEARCH_PASSWORD';
const PASSWORD_FILE = 'TRAWL_OPENSEARCH_PASSWORD_FILE';

/**
 * User and password from the environment; the password also from a file, as container platforms give secrets. Undefined if there is
 * neither. On a command line, every user of the machine could read them.
 *
 * @throws TrawlError CONFIG_INVALID for one without the other.
 */
export function openSearchCredentials(env: NodeJS.ProcessEnv = process.env): OpenSearchCredentials | undefined {
  const user = env[USER] ?? '';
  const file = env[PASSWORD_FILE] ?? '';
  const given = env[PASSWORD] ?? '';
  if (file !== '' && given !== '') throw invalid(`${PASSWORD} and ${PASSWORD_FILE} are both set; set one of them`);
  const password = file === '' ? given : readPassword(file);
  if (user === '' && password === '') return undefined;
  if (user === '') throw invalid(`there is a password of OpenSearch, but ${USER} is not set`);
  if (password === '') throw invalid(`${USER} is set, but neither ${PASSWORD} nor ${PASSWORD_FILE}`);
  return { username: user, password };
}

function readPassword(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (cause) {
    throw new TrawlError('CONFIG_INVALID', `${PASSWORD_FILE} names ${file}, which cannot be read.`, { cause });
  }
}

function invalid(reason: string): TrawlError {
  return new TrawlError('CONFIG_INVALID', `The environment is contradictory: ${reason}.`);
}
