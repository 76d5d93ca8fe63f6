import { write, writeSync } from 'node:fs';
import { isNodeError } from '../src/errors.ts';

/** Bytes that wait to be written, beyond which lines are dropped: a pipe that nobody empties does not fill the memory. */
const MOST_WAITING = 4 * 1024 * 1024;
const RETRY_MS = 20;
/** Of a last try to write what is left, when the process ends. */
const FLUSH_TRIES = 10;

/**
 * Writes lines to a file descriptor without holding up the event loop. What cannot be written is lost, and nothing else
 * happens: a log that fails is no reason for a server to.
 *
 * Not pino's own destination: its flushSync repeats a write that fails for want of space for ever (sonic-boom 4), and
 * what it could not write it keeps without bound.
 */
export class LineWriter {
  readonly #fd: number;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #dropped = 0;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Lines that found no room. */
  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > MOST_WAITING) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (!this.#isWriting) this.#writeNext();
  }

  /** Waits until what is left is written, for a fifth of a second at most. */
  flush(): void {
    let rest = this.#take();
    for (let tries = 0; rest.length > 0 && tries < FLUSH_TRIES; ) {
      try {
        rest = rest.subarray(writeSync(this.#fd, rest));
      } catch (error) {
        if (!isBusy(error)) return;
        tries++;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      }
    }
  }

  #take(): Buffer {
    const all = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
    return all;
  }

  #writeNext(rest: Buffer = this.#take()): void {
    if (rest.length === 0) {
      this.#isWriting = false;
      return;
    }
    this.#isWriting = true;
    write(this.#fd, rest, (error, written) => {
      if (error === null) this.#writeNext(written < rest.length ? rest.subarray(written) : undefined);
      else if (isBusy(error)) setTimeout(() => this.#writeNext(rest), RETRY_MS).unref();
      // Lines that come later are tried again: there may be space by then.
      else this.#isWriting = false;
    });
  }
}

/** A pipe that is full for the moment. */
function isBusy(error: unknown): boolean {
  return isNodeError(error) && (error.code === 'EAGAIN' || error.code === 'EBUSY');
}
