import { type DestinationStream, type Logger, pino } from 'pino';
import { LogLines } from '../../src/server/log-lines.ts';

const STDERR = 2;
/** Largest number of characters that wait to be written; further lines are dropped. */
const MAX_WAITING = 8 * 1024 * 1024;

export interface ServerLog {
  readonly logger: Logger;
  /** Number of lines dropped because they could not be written fast enough. */
  readonly dropped: () => number;
  /** Writes the waiting lines. */
  flush(): void;
}

/** The log of `trawl serve` on stderr: readable lines on a terminal, JSON lines otherwise. */
export async function serverLog({ terminal }: { readonly terminal: boolean }): Promise<ServerLog> {
  if (terminal) return { logger: pino(await prettyLines(STDERR)), dropped: () => 0, flush: () => undefined };
  const lines = new LogLines(STDERR, MAX_WAITING);
  return {
    logger: pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, lines),
    dropped: () => lines.dropped,
    flush: () => lines.flush(),
  };
}

/**
 * Lines such as `12:34:56 INFO  64 queries, top 3: 12.1 ms (queue 0.0, embed 8.0, …)`.
 *
 * @internal Exported for tests.
 */
export async function prettyLines(
  destination: number | NodeJS.WritableStream,
  colorize = true,
): Promise<DestinationStream> {
  // Loaded only for a terminal.
  const { default: pretty } = await import('pino-pretty');
  return pretty({
    destination,
    sync: true,
    colorize,
    ignore: 'pid,hostname',
    hideObject: true,
    translateTime: 'SYS:HH:MM:ss',
    messageFormat: (log) => lineOf(log as LogLine),
  });
}

interface LogLine {
  readonly msg?: string;
  readonly [key: string]: unknown;
}

const OWN_FIELDS = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'reqId', 'err', 'details']);

function lineOf(log: LogLine): string {
  if (log.msg === 'retrieved') return answerLine(log);
  const facts = Object.entries(log)
    .filter(([name]) => !OWN_FIELDS.has(name))
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const error = log.err as { stack?: string } | undefined;
  const head = [log.msg ?? '', facts.join(', ')].filter((part) => part !== '').join(': ');
  return error?.stack === undefined ? head : `${head}\n${error.stack}`;
}

function answerLine(log: LogLine): string {
  const stages = ['queue', 'embed', 'search', 'fetch', 'reply'].map(
    (stage) => `${stage} ${milliseconds(log[`${stage}Ms`])}`,
  );
  const truncated = Number(log.truncated) > 0 ? `, ${log.truncated} truncated` : '';
  const queries = log.queries === 1 ? '1 query' : `${log.queries} queries`;
  return `${queries}, top ${log.k}${truncated}: ${milliseconds(log.totalMs)} ms (${stages.join(', ')})`;
}

function milliseconds(value: unknown): string {
  return Number(value).toFixed(1);
}
