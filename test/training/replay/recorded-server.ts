import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../../src/search/retriever.ts';
import { buildApp } from '../../../src/server/app.ts';
import { listen } from '../../../src/server/connections/listen.ts';
import { QueryRecorder } from '../../../src/server/recording/query-recorder.ts';
import type { ServerConfig } from '../../../src/server/server-config.ts';
import { fileFolder, runTrawl, SAMPLE_PASSAGES } from '../../cli/run-trawl.ts';
import { FakeReranker } from '../../helpers/fake-reranker.ts';

export interface RecordedServer {
  readonly folder: string;
  /** An index of the sample corpus with vectors and words. */
  readonly index: string;
  readonly records: string;
  /** Asks the recording server; returns status and text of the reply. */
  ask(path: string, body: unknown, headers?: Record<string, string>): Promise<Asked>;
  /** Waits until everything asked is in `records`. */
  flush(): Promise<void>;
}

export interface Asked {
  readonly status: number;
  readonly text: string;
}

export async function ask(
  url: string,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Asked> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

/** Serves a retriever on a real socket until the test ends. */
export async function serveRetriever(
  t: { after(work: () => Promise<void>): void },
  retriever: OpenRetriever,
  config: Partial<ServerConfig> = {},
): Promise<string> {
  const app = buildApp(retriever, config);
  t.after(() => closeApp(app));
  return listen(app, { host: '127.0.0.1', port: 0 });
}

async function closeApp(app: FastifyInstance): Promise<void> {
  app.server.closeAllConnections();
  await app.close();
}

/** A server of the sample corpus on a real socket that records what it is asked. It has a reranker and no default reranking. */
export async function recordedServer(): Promise<RecordedServer> {
  const folder = await fileFolder();
  const index = join(folder, 'sample');
  const records = join(folder, 'calls.jsonl');
  const built = await runTrawl([
    'index',
    SAMPLE_PASSAGES,
    '--model',
    'token-average-256',
    '--bm25',
    '--out',
    index,
    '--quiet',
  ]);
  if (built.code !== 0) throw new Error(built.stderr);
  const retriever = await openRetriever(index, { encoderThreads: 1, reranker: new FakeReranker() });
  const recorder = await QueryRecorder.open({ path: records, maxFileBytes: 2 ** 30, keep: 0 });
  const app = buildApp(retriever, { record: recorder });
  const url = await listen(app, { host: '127.0.0.1', port: 0 });
  let asked = 0;
  after(async () => {
    await closeApp(app);
    await recorder.close();
    await retriever.close();
  });
  return {
    folder,
    index,
    records,
    ask(path, body, headers) {
      const { queries } = body as { queries?: readonly unknown[] };
      asked += queries?.length ?? 1;
      return ask(url, path, body, headers);
    },
    // A search is recorded after its reply is sent.
    async flush() {
      const lines = (): number => (existsSync(records) ? readFileSync(records, 'utf8').split('\n').length - 1 : 0);
      for (let tries = 0; lines() < asked; tries++) {
        if (tries === 2_000) throw new Error(`${lines()} of ${asked} queries were recorded`);
        await sleep(10);
      }
    },
  };
}
