import { DamagedDataError } from './compression.ts';

const BLOCK = 512;
/** Sizes of pax headers; a real one has some hundred bytes. */
const MOST_PAX_BYTES = 1024 * 1024;

/**
 * The one regular file in a tar archive; text that is no archive as it is. `wiki-18.jsonl.gz`, as Search-R1 and FlashRAG
 * published it, is a gzipped archive with one file of 14 GB, and unpacked by gzip alone it is an archive named .jsonl.
 * The format is that of POSIX (ustar, pax) with GNU tar's sizes from 8 GiB on: the "tar" page of GNU tar's manual,
 * "Basic Tar Format". Every byte of `source` is read, what follows the file too.
 *
 * @throws DamagedDataError where the archive is cut off or damaged, or holds another number of files than one.
 */
export async function* onlyMember(
  source: AsyncIterable<Buffer>,
  onArchive?: (() => void) | undefined,
): AsyncGenerator<Buffer, void> {
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
      // Two blocks of zeros end an archive; GNU tar accepts one, and some writers make none.
      if (header.length === 0 || header.every((byte) => byte === 0)) break;
      if (header.length < BLOCK) throw cutOff();
      if (!isHeader(header)) throw new DamagedDataError('a header of the tar archive is damaged. Get the file again');
      const type = String.fromCharCode(header[156]!);
      const size = (isFile(type) ? paxSize : undefined) ?? sizeIn(header);
      if (type === 'x') {
        paxSize = sizeOfPax(await exactly(input, size));
        await skip(input, padding(size));
        continue;
      }
      if (!isFile(type)) {
        // Folders, links and long names; a sparse file (S) would be taken for its map.
        if (type === 'S') throw new DamagedDataError('the tar archive holds a sparse file, which is not read');
        await skip(input, size + padding(size));
        continue;
      }
      paxSize = undefined;
      files++;
      if (files > 1)
        throw new DamagedDataError('the file is a tar archive of more than one file; unpack it and name its files');
      for (let left = size; left > 0; ) {
        const chunk = await input.next(left);
        if (chunk === null) throw cutOff();
        left -= chunk.length;
        yield chunk;
      }
      await skip(input, padding(size));
    }
    if (files === 0) throw new DamagedDataError('the file is a tar archive with no file in it');
    // Padding up to the writer's record, which the checksum of the file covers too.
    for (let rest = await input.next(); rest !== null; rest = await input.next());
  } finally {
    await input.close();
  }
}

function cutOff(): DamagedDataError {
  return new DamagedDataError('the tar archive in it ends in the middle: it is cut off. Get the file again');
}

/** By the magic and by the checksum, which text that only looks like a header does not have. */
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

/** Octal digits, or from 8 GiB on a big-endian number behind the byte 0x80. */
function sizeIn(header: Buffer): number {
  const field = header.subarray(124, 136);
  const size =
    field[0] === 0x80 ? Number(field.readBigUInt64BE(4)) + (field.readUInt32BE(0) & 0xffffff) * 2 ** 64 : octal(field);
  return checkedSize(size);
}

function checkedSize(size: number | undefined): number {
  if (size !== undefined && Number.isSafeInteger(size)) return size;
  throw new DamagedDataError('a header of the tar archive states a size that is none. Get the file again');
}

function octal(field: Buffer): number | undefined {
  const digits = /^[ \0]*([0-7]*)[ \0]*$/.exec(field.toString('latin1'))?.[1];
  return digits === undefined ? undefined : Number.parseInt(digits || '0', 8);
}

/** The size that a pax header sets for the file behind it: records of the form "17 size=123456789\n". */
function sizeOfPax(records: Buffer): number | undefined {
  const stated = /(?:^|\n)\d+ size=(\d+)\n/.exec(records.toString('latin1'))?.[1];
  return stated === undefined ? undefined : checkedSize(Number(stated));
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

async function exactly(input: BlockReader, bytes: number): Promise<Buffer> {
  if (bytes > MOST_PAX_BYTES) {
    throw new DamagedDataError(`a header of the tar archive has ${bytes} bytes. Get the file again`);
  }
  const taken = await input.take(bytes);
  if (taken.length < bytes) throw cutOff();
  return taken;
}

async function skip(input: BlockReader, bytes: number): Promise<void> {
  for (let left = bytes; left > 0; ) {
    const chunk = await input.next(left);
    if (chunk === null) throw cutOff();
    left -= chunk.length;
  }
}

/** Chunks cut as they are asked for; what is not cut is not copied. */
class BlockReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(source: AsyncIterable<Buffer>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** The next bytes, at least one and at most `most`; null at the end. */
  async next(most = Number.POSITIVE_INFINITY): Promise<Buffer | null> {
    while (this.#held.length === 0) if (!(await this.#more())) return null;
    const taken = this.#held.subarray(0, most);
    this.#held = this.#held.subarray(taken.length);
    return taken;
  }

  /** As many bytes, fewer at the end. */
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
