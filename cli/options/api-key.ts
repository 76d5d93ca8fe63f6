import { readFileSync } from 'node:fs';
import { TrawlError } from '../../src/base/errors.ts';
import { environmentVariable } from '../../src/base/options/environment.ts';

/**
 * The API key of a server: the content of a file, else of the environment variable, if one is named. Undefined if there is none.
 *
 * @throws TrawlError CONFIG_INVALID for a file that cannot be read or is empty.
 */
export function readApiKey(
  file: string | undefined,
  { option = '--key-file', variable }: { readonly option?: string; readonly variable?: `TRAWL_${string}` } = {},
): string | undefined {
  if (file === undefined) return (variable && environmentVariable(variable)) || undefined;
  const text = readOptionFile(option, file).trim();
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new TrawlError('CONFIG_INVALID', `${option} ${file} has no key: expected one line without spaces.`);
}

/** The text of the file that an option names. @throws TrawlError CONFIG_INVALID for a file that cannot be read. */
export function readOptionFile(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new TrawlError('CONFIG_INVALID', `${option} ${file} cannot be read: ${(cause as Error).message}.`, { cause });
  }
}
