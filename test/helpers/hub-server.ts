import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface RecordedRequest {
  readonly method: string;
  readonly url: string;
  readonly range: string | undefined;
  readonly ifRange: string | undefined;
  readonly authorization: string | undefined;
  /** Whether it went to the second origin, which has the large files. */
  readonly cdn: boolean;
}

export interface HubRepositoryContent {
  readonly type?: 'model' | 'dataset';
  readonly name: string;
  /** Contents by path. */
  readonly files: Readonly<Record<string, Buffer>>;
  /** Branches and tags besides main. */
  readonly refs?: readonly string[];
  /** Files of at least this size are "LFS": the listing has their SHA-256, the second origin their bytes. Default 1024. */
  readonly lfsFrom?: number;
  readonly gated?: boolean;
  readonly private?: boolean;
}

/** Faults in the transfer of a file. */
export interface FileBehaviour {
  /** The first `breaks` replies are disconnected after this many bytes. */
  breakAfter?: number;
  breaks?: number;
  /** The first `stalls` replies stop after this many bytes, with the connection open. */
  stallAfter?: number;
  stalls?: number;
  /** Pause before each chunk of `chunkBytes`, in ms. */
  pauseMs?: number;
  chunkBytes?: number;
  /** Sent instead of the content. */
  content?: Buffer;
  ignoreRange?: boolean;
  wrongRange?: boolean;
  /** Answers to the first requests: a status with headers. */
  refusals?: { status: number; headers?: Record<string, string> }[];
  etag?: string;
}

/** A server on 127.0.0.1 with the hub's routes, a second origin for large files, and faults on demand. */
export class HubServer {
  readonly requests: RecordedRequest[] = [];
  readonly behaviour: Record<string, FileBehaviour> = {};
  /** Answers to the first requests of the API. */
  readonly apiRefusals: { status: number; headers?: Record<string, string>; body?: string }[] = [];
  /** Bytes of file contents sent. */
  sentBytes = 0;
  /** Bytes sent, by path. */
  readonly sentOf: Record<string, number> = {};
  /** Entries to add to the listing unchanged. */
  readonly extraEntries: object[] = [];
  pageSize = 3;
  token = 'private-hub-token';
  /** Origin of page links and redirects, if not this server. */
  linkOrigin: string | undefined;
  /** Whether the client has kept the first `bytes` of a file. A connection breaks when it has, at the latest after two seconds. */
  hasKept: ((path: string, bytes: number) => boolean) | undefined;
  readonly #repositories: HubRepositoryContent[];
  readonly #hub: Server;
  readonly #cdn: Server;

  private constructor(repositories: HubRepositoryContent[]) {
    this.#repositories = repositories;
    this.#hub = createServer((request, response) => this.#serve(request, response, false));
    this.#cdn = createServer((request, response) => this.#serve(request, response, true));
  }

  static async start(...repositories: HubRepositoryContent[]): Promise<HubServer> {
    const server = new HubServer(repositories);
    for (const each of [server.#hub, server.#cdn]) {
      await new Promise<void>((resolve) => each.listen(0, '127.0.0.1', resolve));
    }
    server.endpoint = originOf(server.#hub);
    server.cdnOrigin = originOf(server.#cdn);
    return server;
  }

  endpoint = '';
  cdnOrigin = '';

  /** Replaces the repository of that name, as a push does. */
  replace(repository: HubRepositoryContent): void {
    const at = this.#repositories.findIndex(({ name }) => name === repository.name);
    this.#repositories.splice(at, 1, repository);
  }

  async close(): Promise<void> {
    for (const each of [this.#hub, this.#cdn]) {
      each.closeAllConnections();
      await new Promise((resolve) => each.close(resolve));
    }
  }

  #serve(request: IncomingMessage, response: ServerResponse, cdn: boolean): void {
    const { method = '', url = '', headers } = request;
    this.requests.push({
      method,
      url,
      range: headers.range,
      ifRange: headers['if-range'] as string | undefined,
      authorization: headers.authorization,
      cdn,
    });
    const { pathname, searchParams } = new URL(url, 'http://x');
    const api = /^\/api\/(model|dataset)s\/([^/]+\/[^/]+)\/(revision|tree|paths-info)\/([^/]+)$/.exec(pathname);
    if (api !== null) {
      const refusal = this.apiRefusals.shift();
      if (refusal !== undefined) {
        response.writeHead(refusal.status, refusal.headers).end(refusal.body ?? '');
        return;
      }
      const [, type, name, route, revision] = api;
      const repository = this.#open(request, response, type!, name!, decodeURIComponent(revision!));
      if (repository === undefined) return;
      if (route === 'revision') {
        sendJson(response, { _id: 'x', id: name, sha: commitOf(repository), lastModified: '2026-01-01T00:00:00.000Z' });
      } else this.#sendTree(response, url, searchParams, repository);
      return;
    }
    const file = /^\/(datasets\/)?([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(pathname);
    if (file === null) {
      response.writeHead(404).end();
      return;
    }
    const [, dataset, name, revision, path] = file;
    const repository = cdn
      ? this.#repositories.find((each) => each.name === name)
      : this.#open(
          request,
          response,
          dataset === undefined ? 'model' : 'dataset',
          name!,
          decodeURIComponent(revision!),
        );
    if (repository === undefined) return;
    this.#sendFile(request, response, repository, decodeURIComponent(path!), cdn);
  }

  /** The repository, if the request may see it. Otherwise sends the refusal. */
  #open(request: IncomingMessage, response: ServerResponse, type: string, name: string, revision: string) {
    const refuse = (status: number, code: string, message: string): undefined => {
      response
        .writeHead(status, { 'x-error-code': code, 'x-error-message': message })
        .end(JSON.stringify({ error: message }));
    };
    const repository = this.#repositories.find((each) => each.name === name && (each.type ?? 'model') === type);
    const { authorization } = request.headers;
    if (authorization !== undefined && authorization !== `Bearer ${this.token}`) {
      return refuse(401, '', 'Invalid credentials in Authorization header');
    }
    const known = authorization !== undefined;
    if (repository === undefined || (repository.private === true && !known)) {
      return refuse(known ? 404 : 401, 'RepoNotFound', 'Repository not found');
    }
    if (repository.gated === true && !known) return refuse(401, 'GatedRepo', `Access to model ${name} is restricted.`);
    if (!['main', 'HEAD', commitOf(repository), ...(repository.refs ?? [])].includes(revision)) {
      return refuse(404, 'RevisionNotFound', `Invalid rev id: ${revision}`);
    }
    return repository;
  }

  #sendTree(response: ServerResponse, url: string, query: URLSearchParams, repository: HubRepositoryContent): void {
    const entries = [
      ...Object.entries(repository.files).map(([path, content]) => entryOf(repository, path, content)),
      ...this.extraEntries,
    ];
    const from = Number(query.get('cursor') ?? 0);
    const rest = from + this.pageSize < entries.length;
    const next = new URL(url, this.linkOrigin ?? this.endpoint);
    next.searchParams.set('cursor', String(from + this.pageSize));
    sendJson(response, entries.slice(from, from + this.pageSize), rest ? { link: `<${next.href}>; rel="next"` } : {});
  }

  #sendFile(
    request: IncomingMessage,
    response: ServerResponse,
    repository: HubRepositoryContent,
    path: string,
    cdn: boolean,
  ): void {
    const original = repository.files[path];
    if (original === undefined) {
      response.writeHead(404, { 'x-error-code': 'EntryNotFound' }).end();
      return;
    }
    const behaviour = this.behaviour[path] ?? {};
    const hash = entryOf(repository, path, original);
    if (!cdn && hash.lfs !== undefined) {
      const { pathname } = new URL(request.url!, 'http://x');
      response
        .writeHead(302, {
          location: `${this.linkOrigin ?? this.cdnOrigin}${pathname}?signature=1`,
          'x-linked-etag': `"${hash.lfs.oid}"`,
          'x-linked-size': String(original.length),
          'x-repo-commit': commitOf(repository),
        })
        .end();
      return;
    }
    const refusal = behaviour.refusals?.shift();
    if (refusal !== undefined) {
      response.writeHead(refusal.status, refusal.headers).end();
      return;
    }
    const content = behaviour.content ?? original;
    const etag = behaviour.etag ?? `"${sha256(content).slice(0, 32)}"`;
    const { range, 'if-range': ifRange } = request.headers;
    const [, requestedStart] = /^bytes=(\d+)-$/.exec(range ?? '') ?? [];
    const usable =
      requestedStart !== undefined && behaviour.ignoreRange !== true && (ifRange === undefined || ifRange === etag);
    const start = usable ? Number(requestedStart) : 0;
    if (start >= content.length && usable) {
      response.writeHead(416, { 'content-range': `bytes */${content.length}` }).end();
      return;
    }
    const named = behaviour.wrongRange === true ? start + 1 : start;
    response.writeHead(usable ? 206 : 200, {
      etag,
      'accept-ranges': 'bytes',
      'content-length': content.length - start,
      'x-repo-commit': commitOf(repository),
      ...(usable ? { 'content-range': `bytes ${named}-${content.length - 1}/${content.length}` } : {}),
    });
    void this.#sendBody(response, path, content, start, behaviour);
  }

  async #sendBody(
    response: ServerResponse,
    path: string,
    content: Buffer,
    start: number,
    behaviour: FileBehaviour,
  ): Promise<void> {
    const body = content.subarray(start);
    const breaks = (behaviour.breaks ?? 0) > 0 ? behaviour.breakAfter! : undefined;
    const stalls = (behaviour.stalls ?? 0) > 0 ? behaviour.stallAfter! : undefined;
    const end = Math.min(breaks ?? body.length, stalls ?? body.length, body.length);
    const step = behaviour.chunkBytes ?? 64 * 1024;
    for (let at = 0; at < end; at += step) {
      if (behaviour.pauseMs !== undefined) await new Promise((resolve) => setTimeout(resolve, behaviour.pauseMs));
      if (response.destroyed) return;
      const chunk = body.subarray(at, Math.min(end, at + step));
      await new Promise<void>((resolve) => {
        const done = (): void => {
          response.off('close', done);
          resolve();
        };
        response.once('close', done);
        response.write(chunk, done);
      });
      this.sentBytes += chunk.length;
      this.sentOf[path] = (this.sentOf[path] ?? 0) + chunk.length;
    }
    if (stalls !== undefined && end < body.length) {
      behaviour.stalls!--;
      return;
    }
    if (breaks !== undefined && end < body.length) {
      behaviour.breaks!--;
      // The client must read the written bytes first: fetch discards what it has buffered when the connection breaks.
      await this.#untilKept(path, start + end);
      response.destroy();
      return;
    }
    response.end();
  }

  async #untilKept(path: string, bytes: number): Promise<void> {
    const hasKept = this.hasKept;
    if (hasKept === undefined) return sleep(250);
    for (const until = Date.now() + 2000; !hasKept(path, bytes) && Date.now() < until; ) await sleep(5);
  }
}

export function commitOf({ name, files }: HubRepositoryContent): string {
  const hash = createHash('sha1').update(name);
  for (const [path, content] of Object.entries(files)) hash.update(path).update(content);
  return hash.digest('hex');
}

function entryOf({ lfsFrom = 1024 }: HubRepositoryContent, path: string, content: Buffer) {
  const oid = createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
  const lfs = content.length >= lfsFrom ? { oid: sha256(content), size: content.length, pointerSize: 134 } : undefined;
  return { type: 'file', path, size: content.length, oid, lfs };
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

function sendJson(response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
}

function originOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
