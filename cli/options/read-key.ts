import { readFileSync } from 'node:fs';
import { TrawlError } from '../../src/base/errors.ts';

/** The API key in the file of `--key-file`. @throws TrawlError CONFIG_INVALID if it cannot be read. */
export function readKey(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (cause) {
    throw new TrawlError('CONFIG_INVALID', `${path}: the key cannot be read (${(cause as Error).message}).`, { cause });
  }
}
