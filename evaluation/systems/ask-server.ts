import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { inParallel } from '../../src/base/in-parallel.ts';
import { defined } from '../../src/base/objects.ts';
import { percentile, sortedSamples } from '../../src/base/statistics.ts';
import { parseNumbers } from '../../src/index/passages/exact-numbers.ts';
import type { SearchDialect, ServerList, ServerPassage } from '../../src/server/dialects/dialect.ts';
import {
  NoReply,
  type RepeatedRequestOptions,
  type Reply,
  repeatedRequest,
} from '../../src/stores/trawl-server/repeated-request.ts';

export interface AskServerOptions extends RepeatedRequestOptions {
  readonly k: number;
  /** Requests at the same time, ≥ 1. */
  readonly concurrency: number;
  /** Queries of a request, ≥ 1; 1 for a dialect with one query per request. */
  readonly queriesPerRequest: number;
  /** Takes each passage; what it throws ends the asking. */
  readonly check?: (passage: ServerPassage) => void;
}

export type ServerAnswers = Awaited<ReturnType<typeof askServer>>;

/**
 * Asks a server for the passages of all queries, after a trial request that is not measured.
 *
 * @throws TrawlError CONFIG_INVALID if the trial fails; CANCELLED; what `check` throws.
 */
export async function askServer(
  dialect: SearchDialect,
  url: string,
  queries: readonly { readonly id: string; readonly text: string }[],
  { k, concurrency, queriesPerRequest, check, ...options }: AskServerOptions,
) {
  const { client } = dialect;
  const size = client.batch ? queriesPerRequest : 1;
  const batches = Array.from({ length: Math.ceil(queries.length / size) }, (_, i) =>
    queries.slice(i * size, (i + 1) * size),
  );
  /** Query id → its passages, best first, at most k. */
  const lists = new Map<string, readonly ServerPassage[]>();
  /** Query id → why its request failed. */
  const failed = new Map<string, string>();
  /** Time of every answered request in milliseconds: of its last try. */
  const latenciesMs: number[] = [];
  /** Tries beyond the first of each request. */
  let repeated = 0;
  const send = (texts: readonly string[], signal: AbortSignal | undefined): Promise<Reply> =>
    repeatedRequest(...requestOf(dialect, url, texts, k), { ...options, signal });
  const read = (reply: Reply, queries: number): readonly ServerList[] =>
    readReply(dialect, reply, queries).map((list) => ('failed' in list ? list : list.slice(0, k)));
  const checkAll = (found: readonly ServerList[]): void => {
    for (const list of found) if (check !== undefined && !('failed' in list)) list.forEach(check);
  };
  if (queries[0] !== undefined) {
    let trial: readonly ServerList[];
    try {
      trial = read(await send([queries[0].text], options.signal), 1);
    } catch (error) {
      throwIfCancelled(options.signal);
      throw new TrawlError(
        'CONFIG_INVALID',
        `${url}${client.path ?? dialect.path} cannot be asked in the dialect ${dialect.name}: ${(error as Error).message}. ` +
          `${/\/(retrieve|search|v1\/search)\/?$/.test(url) ? 'Give the URL of the server without the path of a route' : 'Check the URL'}, and whether ` +
          'the server speaks this dialect: --dialect names another.',
        { cause: error },
      );
    }
    checkAll(trial);
  }
  const started = performance.now();
  const ask = async (batch: (typeof batches)[number], signal: AbortSignal): Promise<void> => {
    let found: readonly ServerList[];
    try {
      const reply = await send(
        batch.map(({ text }) => text),
        signal,
      );
      repeated += reply.tries - 1;
      found = read(reply, batch.length);
      latenciesMs.push(reply.ms);
    } catch (error) {
      throwIfCancelled(signal);
      if (error instanceof NoReply) repeated += error.tries - 1;
      for (const { id } of batch) failed.set(id, (error as Error).message);
      return;
    }
    checkAll(found);
    for (const [i, list] of found.entries()) {
      if ('failed' in list) failed.set(batch[i]!.id, list.failed);
      else lists.set(batch[i]!.id, list);
    }
  };
  await inParallel(batches, concurrency, ask, options.signal);
  const seconds = (performance.now() - started) / 1000;
  return { lists, failed, latenciesMs, requests: batches.length, repeated, seconds };
}

/** How passages of a server are matched with judgements: by its ids, or by the texts of the relevant passages in a corpus. */
export type MatchedBy = 'id' | 'text';

export type ServerReport = ReturnType<typeof serverReport>;

/**
 * How a server was asked and how fast it answered.
 *
 * @param asked.matchedBy null: not at all; only titles and answers count.
 * @param answered the number of questions whose queries were all answered.
 */
export function serverReport(
  asked: {
    readonly dialect: string;
    readonly matchedBy: MatchedBy | null;
    readonly concurrency: number;
    readonly queriesPerRequest: number;
  },
  { latenciesMs, requests, repeated, seconds, failed }: ServerAnswers,
  answered: number,
) {
  const samples = latenciesMs.length === 0 ? undefined : sortedSamples(latenciesMs);
  const at = (percent: number): number => percentile(samples!, percent);
  /** Reason → failed searches. */
  const failures: Record<string, number> = {};
  for (const reason of failed.values()) failures[reason] = (failures[reason] ?? 0) + 1;
  return {
    ...asked,
    requests,
    /** Tries beyond the first, after 429, 503 and lost connections. */
    repeated,
    latencyMs: samples === undefined ? null : { p50: at(50), p95: at(95), p99: at(99) },
    questionsPerSecond: seconds > 0 ? answered / seconds : 0,
    failures,
  };
}

function requestOf(
  { method, path, client }: SearchDialect,
  url: string,
  texts: readonly string[],
  k: number,
): [url: string, body: object | undefined] {
  const fields = client.request(texts, k);
  const address = url + (client.path ?? path);
  if (method === 'POST') return [address, fields];
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(defined(fields))) parameters.set(name, String(value));
  return [`${address}?${parameters.toString()}`, undefined];
}

/** @throws Error with the reason. */
function readReply({ client }: SearchDialect, { status, text }: Reply, queries: number): readonly ServerList[] {
  const json = parsed(text);
  if (status !== 200) throw new Error(`it answered ${status}${codeOf(json)}`);
  if (json === undefined) throw new Error('its reply is not JSON');
  const lists = client.lists(json);
  if (lists.length !== queries) throw new Error(`its reply has ${lists.length} lists for ${queries} queries`);
  return lists;
}

/** Ids beyond 2^53 keep their digits, as texts. Undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return parseNumbers(text, (source) => {
      const number = Number(source);
      return Number.isInteger(number) && !Number.isSafeInteger(number) ? source : number;
    });
  } catch {
    return undefined;
  }
}

function codeOf(json: unknown): string {
  const code = (json as { error?: { code?: unknown } } | null)?.error?.code;
  return typeof code === 'string' ? ` ${code}` : '';
}
