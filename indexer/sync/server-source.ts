import { buffer, text } from 'node:stream/consumers';
import { TrawlError } from '../../src/base/errors.ts';
import { retryAfterMs, TransientFailure } from '../../src/base/net/retries.ts';
import { type WatchedReply, watchedFetch } from '../../src/base/net/watched-fetch.ts';
import type { CopySource, FileFacts, OpenSource } from './copy-source.ts';

export interface ServerSourceOptions {
  /** Key with the scope admin. */
  readonly apiKey?: string;
  /** A request that gets nothing for this long is repeated, in milliseconds. Default: 30,000. */
  readonly stallMs?: number;
}

type ListedFile = FileFacts & { readonly path: string };

/** Base URL and name of an index in `http://HOST:PORT/indexes/NAME`. @throws TrawlError USAGE. */
export function parseIndexUrl(text: string): { readonly base: string; readonly name: string } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const [, base, name] = /^(https?:\/\/.+?)\/indexes\/([^/?#]+)\/*$/.exec(text) ?? [];
  if (url !== undefined && url.username === '' && url.password === '' && base !== undefined) {
    return { base, name: decodeURIComponent(name!) };
  }
  throw new TrawlError(
    'USAGE',
    'The URL of an index is not valid; expected http://HOST:PORT/indexes/NAME, without a user. Pass a key with --key-file.',
  );
}

/** An index of another server, which holds its files open while they are copied. */
export function serverSource(url: string, options: ServerSourceOptions = {}): OpenSource {
  const { base, name } = parseIndexUrl(url);
  const { apiKey, stallMs = 30_000 } = options;
  const root = `${base}/admin/indexes/${encodeURIComponent(name)}/files`;
  const get = async (address: string, headers: Record<string, string>, signal: AbortSignal): Promise<WatchedReply> => {
    const key: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    const all = { 'accept-encoding': 'identity', ...key, ...headers };
    const reply = await watchedFetch(address, { headers: all, stallMs, signal });
    if (reply.status === 200 || reply.status === 206) return reply;
    throw await refusal(url, reply);
  };
  return async (signal) => {
    const { snapshot, files } = await listing(url, await get(root, {}, signal));
    const factsOf = (path: string): ListedFile => {
      const file = files.get(path);
      if (file !== undefined) return file;
      throw new TrawlError(
        'SOURCE_REFUSED',
        `${url} does not list the file ${path} that its manifest names. Check that the server runs this version of trawl, and the index ` +
          'there with `trawl verify`.',
      );
    };
    async function* read(path: string, offset: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
      const { bytes, tag } = factsOf(path);
      if (offset >= bytes && offset > 0) return;
      const address = `${root}/${snapshot}/${path.split('/').map(encodeURIComponent).join('/')}`;
      const reply = await get(address, offset === 0 ? {} : { range: `bytes=${offset}-` }, signal);
      try {
        const isRange = reply.headers.get('content-range')?.startsWith(`bytes ${offset}-`) ?? false;
        if (offset > 0 && !(reply.status === 206 && isRange)) {
          const found = `${url}: ${path} is not sent from byte ${offset}, but whole. Is it a proxy?`;
          throw new TrawlError('SOURCE_REFUSED', found);
        }
        if (reply.headers.get('etag') !== `"${tag}"`) {
          throw new TrawlError('SOURCE_CHANGED', `${url}: another file has taken the place of ${path}.`);
        }
        yield* reply.body();
      } finally {
        reply.drop();
      }
    }
    return {
      shown: url,
      async readManifest(path, signal) {
        const { bytes } = factsOf(path);
        const manifest = await buffer(read(path, 0, signal));
        if (manifest.length === bytes) return manifest;
        throw new TransientFailure(`${path} ended after ${manifest.length} of ${bytes} bytes`);
      },
      async facts(path) {
        return factsOf(path);
      },
      read,
      close: async () => undefined,
    } satisfies CopySource;
  };
}

async function listing(
  url: string,
  reply: WatchedReply,
): Promise<{ readonly snapshot: string; readonly files: ReadonlyMap<string, ListedFile> }> {
  const json = await text(reply.body());
  try {
    const { snapshot, files } = JSON.parse(json) as { snapshot: unknown; files: ListedFile[] };
    if (typeof snapshot === 'string' && /^[0-9a-f]{32}$/.test(snapshot)) {
      return { snapshot, files: new Map(files.map((file) => [file.path, file])) };
    }
  } catch {
    // A proxy, for example, answers in HTML.
  }
  throw new TrawlError(
    'SOURCE_REFUSED',
    `${url} did not answer with a list of files. Is it a Trawl server of this version?`,
  );
}

async function refusal(url: string, reply: WatchedReply): Promise<Error> {
  const { status, headers } = reply;
  const { code, message } = errorOf(await text(reply.body()).catch(() => ''));
  const said = message === undefined ? '' : ` It says: ${message}`;
  if (status === 410) return new TrawlError('SOURCE_CHANGED', `${url} no longer has the index that was listed.${said}`);
  if (status === 429 || (status >= 500 && code !== 'NOT_SUPPORTED')) {
    return new TransientFailure(`${url} answers with status ${status}`, { retryAfterMs: retryAfterMs(headers) });
  }
  const advice =
    status === 401 || status === 403
      ? ' Give --key-file with a key of the scope admin. A server without keys gives its files only to its own machine.'
      : status === 404
        ? ' Check the name of the index; `trawl sync` needs a server of a version that lists the files of an index.'
        : '';
  return new TrawlError('SOURCE_REFUSED', `${url} answers with status ${status}.${said}${advice}`, {
    details: { url, status },
  });
}

/** The error in a reply's body, if it is one of Trawl's. */
function errorOf(body: string): { readonly code?: unknown; readonly message?: unknown } {
  try {
    return (JSON.parse(body) as { error?: { code?: unknown; message?: unknown } }).error ?? {};
  } catch {
    return {};
  }
}
