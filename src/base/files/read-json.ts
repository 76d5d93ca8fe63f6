import { readFileSync } from 'node:fs';

/**
 * Parses a JSON file, with or without a byte order mark.
 *
 * @param what the file, as a subject: `the configuration file`.
 * @throws what `invalid` makes of a reason, if the file cannot be read or is not JSON.
 */
export function readJsonSync(path: string, what: string, invalid: (reason: string, cause: unknown) => Error): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw invalid(`${what} ${code === 'ENOENT' ? 'does not exist' : `cannot be read: ${message}`}`, error);
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw invalid(`not valid JSON: ${(error as Error).message}`, error);
  }
}
