import { write, writeSync } from 'node:fs';
import { isNodeError } from '../src/errors.ts';

/** Pause before a pipe that is full is tried again, in milliseconds. */
const RETRY_MS = 50;
/** Pause between two writes, in milliseconds: lines of a busy server go together, and the first of a quiet one at once. */
const PAUSE_MS = 20;
const NEWLINE = 0x0a;
/** Characters written at once. */
const CHUNK_CHARACTERS = 256 * 1024;

/**
 * Writes lines to a file descriptor without ever holding up whoever logs. Lines wait up to `maxWaiting` characters; further
 * ones, and those that cannot be written (a full disk, a closed pipe), are dropped and counted. It is not pino's own
 * destination because that one, when it flushes, tries a full disk for ever.
 */
export class LogLines {
  readonly #fd: number;
  readonly #maxWaiting: number;
  #waiting: string[] = [];
  #waitingCharacters = 0;
  /** What is being written. */
  #chunk: Buffer = Buffer.alloc(0);
  /** The last line that was written lacks its end, since the disk was full in the middle of it. */
  #torn = false;
  #writing = false;
  /** The system has `#chunk`. */
  #inFlight = false;
  #dropped = 0;

  constructor(fd: number, maxWaiting: number) {
    this.#fd = fd;
    this.#maxWaiting = maxWaiting;
  }

  /** Lines. */
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

  /** Tries to write what waits, once. What is with the system already is left to it. */
  flush(): void {
    const begun = this.#inFlight ? Buffer.alloc(0) : this.#chunk;
    const waiting = this.#waiting.join('');
    let rest: Buffer = Buffer.concat([begun, Buffer.from(begun.length > 0 ? waiting : this.#onALineOfItsOwn(waiting))]);
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
      this.#chunk = Buffer.from(this.#onALineOfItsOwn(this.#take().join('')));
    }
    this.#writing = this.#chunk.length > 0;
    if (!this.#writing) return;
    this.#inFlight = true;
    write(this.#fd, this.#chunk, (error, bytes) => this.#written(error, bytes));
  }

  /** Half a line would spoil the next one. */
  #onALineOfItsOwn(text: string): string {
    return this.#torn && text !== '' ? `\n${text}` : text;
  }

  #take(): string[] {
    let characters = 0;
    let lines = 0;
    while (lines < this.#waiting.length && characters < CHUNK_CHARACTERS) characters += this.#waiting[lines++]!.length;
    this.#waitingCharacters -= characters;
    return this.#waiting.splice(0, lines);
  }

  /** What is left of a chunk after so many bytes of it were written. */
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

/** Lines whose text is lost with these bytes; of one that lacks nothing but its end there is none. */
function linesOf(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(NEWLINE, 1); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines++;
  return lines;
}
