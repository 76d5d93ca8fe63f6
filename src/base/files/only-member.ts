import { DamagedDataError } from './compression.ts';

const BLOCK = 512;
/** Largest pax header that is read. Archives have pax headers of a few hundred bytes. */
const MAX_PAX_BYTES = 1024 * 1024;

/**
 * Extracts the only regular file of a tar archive; passes any other data through. `wiki-18.jsonl.gz`, as published by
 * Search-R1 and FlashRAG, is not a gzipped JSONL file but a gzipped tar archive of one 14 GB file. Reads POSIX archives (ustar,
 * pax) and GNU tar's encoding of sizes of 8 GiB and more ("Basic Tar Format" in the manual of GNU tar). Reads `source` to its
 * end, so that checksums cover the whole file.
 *
 * @throws DamagedDataError if the archive is damaged or truncated, or does not have exactly one file.
 */
export async function* onlyMember(source: AsyncIterable<Buffer>, onArchive?: () => void): AsyncGenerator<Buffer, void> {
  const input = new BlockReader(source);
  try {
    const start = await input.peek(BLOCK);
    if (!isHeader(start)) {
      for (let chunk = await input.next(); chunk !== null; chunk = await input.next()) yield chunk;
      return;
    }
    onArchive?.();
    let files = 0;
    let paxSize: number | undefined;
    for (;;) {
      const header = await input.take(BLOCK);
      // Two zero blocks end an archive; GNU tar accepts one, and some writers omit both.
      if (header.length === 0 || header.every((byte) => byte === 0)) break;
      if (header.length < BLOCK) throw truncated();
      if (!isHeader(header))
        throw new DamagedDataError('a header of the tar archive is damaged. Download the file again');
      const type = String.fromCharCode(header[156]!);
      const size = (isFile(type) ? paxSize : undefined) ?? sizeIn(header);
      if (isFile(type)) {
        paxSize = undefined;
        files++;
        if (files > 1)
          throw new DamagedDataError('the file is a tar archive with several files; unpack it and pass its files');
        yield* input.exactly(size);
      } else if (type === 'x') paxSize = sizeOfPax(await paxRecords(input, size));
      // A sparse file begins with a map, which is not supported. Folders, links and long names are skipped.
      else if (type === 'S') throw new DamagedDataError('the tar archive has a sparse file, which is not supported');
      else await input.skip(size);
      await input.skip((BLOCK - (size % BLOCK)) % BLOCK);
    }
    if (files === 0) throw new DamagedDataError('the file is an empty tar archive');
    // Read the padding at the end, too: the checksum covers it.
    for (let rest = await input.next(); rest !== null; rest = await input.next());
  } finally {
    await input.close();
  }
}

function truncated(): DamagedDataError {
  return new DamagedDataError('the tar archive is truncated. Download the file again');
}

/** Checks the magic and the checksum, so that text resembling a header is not taken for one. */
function isHeader(block: Buffer): boolean {
  if (block.length < BLOCK || block.toString('latin1', 257, 262) !== 'ustar') return false;
  const stated = octal(block.subarray(148, 156));
  let sum = 8 * 0x20;
  for (let at = 0; at < BLOCK; at++) if (at < 148 || at >= 156) sum += block[at]!;
  return stated === sum;
}

function isFile(type: string): boolean {
  return type === '0' || type === '\0' || type === '7';
}

/** Octal digits; from 8 GiB, the byte 0x80 and a big-endian number. */
function sizeIn(header: Buffer): number {
  const field = header.subarray(124, 136);
  const size =
    field[0] === 0x80 ? Number(field.readBigUInt64BE(4)) + (field.readUInt32BE(0) & 0xffffff) * 2 ** 64 : octal(field);
  return checkedSize(size);
}

function checkedSize(size: number | undefined): number {
  if (size !== undefined && Number.isSafeInteger(size)) return size;
  throw new DamagedDataError('a header of the tar archive has an invalid size. Download the file again');
}

function octal(field: Buffer): number | undefined {
  const digits = /^[ \0]*([0-7]*)[ \0]*$/.exec(field.toString('latin1'))?.[1];
  return digits === undefined ? undefined : Number.parseInt(digits || '0', 8);
}

/** The size that a pax header gives for the next file, in a record such as "17 size=123456789\n". */
function sizeOfPax(records: Buffer): number | undefined {
  const stated = /(?:^|\n)\d+ size=(\d+)\n/.exec(records.toString('latin1'))?.[1];
  return stated === undefined ? undefined : checkedSize(Number(stated));
}

async function paxRecords(input: BlockReader, bytes: number): Promise<Buffer> {
  if (bytes > MAX_PAX_BYTES) {
    throw new DamagedDataError(
      `a pax header of the tar archive has ${bytes} bytes, more than ${MAX_PAX_BYTES}. Download the file again`,
    );
  }
  const records = await input.take(bytes);
  if (records.length < bytes) throw truncated();
  return records;
}

/** Reads a stream of chunks in pieces of any size, copying only pieces that span chunks. */
class BlockReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(source: AsyncIterable<Buffer>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** The next 1 to `most` bytes; null at the end. */
  async next(most = Number.POSITIVE_INFINITY): Promise<Buffer | null> {
    while (this.#held.length === 0) if (!(await this.#more())) return null;
    const taken = this.#held.subarray(0, most);
    this.#held = this.#held.subarray(taken.length);
    return taken;
  }

  /** The next `bytes` bytes in pieces. @throws DamagedDataError if there are fewer. */
  async *exactly(bytes: number): AsyncGenerator<Buffer, void> {
    for (let left = bytes; left > 0; ) {
      const chunk = await this.next(left);
      if (chunk === null) throw truncated();
      left -= chunk.length;
      yield chunk;
    }
  }

  async skip(bytes: number): Promise<void> {
    const pieces = this.exactly(bytes);
    while (!(await pieces.next()).done);
  }

  /** The next `bytes` bytes; fewer at the end. */
  async take(bytes: number): Promise<Buffer> {
    const taken = Buffer.from(await this.peek(bytes));
    this.#held = this.#held.subarray(taken.length);
    return taken;
  }

  async peek(bytes: number): Promise<Buffer> {
    while (this.#held.length < bytes && (await this.#more()));
    return this.#held.subarray(0, bytes);
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  async #more(): Promise<boolean> {
    if (this.#ended) return false;
    const { value, done } = await this.#chunks.next();
    this.#ended = done === true;
    if (this.#ended) return false;
    this.#held = this.#held.length === 0 ? value : Buffer.concat([this.#held, value]);
    return true;
  }
}
