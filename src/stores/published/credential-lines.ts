import { readFileSync } from 'node:fs';
import { TrawlError } from '../../base/errors.ts';
import { environmentVariable } from '../../base/options/resolve-options.ts';

/**
 * The lines with credentials of the file that the variable `<variable>_FILE` names, or else the lines in `variable` itself, separated by
 * commas or white space. Empty lines of the file and those that begin with `#` are skipped.
 *
 * @param parse gets a line and its place for messages; must not show the line.
 * @throws TrawlError CONFIG_INVALID for a file that cannot be read. The message does not have the variable's value: it may be a line with
 * a password, set in the wrong variable.
 */
export function credentialLines<Line>(
  variable: `TRAWL_${string}`,
  parse: (text: string, place: string) => Line,
): Line[] {
  const fileVariable = `${variable}_FILE` as const;
  const file = environmentVariable(fileVariable);
  if (file === undefined || file === '') {
    return (environmentVariable(variable) ?? '')
      .split(/[\s,]+/)
      .filter((text) => text !== '')
      .map((text, i) => parse(text, `${variable}, part ${i + 1},`));
  }
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException;
    throw new TrawlError(
      'CONFIG_INVALID',
      `${fileVariable} is not the path of a file that can be read (${code}). Lines with credentials belong in such a file, or in ${variable}.`,
    );
  }
  return content.split('\n').flatMap((line, i) => {
    const text = line.trim();
    return text === '' || text.startsWith('#') ? [] : [parse(text, `${file}, line ${i + 1},`)];
  });
}

/** Where `credentialLines` reads, for messages: the file or the variable, never a line. Undefined if neither variable is set. */
export function credentialSource(variable: `TRAWL_${string}`): string | undefined {
  const file = environmentVariable(`${variable}_FILE`);
  if (file !== undefined && file !== '') return `the file ${file} (${variable}_FILE)`;
  const lines = environmentVariable(variable);
  return lines === undefined || lines === '' ? undefined : variable;
}
