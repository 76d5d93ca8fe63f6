import { stat } from 'node:fs/promises';
import { parseJson } from '../corpus/parse-json.ts';
import { TrawlError } from '../src/base/errors.ts';
import { fileBytes, unreadable } from '../src/base/files/file-bytes.ts';

/** Strings of Node.js have at most 2^29 − 24 characters. Larger arrays must be JSON lines. */
const MAX_ARRAY_BYTES = 500 * 1024 * 1024;

/** Throws CORPUS_NOT_FOUND if there is nothing at the path. */
export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** The first character of a file that is not white space; empty if its first bytes have none. Throws CORPUS_NOT_FOUND. */
export async function firstCharacter(path: string): Promise<string> {
  for await (const chunk of fileBytes(path))
    return chunk
      .toString('utf8')
      .replace(/^\uFEFF/, '')
      .trimStart()
      .charAt(0);
  return '';
}

/** Parses a file as one JSON value. Throws CORPUS_BAD_LINE, CORPUS_NOT_FOUND, and CORPUS_FORMAT_UNKNOWN if it is too large. */
export async function parsedFile(path: string): Promise<unknown> {
  const json = parseJson(await fileText(path));
  if (json.ok) return json.value;
  throw new TrawlError('CORPUS_BAD_LINE', `${path} is not valid JSON: ${json.reason}`, { details: { path } });
}

/** The text of a UTF-8 file, which may be compressed (`fileBytes`). Throws as `parsedFile` does. */
export async function fileText(path: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of fileBytes(path)) {
    bytes += chunk.length;
    if (bytes > MAX_ARRAY_BYTES)
      throw new TrawlError(
        'CORPUS_FORMAT_UNKNOWN',
        `${path} has more than ${MAX_ARRAY_BYTES} bytes, the most of an array that can be read at once. ` +
          `Write it as JSON lines: jq -c '.[]' ${path}`,
      );
    chunks.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks, bytes));
  } catch (error) {
    throw new TrawlError('CORPUS_BAD_LINE', `${path} is not valid UTF-8. Convert it, such as with iconv.`, {
      details: { path },
      cause: error,
    });
  }
}
