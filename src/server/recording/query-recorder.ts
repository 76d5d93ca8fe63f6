import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { QueryOutcome } from '../../search/calls/query-outcome.ts';
import type { QueryOrigin } from './query-origin.ts';
import { RecordFile, type RecordFileOptions } from './record-file.ts';
import { openingLines, recordLines } from './record-line.ts';
import type { RecordedOpening, RecordedSearch } from './recorded-search.ts';

export interface QueryRecorderOptions extends RecordFileOptions {
  /** Limit of the bytes that wait to be written. Above it, searches are dropped. Default: 64 MiB. */
  readonly maxWaitingBytes?: number;
  /** Called with the first error of a series of failed writes. */
  readonly onFailure?: (error: unknown) => void;
}

/** The lines of a request, which are made when they are written. */
interface WaitingLines {
  readonly lines: () => Iterable<string>;
  readonly bytes: number;
}

const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** Characters per write. */
const CHUNK_CHARACTERS = 256 * 1024;
/** Longest time for which the recorder formats lines before it yields to the event loop, in milliseconds. */
const SLICE_MS = 4;

/**
 * Writes queries with the ids of their hits, and openings, to a JSON Lines file, one line each. `record` does not wait for the disk: if the
 * disk is full or too slow, lines are dropped and counted, and no request is delayed.
 */
export class QueryRecorder {
  readonly #options: QueryRecorderOptions;
  readonly #file: RecordFile;
  readonly #waiting: WaitingLines[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #failing = false;
  #dropped = 0;
  #closed = false;

  private constructor(options: QueryRecorderOptions, file: RecordFile) {
    this.#options = options;
    this.#file = file;
  }

  /** Appends to an existing file. @throws TrawlError OUTPUT_NOT_WRITABLE. */
  static async open(options: QueryRecorderOptions): Promise<QueryRecorder> {
    return new QueryRecorder(options, await RecordFile.open(options));
  }

  /**
   * Queries and openings that were not recorded, or were recorded in a file that was removed during the write; and unfinished lines of a killed server
   * that were cut off.
   */
  get dropped(): number {
    return this.#dropped + this.#file.linesCut;
  }

  record(request: object, search: RecordedSearch): void {
    const outcomes = search.outcomes.reduce((sum, outcome) => sum + outcomeBytes(outcome), 0);
    const bytes = (search.origins ?? []).reduce((sum, origin) => sum + originBytes(origin), outcomes);
    const time = new Date().toISOString();
    this.#add({ lines: () => recordLines(time, request, search), bytes }, search.queries.length);
  }

  recordOpenings(request: object, openings: readonly RecordedOpening[]): void {
    const bytes = openings.reduce(
      (sum, { opened, passages, origin = {} }) =>
        sum + 2 * opened.length + 50 * passages.length + 200 + originBytes(origin),
      0,
    );
    const time = new Date().toISOString();
    this.#add({ lines: () => openingLines(time, request, openings), bytes }, openings.length);
  }

  #add(waiting: WaitingLines, lines: number): void {
    const limit = this.#options.maxWaitingBytes ?? MAX_WAITING_BYTES;
    if (this.#closed || this.#waitingBytes + waiting.bytes > limit) {
      this.#dropped += lines;
      return;
    }
    this.#waiting.push(waiting);
    this.#waitingBytes += waiting.bytes;
    this.#writing ??= this.#write();
  }

  /** Opens the path again. @throws TrawlError OUTPUT_NOT_WRITABLE; the open file stays in use. */
  reopen(): Promise<void> {
    return this.#file.reopen();
  }

  /** Resolves when everything recorded so far was written or dropped. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  /** Resolves when no rotated file is being compressed. */
  compressed(): Promise<void> {
    return this.#file.compressed();
  }

  /** Flushes first. Later searches are dropped. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.flush();
    await this.#file.close();
  }

  async #write(): Promise<void> {
    // Lets the request send its response first.
    await yieldToEventLoop();
    let text = '';
    let lines = 0;
    const append = async (): Promise<void> => {
      await this.#append(text, lines);
      text = '';
      lines = 0;
    };
    let sliceStart = performance.now();
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      for (const line of next.lines()) {
        text += line;
        lines++;
        if (performance.now() - sliceStart > SLICE_MS) {
          await yieldToEventLoop();
          sliceStart = performance.now();
        }
        if (text.length >= CHUNK_CHARACTERS) await append();
      }
      this.#waitingBytes -= next.bytes;
      if (this.#waiting.length === 0 && text !== '') await append();
    }
    // No await since the queue was found empty, so a later `record` starts a new writer.
    this.#writing = undefined;
  }

  async #append(text: string, lines: number): Promise<void> {
    try {
      if (!(await this.#file.append(text))) this.#dropped += lines;
      this.#failing = false;
    } catch (error) {
      this.#dropped += lines;
      if (!this.#failing) this.#options.onFailure?.(error);
      this.#failing = true;
    }
  }
}

function outcomeBytes(outcome: QueryOutcome): number {
  if (!outcome.ok) return 100;
  const { hits, text, vector } = outcome;
  return hits.reduce(
    (sum, { document }) => sum + 2 * document.length,
    2 * text.length + (vector?.byteLength ?? 0) + 200,
  );
}

function originBytes({ question = '', tags = {} }: QueryOrigin): number {
  const tagged = Object.entries(tags).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  // The ids are short.
  return 2 * (question.length + tagged) + 500;
}
