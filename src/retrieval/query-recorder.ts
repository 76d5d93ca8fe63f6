import { type FileHandle, open, rename } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EncoderInput } from '../embedding/text-encoder.ts';
import { TrawlError } from '../errors.ts';
import { documentFields } from '../passages/document-fields.ts';
import type { QueryOutcome, RetrieveCall, RetrieveResult } from './retriever.ts';

export interface QueryRecorderOptions {
  readonly path: string;
  /** Bytes from which on the file is renamed to `path.1` (and that to `path.2`, …) and a new one begun. */
  readonly maxFileBytes: number;
  /** Files beside the one being written. */
  readonly keep: number;
  /** Bytes of calls waiting to be written, beyond which further ones are dropped. Default: 64 MiB. */
  readonly maxWaitingBytes?: number;
  /** Told once each time that writing begins to fail. */
  readonly onFailure?: (error: unknown) => void;
}

interface RecordedCall {
  readonly time: string;
  readonly request: object;
  readonly call: Pick<RetrieveCall, 'queries' | 'k' | 'truncate'>;
  readonly outcomes: readonly QueryOutcome[];
  readonly bytes: number;
}

const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** Characters written at once. */
const CHUNK_CHARACTERS = 256 * 1024;
/** How long making lines may hold the event loop, in milliseconds. */
const TURN_MS = 4;
/** Queries hold passages: a file that only its owner reads. */
const MODE = 0o600;

/**
 * Writes queries and the ids that were found for them to a file of JSON lines, one line a query, beside the serving of
 * requests: `record` returns at once, and what cannot be written as fast as it comes is dropped and counted. A disk
 * without space stops nothing.
 */
export class QueryRecorder {
  readonly #options: QueryRecorderOptions;
  #file: FileHandle;
  #fileBytes: number;
  readonly #waiting: RecordedCall[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #failing = false;
  #dropped = 0;
  #closed = false;

  private constructor(options: QueryRecorderOptions, file: FileHandle, fileBytes: number) {
    this.#options = options;
    this.#file = file;
    this.#fileBytes = fileBytes;
  }

  /** Appends to a file that is there. @throws TrawlError OUTPUT_NOT_WRITABLE. */
  static async open(options: QueryRecorderOptions): Promise<QueryRecorder> {
    try {
      const file = await open(options.path, 'a', MODE);
      return new QueryRecorder(options, file, (await file.stat()).size);
    } catch (cause) {
      throw new TrawlError(
        'OUTPUT_NOT_WRITABLE',
        `${options.path}: cannot be written (${(cause as Error).message}). Choose another --record.`,
        { cause },
      );
    }
  }

  /** Queries that were not recorded. */
  get dropped(): number {
    return this.#dropped;
  }

  record(request: object, { queries, k, truncate }: RetrieveCall, { outcomes }: RetrieveResult): void {
    const bytes = outcomes.reduce((sum, outcome) => sum + bytesOf(outcome), 0);
    if (this.#closed || this.#waitingBytes + bytes > (this.#options.maxWaitingBytes ?? MAX_WAITING_BYTES)) {
      this.#dropped += queries.length;
      return;
    }
    const call = { queries, k, ...(truncate === undefined ? {} : { truncate }) };
    this.#waiting.push({ time: new Date().toISOString(), request, call, outcomes, bytes });
    this.#waitingBytes += bytes;
    this.#writing ??= this.#write();
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
    await this.#file.close().catch(() => undefined);
  }

  async #write(): Promise<void> {
    // Not in the turn of the request.
    await nextTurn();
    let text = '';
    let lines = 0;
    let turnStart = performance.now();
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      for (const line of linesOf(next)) {
        text += line;
        lines++;
        if (performance.now() - turnStart > TURN_MS) {
          await nextTurn();
          turnStart = performance.now();
        }
        if (text.length < CHUNK_CHARACTERS) continue;
        await this.#append(text, lines);
        text = '';
        lines = 0;
      }
      this.#waitingBytes -= next.bytes;
      if (this.#waiting.length === 0 && text !== '') {
        await this.#append(text, lines);
        text = '';
        lines = 0;
      }
    }
    // In the same turn as the last look: what is recorded from here on begins anew.
    this.#writing = undefined;
  }

  async #append(text: string, lines: number): Promise<void> {
    const bytes = Buffer.from(text);
    try {
      if (this.#fileBytes > 0 && this.#fileBytes + bytes.length > this.#options.maxFileBytes) await this.#rotate();
      await this.#file.writeFile(bytes);
      this.#fileBytes += bytes.length;
      this.#failing = false;
    } catch (error) {
      this.#dropped += lines;
      // Half a line would spoil the next one.
      await this.#file.truncate(this.#fileBytes).catch(() => undefined);
      if (!this.#failing) this.#options.onFailure?.(error);
      this.#failing = true;
    }
  }

  async #rotate(): Promise<void> {
    const { path, keep } = this.#options;
    const nameOf = (age: number): string => (age === 0 ? path : `${path}.${age}`);
    // Before anything is renamed: tried again and again on a full disk, it would push all files that are kept out.
    const next = `${path}.next`;
    const file = await open(next, 'w', MODE);
    try {
      for (let age = keep - 1; age >= 0; age--) {
        await rename(nameOf(age), nameOf(age + 1)).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'ENOENT') throw error;
        });
      }
      await rename(next, path);
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
    await this.#file.close().catch(() => undefined);
    this.#file = file;
    this.#fileBytes = 0;
  }
}

function bytesOf(outcome: QueryOutcome): number {
  if (!outcome.ok) return 100;
  return outcome.hits.reduce((sum, { document }) => sum + 2 * document.length, 2 * outcome.text.length + 200);
}

function* linesOf({ time, request, call, outcomes }: RecordedCall): Generator<string> {
  const { queries, k, truncate } = call;
  for (const [place, input] of queries.entries()) {
    const outcome = outcomes[place]!;
    const head = { time, ...request, place, ...textsOf(input), k, ...(truncate === undefined ? {} : { truncate }) };
    if (!outcome.ok) {
      yield `${JSON.stringify({ ...head, error: outcome.error.code })}\n`;
      continue;
    }
    const ids = outcome.hits.map(({ document }) => documentFields(document).idJson ?? 'null').join(',');
    const found = { rows: outcome.hits.map(({ row }) => row), scores: outcome.hits.map(({ score }) => score) };
    yield `${JSON.stringify({ ...head, ...found }).slice(0, -1)},"ids":[${ids}]}\n`;
  }
}

function textsOf(input: EncoderInput): object {
  return typeof input === 'string' ? { query: input } : { question: input.question, query: input.query };
}
