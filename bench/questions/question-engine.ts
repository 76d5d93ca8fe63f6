import type { SearchMode } from '../../src/search/search-mode.ts';
import type { LexicalEngine } from '../lexical/lexical-engine.ts';
import { EngineUnavailable } from '../script-process.ts';
import { HttpConnection } from '../serve/http-connection.ts';
import type { ServeEngine } from '../serve/serve-engine.ts';

/** The hits of one question: ids, best first. */
type FoundIds = readonly string[];

/** A way to answer questions from text to passages. One call at a time. */
export interface QuestionEngine {
  /** `trawl`, or the name of the baseline. */
  readonly name: string;
  readonly version: string;
  readonly mode: SearchMode;
  /** efSearch of a graph; absent or null: it is no graph. */
  readonly effort?: number | null;
  /** What a measured time covers: a request over HTTP with embedding and passages, or the library's search alone. */
  readonly over: 'http' | 'library';
  /** Asks all questions one by one. Resolves to their times in milliseconds and their hits. */
  ask(questions: readonly string[]): Promise<{ ms: readonly number[]; ids: readonly FoundIds[] }>;
  residentBytes(): Promise<number | null>;
  close(): Promise<void>;
}

/** `POST /v1/search` of a Trawl server in one mode. Closing it leaves the server open. */
export function trawlOverHttp(server: ServeEngine, mode: SearchMode, k: number): QuestionEngine {
  return overHttp(server, mode, {
    path: '/v1/search',
    bodyOf: (question) => ({ queries: [question], k, mode }),
    idsOf: (reply) =>
      (reply as { results: { hits: { id: string | number }[] }[] }).results[0]!.hits.map(({ id }) => String(id)),
  });
}

/** `POST /retrieve`, as Search-R1's clients ask. */
export function searchR1OverHttp(server: ServeEngine, k: number): QuestionEngine {
  return overHttp(server, 'dense', {
    path: '/retrieve',
    bodyOf: (question) => ({ queries: [question], topk: k, return_scores: true }),
    idsOf: (reply) =>
      (reply as { result: { document: { id: string | number } }[][] }).result[0]!.map(({ document }) =>
        String(document.id),
      ),
  });
}

function overHttp(
  server: ServeEngine,
  mode: SearchMode,
  { path, bodyOf, idsOf }: { path: string; bodyOf(question: string): object; idsOf(reply: unknown): string[] },
): QuestionEngine {
  const connection = new HttpConnection(server.port);
  return {
    name: server.name,
    version: server.version,
    mode,
    over: 'http',
    async ask(questions) {
      const ms: number[] = [];
      const ids: FoundIds[] = [];
      for (const question of questions) {
        const body = Buffer.from(JSON.stringify(bodyOf(question)));
        const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
        const request = Buffer.concat([Buffer.from(head), body]);
        const begun = performance.now();
        const reply = await connection.send(request, { keepAlive: true });
        ms.push(performance.now() - begun);
        const text = reply.body.toString();
        if (reply.status !== 200) throw new EngineUnavailable(`${server.name}: ${reply.status} ${text.slice(0, 200)}`);
        ids.push(idsOf(JSON.parse(text)));
      }
      return { ms, ids };
    },
    residentBytes: () => server.residentBytes(),
    async close() {
      connection.close();
    },
  };
}

/** No list of questions takes that long. */
const NO_LIMIT_MS = 3_600_000;

/** A BM25 library. It has its questions already. `idOfRow`: the ids of the corpus rows. */
export function bm25Library(engine: LexicalEngine, k: number, idOfRow: readonly string[]): QuestionEngine {
  return {
    name: engine.name,
    version: engine.version,
    mode: 'bm25',
    over: 'library',
    async ask() {
      const ms = await engine.lone(k, 1, NO_LIMIT_MS);
      const answer = await engine.answer();
      return { ms, ids: answer.map(({ rows }) => Array.from(rows, (row) => idOfRow[row]!)) };
    },
    residentBytes: async () => engine.processBytes(),
    close: () => engine.close(),
  };
}
