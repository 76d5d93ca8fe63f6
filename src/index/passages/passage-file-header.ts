import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { TrawlError } from '../../base/errors.ts';
import { PASSAGE_APPLICATION_ID, PASSAGE_SCHEMA_VERSION } from './schema.ts';

/** Fields of SQLite's own 100-byte file header (sqlite.org/fileformat2.html, "The Database Header"). */
const HEADER_BYTES = 100;
const MAGIC = 'SQLite format 3\0';
const OFFSET = { pageSize: 16, pageCount: 28, userVersion: 60, applicationId: 68 } as const;

/**
 * Checks the header and size of a passage file.
 *
 * @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_TRUNCATED, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED.
 */
export function checkPassageFile(path: string): void {
  const header = new Uint8Array(HEADER_BYTES);
  let fileBytes: number;
  let headerBytes: number;
  try {
    // Checked first, because opening a pipe would block.
    if (!statSync(path).isFile()) throw new Error('it is not a regular file');
    const file = openSync(path, 'r');
    try {
      fileBytes = fstatSync(file).size;
      headerBytes = readSync(file, header, 0, HEADER_BYTES, 0);
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    throw new TrawlError(
      'INDEX_FILE_MISSING',
      `${path}: cannot be read (${(cause as Error).message}). Restore the file or build the index again.`,
      {
        cause,
      },
    );
  }
  if (headerBytes < HEADER_BYTES) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${path}: has only ${fileBytes} bytes, too few for a SQLite file. Copy or build it again.`,
    );
  }
  const view = new DataView(header.buffer);
  if (new TextDecoder('latin1').decode(header.subarray(0, MAGIC.length)) !== MAGIC) {
    throw new TrawlError('INDEX_FILE_FOREIGN', `${path}: is not a SQLite file. Copy or build it again.`);
  }
  if (view.getUint32(OFFSET.applicationId) !== PASSAGE_APPLICATION_ID) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: is a SQLite file, but not a passage file. Copy or build it again.`,
    );
  }
  const version = view.getUint32(OFFSET.userVersion);
  if (version !== PASSAGE_SCHEMA_VERSION) {
    throw new TrawlError(
      'INDEX_VERSION_UNSUPPORTED',
      `${path}: has passage table version ${version}; this program reads version ${PASSAGE_SCHEMA_VERSION}. Build the index again.`,
    );
  }
  const pageSize = view.getUint16(OFFSET.pageSize) === 1 ? 65_536 : view.getUint16(OFFSET.pageSize);
  const expected = view.getUint32(OFFSET.pageCount) * pageSize;
  if (fileBytes !== expected) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${path}: has ${fileBytes} bytes, but its header says ${expected}. Copy or build it again.`,
    );
  }
}
