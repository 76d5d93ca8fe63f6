import { createHash, type Hash } from 'node:crypto';
import { datasetInfo, listFiles, modelInfo } from '@huggingface/hub';
import { asTrawlError, TrawlError } from '../../src/base/errors.ts';
import { TransientFailure, withTransferRetries } from '../../src/base/net/retries.ts';
import type { HubClient } from './hub-client.ts';

export interface Repository {
  readonly type: 'model' | 'dataset';
  /** `org/name`. */
  readonly name: string;
}

export interface RepositoryFile {
  /** Relative, with slashes. Checked to stay inside the folder it is joined to. */
  readonly path: string;
  readonly bytes: number;
  /** Hexadecimal: SHA-256 for LFS files, git's SHA-1 (of `blob <size>\0` and the bytes) for others. */
  readonly hash: { readonly algorithm: 'sha256' | 'git-sha1'; readonly value: string };
}

/** Starts the hash of a file's content with the hub's algorithm for it. */
export function startHash({ hash, bytes }: RepositoryFile): Hash {
  return hash.algorithm === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

export interface RepositoryListing {
  readonly repository: Repository;
  /** The commit that the revision names now. */
  readonly commit: string;
  readonly files: readonly RepositoryFile[];
}

/** Maximum size of an API reply; a page of 1000 files has about 400 KB. */
const MAX_API_BYTES = 64 * 1024 * 1024;

/** Returns the text. @throws TrawlError USAGE if it is not a valid repository name. */
export function parseRepositoryName(text: string): string {
  if (/^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/.test(text) && !/\.\.|--/.test(text) && text.length <= 200) return text;
  throw new TrawlError('USAGE', `${JSON.stringify(text)} is not a repository name; expected organisation/name.`);
}

/** Lists all files at a revision. Throws HUB_NOT_FOUND, HUB_ACCESS_DENIED, HUB_UNREACHABLE, HUB_REPLY_INVALID (also for unsafe paths), CANCELLED. */
export async function listRepository(
  client: HubClient,
  repository: Repository,
  options: { readonly revision?: string; readonly signal?: AbortSignal; readonly onNotice?: (text: string) => void },
): Promise<RepositoryListing> {
  const { revision = 'main', signal, onNotice } = options;
  const hubUrl = client.settings.endpoint;
  const name = parseRepositoryName(repository.name);
  const context = { repository: pageOf(repository), revision };
  const retrying = { what: `the list of ${context.repository}`, policy: client.retries, signal, note: onNotice };
  const fetch = apiFetch(client, context, signal);
  try {
    const { sha } = await withTransferRetries(() => {
      const params = { name, revision, hubUrl, fetch, additionalFields: ['sha' as const] };
      return repository.type === 'model' ? modelInfo(params) : datasetInfo(params);
    }, retrying);
    if (typeof sha !== 'string' || !/^[0-9a-f]{40,64}$/.test(sha)) throw invalid(client, 'has no commit hash');
    const files = await withTransferRetries(async () => {
      const found: RepositoryFile[] = [];
      // By commit, because a branch may move between two pages.
      for await (const entry of listFiles({ repo: repository, revision: sha, recursive: true, hubUrl, fetch })) {
        if (entry.type === 'file') found.push(checkedFile(client, entry));
      }
      return found;
    }, retrying);
    checkDistinct(client, files);
    return { repository, commit: sha, files };
  } catch (error) {
    if (error instanceof TrawlError) throw error;
    // An error of the library, for example of its JSON parser.
    throw invalid(client, `cannot be parsed (${asTrawlError(error).message.slice(0, 200)})`, error);
  }
}

export function fileAddress(client: HubClient, { repository, commit }: RepositoryListing, path: string): string {
  const encoded = path.split('/').map(encodeURIComponent).join('/');
  return `${client.settings.endpoint}/${pageOf(repository)}/resolve/${commit}/${encoded}`;
}

/** Path of a repository's page, relative to the endpoint. */
export function pageOf({ type, name }: Repository): string {
  return type === 'dataset' ? `datasets/${name}` : name;
}

/**
 * The `fetch` for the library. `HubClient` adds the token, because the library would send it to any host in a link and only
 * accepts tokens that begin with hf_. Turns refusals into errors, because the library drops the hub's error codes.
 */
function apiFetch(
  client: HubClient,
  context: { readonly repository: string; readonly revision: string },
  signal: AbortSignal | undefined,
): typeof fetch {
  return async (input, init) => {
    const reply = await client.get(String(input), Object.fromEntries(new Headers(init?.headers)), signal);
    if (reply.status !== 200) {
      reply.drop();
      throw client.failure(reply, context);
    }
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of reply.body()) {
      bytes += chunk.byteLength;
      if (bytes > MAX_API_BYTES) throw invalid(client, `has more than ${MAX_API_BYTES} bytes`);
      chunks.push(chunk);
    }
    const length = reply.headers.get('content-length');
    if (length !== null && Number(length) !== bytes) throw new TransientFailure('the reply ended early');
    return new Response(Buffer.concat(chunks), { status: reply.status, headers: reply.headers });
  };
}

function checkedFile(
  client: HubClient,
  { path, size, oid, lfs }: { path: string; size: number; oid?: string; lfs?: { oid: string; size: number } | null },
): RepositoryFile {
  if (typeof path !== 'string' || !isSafePath(path)) {
    throw invalid(client, `has the path ${JSON.stringify(path)}, which is not a safe relative path`);
  }
  const isLfs = lfs !== undefined && lfs !== null;
  const value = isLfs ? String(lfs.oid).replace(/^sha256:/, '') : String(oid);
  const bytes = lfs?.size ?? size;
  if (!Number.isSafeInteger(bytes) || bytes < 0 || !/^[0-9a-f]+$/.test(value) || value.length !== (isLfs ? 64 : 40)) {
    throw invalid(client, `has no usable size and checksum for ${JSON.stringify(path)}`);
  }
  return { path, bytes, hash: { algorithm: isLfs ? 'sha256' : 'git-sha1', value } };
}

/** Also rejects drive letters, backslashes, control characters and names that are too long for a file system. */
function isSafePath(path: string): boolean {
  if (path === '' || path.length > 1024 || /[\\\x00-\x1f\x7f]/.test(path) || /^[A-Za-z]:/.test(path)) return false;
  return path
    .split('/')
    .every((part) => part !== '' && part !== '.' && part !== '..' && Buffer.byteLength(part) <= 240);
}

function checkDistinct(client: HubClient, files: readonly RepositoryFile[]): void {
  const seen = new Set<string>();
  for (const { path } of files) {
    if (seen.has(path)) throw invalid(client, `lists ${JSON.stringify(path)} twice`);
    seen.add(path);
  }
}

function invalid(client: HubClient, fault: string, cause?: unknown): TrawlError {
  return new TrawlError(
    'HUB_REPLY_INVALID',
    `The file list of ${client.settings.endpoint} ${fault}. Nothing was written. Check that HF_ENDPOINT is the address of a hub.`,
    { cause },
  );
}
