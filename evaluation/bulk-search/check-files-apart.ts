import { readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type TrawlError, usageError } from '../../src/base/errors.ts';
import { besideOutput } from '../../src/base/system/resumable-output.ts';

export interface NamedFile {
  readonly name: string;
  readonly path: string;
}

/**
 * Checks that no output, and no file that is written beside it, is an input, another output, or a file in an index: it would be
 * replaced. Files are compared by device and inode, so links and other spellings of a path are found.
 *
 * @param indexes folders.
 * @throws TrawlError USAGE, which names both.
 */
export function checkFilesApart(
  outputs: readonly NamedFile[],
  inputs: readonly NamedFile[],
  indexes: readonly string[],
): void {
  const read = new Map<string, string>();
  for (const folder of indexes) {
    for (const path of filesIn(folder)) read.set(identityOf(path), `a file of the index ${folder}`);
  }
  for (const { name, path } of inputs) read.set(identityOf(path), `${name} ${path}, which is read`);
  const written = new Map<string, string>();
  for (const { name, path } of outputs) {
    const identity = identityOf(path);
    const same = read.get(identity) ?? written.get(identity);
    if (same !== undefined) throw samePath(`${name} ${path} is ${same}`);
    written.set(identity, `the same file as ${name} ${path}`);
  }
  for (const { name, path } of outputs) {
    for (const beside of besideOutput(path)) {
      const same = read.get(identityOf(beside)) ?? written.get(identityOf(beside));
      if (same !== undefined)
        throw samePath(`${name} ${path} is written with ${beside} beside it, and that is ${same}`);
    }
  }
}

/** Device and inode of a file; of a file that does not exist, its path in the folder's real path. */
function identityOf(path: string): string {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    // It does not exist, or is a link in a circle.
  }
  const absolute = resolve(path);
  try {
    return join(realpathSync(dirname(absolute)), basename(absolute));
  } catch {
    // Without its folder it can be neither read nor written, which is reported when it is opened.
    return absolute;
  }
}

/** Empty if the folder cannot be read, which is reported when it is opened. */
function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function samePath(fault: string): TrawlError {
  return usageError(`${fault}. Choose another path.`);
}
