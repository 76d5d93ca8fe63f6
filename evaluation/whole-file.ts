import { open, readFile, stat } from 'node:fs/promises';
import { parseJson } from '../corpus/parse-json.ts';
import { TrawlError } from '../src/errors.ts';

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

/** The first character of a file that is not white space; empty without one. Throws CORPUS_NOT_FOUND. */
export async function firstCharacter(path: string): Promise<string> {
  const file = await open(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64 * 1024), 0, 64 * 1024, 0);
    return buffer
      .toString('utf8', 0, bytesRead)
      .replace(/^\uFEFF/, '')
      .trimStart()
      .charAt(0);
  } finally {
    await file.close();
  }
}

/** Parses a file as one JSON value. Throws CORPUS_BAD_LINE, CORPUS_NOT_FOUND, and CORPUS_FORMAT_UNKNOWN if it is too large. */
export async function parsedFile(path: string): Promise<unknown> {
  const json = parseJson(await fileText(path));
  if (json.ok) return json.value;
  throw new TrawlError('CORPUS_BAD_LINE', `${path} is not valid JSON: ${json.reason}`, { details: { path } });
}

/** The text of a UTF-8 file. Throws as `parsedFile` does. */
export async function fileText(path: string): Promise<string> {
  const { size } = await stat(path);
  if (size > MAX_ARRAY_BYTES)
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `${path} has ${size} bytes, and an array of at most ${MAX_ARRAY_BYTES} can be read at once. Write it as JSON lines: jq -c '.[]' ${path}`,
    );
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path));
  } catch (error) {
    if (error instanceof TypeError)
      throw new TrawlError('CORPUS_BAD_LINE', `${path} is not valid UTF-8. Convert it, such as with iconv.`, {
        details: { path },
        cause: error,
      });
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): TrawlError {
  const reason = error instanceof Error ? error.message : String(error);
  return new TrawlError('CORPUS_NOT_FOUND', `Cannot read ${path}: ${reason}. Check the path and its permissions.`, {
    details: { path },
    cause: error,
  });
}
