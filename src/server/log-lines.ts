import { write, writeSync } from 'node:fs';
import { isNodeError } from '../base/errors.ts';

/** Pause before a write to a full pipe is retried, in milliseconds. */
const RETRY_MS = 50;
/** Pause after a write, in milliseconds: a busy server writes many lines at once, a quiet one writes without delay. */
const PAUSE_MS = 20;
const NEWLINE = 0x0a;
/** Approximate limit of the characters of one write. */
const CHUNK_CHARACTERS = 256 * 1024;

/**
 * Writes lines to a file descriptor without blocking the caller. At most `maxWaiting` characters wait; further lines, and lines that
 * cannot be written (full disk, closed pipe), are dropped and counted. Used instead of pino's own destination, whose flush retries a
 * full disk forever.
 */
export class LogLines {
  readonly #fd: number;
  readonly #maxWaiting: number;
  #waiting: string[] = [];
  #waitingCharacters = 0;
  /** The lines, or the rest of them, of the current write; empty between writes. */
  #chunk: Buffer = Buffer.alloc(0);
  /** Whether the last written line is incomplete, because the disk became full. */
  #torn = false;
  /** Whether `write` need not start a write: one is running, or a timer will start the next one. */
  #writing = false;
  /** Whether the operating system is writing `#chunk` at this moment. */
  #inFlight = false;
  #dropped = 0;

  constructor(fd: number, maxWaiting: number) {
    this.#fd = fd;
    this.#maxWaiting = maxWaiting;
  }

  /** Number of dropped lines. */
  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    if (this.#waitingCharacters + line.length > this.#maxWaiting) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingCharacters += line.length;
    if (!this.#writing) this.#writeNext();
  }

  /** Tries once to write the waiting lines. Does not interfere with a running write. */
  flush(): void {
    const unwritten = this.#inFlight ? Buffer.alloc(0) : this.#chunk;
    const waiting = this.#waiting.join('');
    let rest: Buffer = Buffer.concat([
      unwritten,
      Buffer.from(unwritten.length > 0 ? waiting : this.#onNewLine(waiting)),
    ]);
    if (!this.#inFlight) this.#chunk = Buffer.alloc(0);
    this.#waiting = [];
    this.#waitingCharacters = 0;
    try {
      while (rest.length > 0) rest = this.#after(rest, writeSync(this.#fd, rest));
    } catch {
      this.#dropped += linesOf(rest);
    }
  }

  #writeNext(): void {
    if (this.#chunk.length === 0) {
      this.#chunk = Buffer.from(this.#onNewLine(this.#take().join('')));
    }
    this.#writing = this.#chunk.length > 0;
    if (!this.#writing) return;
    this.#inFlight = true;
    write(this.#fd, this.#chunk, (error, bytes) => this.#written(error, bytes));
  }

  /** Puts a newline before the text if the last line is incomplete. */
  #onNewLine(text: string): string {
    return this.#torn && text !== '' ? `\n${text}` : text;
  }

  #take(): string[] {
    let characters = 0;
    let lines = 0;
    while (lines < this.#waiting.length && characters < CHUNK_CHARACTERS) characters += this.#waiting[lines++]!.length;
    this.#waitingCharacters -= characters;
    return this.#waiting.splice(0, lines);
  }

  /** The rest of a chunk after `bytes` bytes of it were written. */
  #after(chunk: Buffer, bytes: number): Buffer {
    if (bytes > 0) this.#torn = chunk[bytes - 1] !== NEWLINE;
    return chunk.subarray(bytes);
  }

  #written(error: NodeJS.ErrnoException | null, bytes: number): void {
    this.#inFlight = false;
    if (isNodeError(error) && error.code === 'EAGAIN') {
      setTimeout(() => this.#writeNext(), RETRY_MS).unref();
      return;
    }
    if (error === null) {
      this.#chunk = this.#after(this.#chunk, bytes);
    } else {
      this.#dropped += linesOf(this.#chunk);
      this.#chunk = Buffer.alloc(0);
    }
    if (this.#chunk.length > 0 || this.#waitingCharacters > CHUNK_CHARACTERS) this.#writeNext();
    else setTimeout(() => this.#writeNext(), PAUSE_MS).unref();
  }
}

/** Number of lines in these bytes. A newline alone, the end of a line that is already written, does not count. */
function linesOf(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(NEWLINE, 1); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines++;
  return lines;
}
