import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { runRefresh } from '../../../indexer/writable/refresh-job.ts';
import { WritableFolder } from '../../../indexer/writable/writable-folder.ts';
import type { ViewDefinition } from '../../../src/index/views/view-definition.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../../src/search/retriever.ts';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import type { OpenIndex } from '../../../src/server/indexes/index-slot.ts';
import type { ServerConfig } from '../../../src/server/server-config.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { ask, elasticsearch, type Reply } from './elasticsearch-server.ts';

export interface WritableServer {
  readonly app: FastifyInstance;
  readonly folder: string;
  readonly holder: IndexRegistry;
  /** Failures of refreshes that nobody waited for. */
  readonly failures: readonly unknown[];
  /** Ends the server before the test ends. */
  stop(): Promise<void>;
}

/** A server over an empty folder of writable indexes, or over the folder of an earlier one. */
export async function writableServer(
  t: TestContext,
  {
    folder,
    served = [],
    groups = new Map<string, readonly string[]>(),
    views = [],
    config = {},
    inChild = false,
    wrap = (retriever) => retriever,
  }: {
    readonly folder?: string;
    /** Indexes beside the writable ones. */
    readonly served?: readonly { readonly name: string; readonly folder: string }[];
    readonly groups?: ReadonlyMap<string, readonly string[]>;
    readonly views?: readonly ViewDefinition[];
    readonly config?: Partial<ServerConfig>;
    /** Refreshes in child processes, as a real server does it. Default: in this process, which takes a tenth of the time. */
    readonly inChild?: boolean;
    readonly wrap?: (retriever: OpenRetriever) => OpenRetriever;
  } = {},
): Promise<WritableServer> {
  const failures: unknown[] = [];
  const place = folder ?? join(await tempFolder(t), 'writable');
  const events = { onRefreshed: () => undefined, onFailure: (_: string, error: unknown) => failures.push(error) };
  const writable = inChild ? WritableFolder.prepare(place, events) : WritableFolder.prepare(place, events, runRefresh);
  let stopping: Promise<void> | undefined;
  const open: OpenIndex = async (name, target) =>
    wrap(await openRetriever(target.folder, { modes: ['bm25'], name, views }));
  const holder = IndexRegistry.opening([...served, ...writable.targets()], open, groups);
  const stop = (): Promise<void> => {
    stopping ??= writable.close().then(() => holder.close());
    return stopping;
  };
  t.after(stop);
  await writable.attach(holder, open);
  await holder.open();
  const app = elasticsearch(t, holder, { writable, ...config });
  return { app, folder: place, holder, failures, stop };
}

/** Only requests refresh an index with these settings. */
export const MANUAL = { settings: { refresh_interval: '-1' } } as const;

/** A `_bulk` body of the lines. */
export function ndjson(...lines: readonly object[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

/** The ids that a search finds, best first. */
export async function idsOf(app: FastifyInstance, index: string, query: object): Promise<readonly string[]> {
  const reply = await ask(app, 'POST', `/${index}/_search`, { query, size: 100 });
  if (reply.status !== 200) throw new Error(reply.text);
  return (reply.json.hits!.hits as unknown as { _id: string }[]).map(({ _id }) => _id);
}

/** Fails if a reply is an error. */
export function succeeded(reply: Reply): Reply {
  if (reply.status >= 300) throw new Error(`${reply.status}: ${reply.text}`);
  return reply;
}
