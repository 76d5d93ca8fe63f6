import { DIALECTS, NAMEABLE_DIALECTS, SEARCH_DIALECTS } from '../../src/server/dialects/dispatch.ts';

/** A request of a dialect. */
export interface DialectRequest {
  readonly dialect: string;
  /** The dialect that the address has to prefer; undefined: none. */
  readonly named: string | undefined;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** What the examples of the dialects name, which is of the sample corpus, and what to put there. */
export type Replacements = Readonly<Record<string, string>>;

/** A request of every dialect: the example of its description, and for those that search also the one of `trawl eval`'s client with each batch. */
export function dialectRequests(batches: readonly (readonly string[])[], replacements: Replacements): DialectRequest[] {
  const replaced = (body: object): Record<string, unknown> => {
    let text = JSON.stringify(body);
    for (const [from, to] of Object.entries(replacements)) text = text.replaceAll(from, to);
    return JSON.parse(text) as Record<string, unknown>;
  };
  const examples = DIALECTS.map(({ name, method, path, example }) => ({
    dialect: name,
    named: named(name),
    method,
    path: path.replace(':index', 'wiki'),
    body: replaced(example),
  }));
  const searches = SEARCH_DIALECTS.flatMap(({ name, method, path, client }) =>
    batches.map(
      (queries, i): DialectRequest => ({
        dialect: name,
        named: named(name),
        method,
        path: path.replace(':index', 'wiki'),
        body: client.request(client.batch ? queries : queries.slice(0, 1), 3 + 4 * i),
      }),
    ),
  );
  return [...examples, ...searches];
}

/** A request that needs no dialect of an address. */
export function post(path: string, body: Readonly<Record<string, unknown>>): DialectRequest {
  return { dialect: '', named: undefined, method: 'POST', path, body };
}

/** The interface of Elasticsearch has an address of its own, on which no other dialect is. */
function named(name: string): string | undefined {
  return NAMEABLE_DIALECTS.includes(name) ? name : undefined;
}

/** The addresses of a server. */
export interface Addresses {
  /** The one that prefers a dialect. */
  urlOf(dialect: string | undefined): string;
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  /** Seconds; 0 if the reply has none. */
  readonly retryAfter: number;
}

/** @param limitMs after this it rejects. */
export async function ask(
  server: Addresses,
  { named: dialect, method, path, body }: DialectRequest,
  limitMs = 120_000,
): Promise<Reply> {
  const url = server.urlOf(dialect) + path;
  const signal = AbortSignal.timeout(limitMs);
  const parameters = new URLSearchParams(
    Object.entries(body).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const reply =
    method === 'GET'
      ? await fetch(`${url}?${parameters}`, { signal })
      : await fetch(url, {
          method,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
          signal,
        });
  return { status: reply.status, text: await reply.text(), retryAfter: Number(reply.headers.get('retry-after') ?? 0) };
}
