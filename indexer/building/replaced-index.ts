import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';

/** Contains the name of the replaced index's folder. The file is in the new index, before and after its rename. */
const REPLACED_FILE = 'replaced.json';

/**
 * Renames the index at `final`, so that the folder `next` can take its name. First records the new, random name in `next`:
 * only a folder named in a record is ever restored or removed.
 */
export async function moveAside(final: string, next: string): Promise<void> {
  const name = `${basename(final)}.replaced-${randomBytes(8).toString('hex')}`;
  await writeJsonDurably(join(next, REPLACED_FILE), { format: 'trawl-replaced', version: 1, name });
  await rename(final, join(dirname(final), name));
}

/** Undoes `moveAside`, if the process failed or was killed before `next` was renamed to `final`. */
export async function restoreReplaced(final: string, next: string): Promise<void> {
  const aside = replacedIndex(final, next);
  if (aside !== undefined && !existsSync(final)) await rename(aside, final);
}

/** Removes the index that the one at `final` replaced, and its record. If the old index was a link, removes only the link. */
export async function removeReplaced(final: string): Promise<void> {
  const aside = replacedIndex(final, final);
  if (aside !== undefined) await rm(aside, { recursive: true, force: true });
  await rm(join(final, REPLACED_FILE), { force: true });
}

/** The folder named in the record of `holder`, if it exists. */
export function replacedIndex(final: string, holder: string): string | undefined {
  let record: { readonly name?: unknown };
  try {
    record = JSON.parse(readFileSync(join(holder, REPLACED_FILE), 'utf8')) as { name?: unknown };
  } catch {
    return undefined;
  }
  const name = String(record?.name);
  const [prefix, suffix] = [`${basename(final)}.replaced-`, name.slice(-16)];
  if (name !== prefix + suffix || !/^[0-9a-f]{16}$/.test(suffix)) return undefined;
  const path = join(dirname(final), name);
  return lstatSync(path, { throwIfNoEntry: false }) === undefined ? undefined : path;
}
