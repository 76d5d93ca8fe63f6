import { TrawlError } from '../../src/base/errors.ts';
import { readTextSync } from '../../src/base/files/read-text-lines.ts';
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

/** The text of the file that an option names. @throws TrawlError CONFIG_INVALID for a file that cannot be read or is not UTF-8. */
export function readOptionFile(option: string, file: string): string {
  return readTextSync(
    file,
    (reason, cause) => new TrawlError('CONFIG_INVALID', `${option} ${file} ${reason}.`, { cause }),
  );
}
