import { after, before } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { buildApp } from '../../src/server/app.ts';
import { listen } from '../../src/server/connections/listen.ts';
import type { ServerConfig } from '../../src/server/server-config.ts';
import { fileFolder } from '../cli/run-trawl.ts';
import { buildSampleIndex } from './sample-index.ts';

export interface SampleServer {
  /** Set before the first test runs. */
  readonly url: string;
  readonly retriever: OpenRetriever;
  /** For a `before` of the file itself, which may run at the same time as the one that starts the server. */
  readonly started: Promise<void>;
  /** Starts another server over the same index. Returns its URL. */
  serve(config: Partial<ServerConfig>): Promise<string>;
}

/** Serves the sample index on a real socket for all tests of the file. */
export async function sampleServer(config: Partial<ServerConfig> = {}): Promise<SampleServer> {
  const folder = await fileFolder();
  const apps: FastifyInstance[] = [];
  let onStarted = (): void => undefined;
  const started = new Promise<void>((resolve) => (onStarted = resolve));
  const server = {
    url: '',
    started,
    retriever: undefined as unknown as OpenRetriever,
    async serve(other: Partial<ServerConfig>): Promise<string> {
      const app = buildApp(server.retriever, other);
      apps.push(app);
      return listen(app, { host: '127.0.0.1', port: 0 });
    },
  };
  before(async () => {
    server.retriever = await openRetriever(await buildSampleIndex(folder), { encoderThreads: 1 });
    server.url = await server.serve(config);
    onStarted();
  });
  after(async () => {
    for (const app of apps) {
      app.server.closeAllConnections();
      await app.close();
    }
    await server.retriever.close();
  });
  return server;
}
