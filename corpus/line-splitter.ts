const LF = 0x0a;
const CR = 0x0d;
const NOTHING = Buffer.alloc(0);

/**
 * `lf`: only `\n` ends a line (JSON text may contain U+2028, U+0085 and the like).
 * `universal`: `\n`, `\r\n` and `\r` end a line, as in Python's text mode.
 */
export type Newline = 'lf' | 'universal';

/** A line without its line end. `bytes` is null if the line exceeds the limit. */
export interface RawLine {
  /** Line number, from 1. */
  readonly number: number;
  readonly bytes: Buffer | null;
  readonly sizeBytes: number;
}

interface LineSplitterOptions {
  newline: Newline;
  /** The content of a longer line is not kept in memory. */
  maxLineBytes: number;
  /** Number of the first line of the input. Default: 1. */
  firstNumber?: number;
}

/**
 * Splits a stream of chunks into lines. Holds at most one line and one chunk. The bytes of a line may be a view of its
 * chunk: decode them before the chunk is reused.
 */
export class LineSplitter {
  readonly #newline: Newline;
  readonly #maxLineBytes: number;
  #number: number;
  #pieces: Buffer[] = [];
  #pendingBytes = 0;
  #lastWasCr = false;

  constructor({ newline, maxLineBytes, firstNumber = 1 }: LineSplitterOptions) {
    this.#newline = newline;
    this.#maxLineBytes = maxLineBytes;
    this.#number = firstNumber - 1;
  }

  get nextNumber(): number {
    return this.#number + 1;
  }

  /** Returns the lines that end in this chunk. */
  push(chunk: Buffer): RawLine[] {
    const lines: RawLine[] = [];
    let start = 0;
    if (this.#lastWasCr && chunk.length > 0) {
      // The previous chunk ended between `\r` and `\n`.
      if (chunk[0] === LF) start = 1;
      this.#lastWasCr = false;
    }
    let nextLf = chunk.indexOf(LF, start);
    let nextCr = this.#newline === 'universal' ? chunk.indexOf(CR, start) : -1;
    while (nextLf !== -1 || nextCr !== -1) {
      const atCr = nextCr !== -1 && (nextLf === -1 || nextCr < nextLf);
      const end = atCr ? nextCr : nextLf;
      lines.push(this.#take(chunk.subarray(start, end)));
      start = end + 1;
      if (atCr && start === chunk.length) this.#lastWasCr = true;
      else if (atCr && chunk[start] === LF) start += 1;
      if (nextLf !== -1 && nextLf < start) nextLf = chunk.indexOf(LF, start);
      if (nextCr !== -1 && nextCr < start) nextCr = chunk.indexOf(CR, start);
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return lines;
  }

  /** Returns the last line if the input does not end with a line end. */
  end(): RawLine[] {
    return this.#pendingBytes > 0 ? [this.#take(NOTHING)] : [];
  }

  #keep(piece: Buffer): void {
    this.#pendingBytes += piece.length;
    if (this.#pendingBytes > this.#maxLineBytes) this.#pieces = [];
    else this.#pieces.push(piece);
  }

  #take(tail: Buffer): RawLine {
    const sizeBytes = this.#pendingBytes + tail.length;
    let bytes: Buffer | null = null;
    if (sizeBytes <= this.#maxLineBytes) {
      bytes = this.#pieces.length === 0 ? tail : Buffer.concat([...this.#pieces, tail], sizeBytes);
    }
    this.#pieces = [];
    this.#pendingBytes = 0;
    this.#number += 1;
    return { number: this.#number, bytes, sizeBytes };
  }
}
