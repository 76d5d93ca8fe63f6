const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;

/** The text is not an array of objects. The message is shown after the place of the item. */
export class ArrayError extends Error {
  override readonly name = 'ArrayError';
}

type Expected = 'start' | 'first' | 'item' | 'separator' | 'nothing';

/**
 * Splits the bytes of a JSON array of objects into the texts of its objects, which the caller parses. Holds one object and one chunk.
 * It checks what stands between objects; what is within them, `JSON.parse` checks.
 */
export class JsonArraySplitter {
  readonly #maxBytes: number;
  #expected: Expected = 'start';
  #depth = 0;
  #inString = false;
  #escaped = false;
  #pieces: Buffer[] = [];
  #pendingBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the objects that end in this chunk. @throws ArrayError. */
  push(chunk: Buffer): Buffer[] {
    const items: Buffer[] = [];
    let itemStart = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (this.#depth > 0) {
        if (!this.#endsItem(byte)) continue;
        items.push(this.#take(chunk.subarray(itemStart, at + 1)));
        this.#expected = 'separator';
      } else if (!isSpace(byte)) {
        this.#between(byte);
        if (this.#depth > 0) itemStart = at;
      }
    }
    if (this.#depth > 0) this.#keep(chunk.subarray(itemStart));
    return items;
  }

  /** Returns no further objects. @throws ArrayError if the array is not complete. */
  end(): Buffer[] {
    if (this.#expected === 'nothing') return [];
    throw new ArrayError('the file ends before the end of its JSON array; it is truncated, so write or copy it again');
  }

  #endsItem(byte: number): boolean {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) this.#inString = false;
      return false;
    }
    if (byte === QUOTE) this.#inString = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#depth -= 1;
    return this.#depth === 0;
  }

  /** A byte outside of the objects that is not white space. */
  #between(byte: number): void {
    const expected = this.#expected;
    if (expected === 'start' && byte === OPEN_BRACKET) this.#expected = 'first';
    else if ((expected === 'first' || expected === 'separator') && byte === CLOSE_BRACKET) this.#expected = 'nothing';
    else if (expected === 'separator' && byte === COMMA) this.#expected = 'item';
    else if ((expected === 'first' || expected === 'item') && byte === OPEN_BRACE) this.#depth = 1;
    else throw new ArrayError(`found ${printed(byte)} where ${WANTED[expected]} should be`);
  }

  #keep(piece: Buffer): void {
    this.#pendingBytes += piece.length;
    if (this.#pendingBytes > this.#maxBytes) {
      throw new ArrayError(`the object has more than ${this.#maxBytes} bytes`);
    }
    // A copy: the chunk may be reused.
    this.#pieces.push(Buffer.from(piece));
  }

  #take(tail: Buffer): Buffer {
    if (this.#pieces.length === 0) return tail;
    const item = Buffer.concat([...this.#pieces, tail]);
    this.#pieces = [];
    this.#pendingBytes = 0;
    return item;
  }
}

const WANTED: Readonly<Record<Expected, string>> = {
  start: 'the "[" of an array',
  first: 'an object, or the "]" of the array,',
  item: 'an object',
  separator: '"," or the "]" of the array',
  nothing: 'the end of the file',
};

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function printed(byte: number): string {
  return byte > 0x20 && byte < 0x7f ? JSON.stringify(String.fromCharCode(byte)) : `the byte ${byte}`;
}
