import { TrawlError } from '../../src/base/errors.ts';
import { DTYPE_BYTES } from '../../src/engine/vectors/vector-segments.ts';
import { type HeaderFacts, invalid, readPart, rowsWithin, unsupported } from './file-run.ts';
import { readNpyHeader } from './npy-header.ts';
import type { VectorFile, VectorFileFormat } from './vector-file-set.ts';

/** A local file header of a zip archive: 30 bytes, then the name and extra fields. */
const HEADER_BYTES = 30;
/** The record at the end of an archive without a comment, which numpy never writes. */
const END_BYTES = 22;
const STORED = 0;
const IN_ZIP64_COUNT = 0xffff;
const ZIP64 = 0x0001;
const IN_ZIP64 = 0xffffffff;

/** The only matrix in an archive of `numpy.savez`, in place. */
export const npz: VectorFileFormat = {
  name: 'npz',
  endings: ['.npz'],
  recognises: (head) => /^PK\x03\x04.{26,60}\.npy/s.test(Buffer.from(head).toString('latin1')),
  open(files, at) {
    const file = files[at]!;
    return rowsWithin(file, onlyMatrix(file), at + 1);
  },
};

function onlyMatrix(file: VectorFile): HeaderFacts {
  const { path } = file;
  const arrays = membersOf(file).filter(({ name }) => name.endsWith('.npy'));
  const names = arrays.map(({ name }) => name.slice(0, -'.npy'.length));
  const remedy = `Save the matrix: np.save('vectors.npy', np.load('${path}')['${names.length === 1 ? names[0] : 'NAME'}'].astype('<f4')).`;
  if (arrays.some(({ method }) => method !== STORED)) throw unsupported(path, 'its arrays are compressed', remedy);
  const matrices = arrays.flatMap(({ name, offset, bytes }) => {
    try {
      const facts = readNpyHeader(file, offset);
      const end = BigInt(facts.offset) + BigInt(facts.rows) * BigInt(facts.dimension * DTYPE_BYTES[facts.dtype]);
      if (end !== BigInt(offset + bytes))
        throw invalid(path, `${name} has ${bytes} bytes, and its header describes ${end - BigInt(offset)}`);
      return [facts];
    } catch (error) {
      if (arrays.length === 1 || !(error instanceof TrawlError) || error.code !== 'VECTORS_UNSUPPORTED') throw error;
      return [];
    }
  });
  if (matrices.length === 1) return matrices[0]!;
  throw unsupported(
    path,
    `it has ${matrices.length} matrices of float32 or float16 in its arrays ${names.join(', ')}; expected one`,
    remedy,
  );
}

interface Member {
  readonly name: string;
  readonly method: number;
  /** Where its bytes begin. */
  readonly offset: number;
  readonly bytes: number;
}

function membersOf(file: VectorFile): Member[] {
  const members: Member[] = [];
  let at = 0;
  for (;;) {
    const header = Buffer.from(readPart(file, HEADER_BYTES, at));
    // The central directory follows the last member.
    if (header.length < HEADER_BYTES || header.readUInt32LE() !== 0x04034b50) break;
    const [nameBytes, extraBytes] = [header.readUInt16LE(26), header.readUInt16LE(28)];
    const rest = Buffer.from(readPart(file, nameBytes + extraBytes, at + HEADER_BYTES));
    const offset = at + HEADER_BYTES + nameBytes + extraBytes;
    const size = header.readUInt32LE(18);
    const bytes = size === IN_ZIP64 ? packedBytes(file, rest.subarray(nameBytes)) : size;
    at = offset + bytes;
    if (at > file.bytes)
      throw invalid(file.path, `it ends within a member of the archive, at byte ${file.bytes} of ${at}`);
    members.push({ name: rest.toString('utf8', 0, nameBytes), method: header.readUInt16LE(8), offset, bytes });
  }
  if (members.length === 0) throw invalid(file.path, 'it is not a zip archive');
  checkEnd(file, members.length, at);
  return members;
}

/** An archive that was cut, or written without the sizes of its members, could hide a second matrix. */
function checkEnd(file: VectorFile, members: number, directory: number): void {
  const end = Buffer.from(readPart(file, END_BYTES, Math.max(0, file.bytes - END_BYTES)));
  const isEnd =
    end.length === END_BYTES &&
    end.readUInt32LE() === 0x06054b50 &&
    [members, IN_ZIP64_COUNT].includes(end.readUInt16LE(10)) &&
    [directory, IN_ZIP64].includes(end.readUInt32LE(16));
  if (!isEnd)
    throw invalid(file.path, 'its zip archive is incomplete, or was not written by numpy.savez. Copy it again');
}

/** The packed size in the extra field of zip64: after the size of the unpacked bytes. */
function packedBytes({ path }: VectorFile, extra: Buffer): number {
  for (let at = 0; at + 20 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) === ZIP64) return Number(extra.readBigUInt64LE(at + 12));
  }
  throw invalid(path, 'the size of a member of the archive is missing');
}
