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
    throw invalid(`not valid JSON: ${jsonFault(text, error)}`, error);
  }
}

/** Why a text is not JSON, without a quotation from it: passages and keys do not belong in messages and logs. */
export function jsonFault(text: string, error: unknown): string {
  if (text.includes('\0')) return 'it has NUL characters, as text in UTF-16 has; expected UTF-8';
  const outsideStrings = text.replace(/"(?:[^"\\]|\\.)*"?/gs, '""');
  const [word] = /-?\b(?:NaN|Infinity|None|True|False)\b/.exec(outsideStrings) ?? [];
  if (word === 'True' || word === 'False') return `it has ${word}; JSON has ${word.toLowerCase()}`;
  if (word !== undefined) return `it has ${word}, which JSON lacks; write null`;
  if (/[[{,:]\s*'/.test(outsideStrings))
    return 'it has single quotes, as str() of Python writes; write it with json.dumps()';
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/, (\.\.\.)?".*$/s, '').replace(/ \(line \d+ column \d+\)$/, '');
}
