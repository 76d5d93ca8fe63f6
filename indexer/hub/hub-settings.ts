import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isNodeError, TrawlError } from '../../src/base/errors.ts';
import { cacheFolder, environmentVariable } from '../../src/base/options/environment.ts';

/** Access to the hub, from the same environment variables as Python's huggingface_hub. */
export interface HubSettings {
  /** HF_ENDPOINT without a trailing slash; default https://huggingface.co. */
  readonly endpoint: string;
  readonly token: string | undefined;
  /** HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE. */
  readonly offline: boolean;
}

const DEFAULT_ENDPOINT = 'https://huggingface.co';

/** @throws TrawlError CONFIG_INVALID for an invalid value. Messages never contain a token. */
export async function readHubSettings(): Promise<HubSettings> {
  const endpoint = (environmentVariable('HF_ENDPOINT')?.trim() || DEFAULT_ENDPOINT).replace(/\/+$/, '');
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new TrawlError(
      'CONFIG_INVALID',
      `HF_ENDPOINT is ${JSON.stringify(endpoint)}; expected the address of a hub, such as ${DEFAULT_ENDPOINT}.`,
    );
  }
  if (url?.username || url?.password) {
    // Messages are logged, so they must not contain the password.
    throw new TrawlError(
      'CONFIG_INVALID',
      'HF_ENDPOINT contains a user name or a password, which requests cannot carry. Remove them and set HF_TOKEN instead.',
    );
  }
  const offline = isTrue(environmentVariable('HF_HUB_OFFLINE')) || isTrue(environmentVariable('TRANSFORMERS_OFFLINE'));
  return { endpoint, token: offline ? undefined : await readToken(), offline };
}

/** HF_TOKEN, else the file that `hf auth login` writes. Undefined with HF_HUB_DISABLE_IMPLICIT_TOKEN. */
async function readToken(): Promise<string | undefined> {
  if (isTrue(environmentVariable('HF_HUB_DISABLE_IMPLICIT_TOKEN'))) return undefined;
  for (const name of ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN'] as const) {
    const token = environmentVariable(name)?.trim();
    if (token) return checked(token, name);
  }
  const path = tokenPath();
  try {
    const token = (await readFile(path, 'utf8')).trim();
    return token === '' ? undefined : checked(token, path);
  } catch (error) {
    // A missing or unreadable file means no token; public repositories need none.
    if (isNodeError(error)) return undefined;
    throw error;
  }
}

function tokenPath(): string {
  const given = environmentVariable('HF_TOKEN_PATH');
  if (given) return withHome(given);
  return join(withHome(environmentVariable('HF_HOME') || cacheFolder('huggingface')), 'token');
}

function withHome(path: string): string {
  return path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path;
}

function checked(token: string, from: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new TrawlError(
    'CONFIG_INVALID',
    `The token in ${from} contains a space, a line break or another invalid character. Copy it again.`,
  );
}

function isTrue(value: string | undefined): boolean {
  return /^(1|on|yes|true)$/i.test(value ?? '');
}
