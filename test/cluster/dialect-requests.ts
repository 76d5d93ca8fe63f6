import { DIALECT_CLIENTS } from '../../evaluation/server/dialect-clients.ts';
import { DIALECTS, NAMEABLE_DIALECTS } from '../../src/http/dialects/dispatch.ts';

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
  const searches = DIALECT_CLIENTS.flatMap(({ name, method, path, batch, request }) =>
    batches.map(
      (queries, i): DialectRequest => ({
        dialect: name,
        named: named(name),
        method: method ?? 'POST',
        path: name === 'elasticsearch' ? `/wiki${path}` : path,
        body: request(batch ? queries : queries.slice(0, 1), 3 + 4 * i),
      }),
    ),
  );
  return [...examples, ...searches];
}

/** The interface of Elasticsearch has an address of its own, on which no other dialect is. */
function named(name: string): string | undefined {
  return NAMEABLE_DIALECTS.includes(name) ? name : undefined;
}

export async function ask(
  url: string,
  { method, path, body }: DialectRequest,
): Promise<{ status: number; text: string }> {
  const parameters = new URLSearchParams(
    Object.entries(body).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const reply =
    method === 'GET'
      ? await fetch(`${url}${path}?${parameters}`)
      : await fetch(url + path, {
          method,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
  return { status: reply.status, text: await reply.text() };
}
