import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Makes `folder` by `make`, or copies it from the first test file of this `npm test` that made the one of this name. Without
 * `npm test` (scripts/test.mjs sets the variable), it is always made.
 */
export async function sharedFolder(
  name: string,
  folder: string,
  make: (folder: string) => Promise<void>,
): Promise<void> {
  const place = process.env.TRAWL_TEST_SHARED;
  if (place === undefined) return make(folder);
  const kept = join(place, name);
  if (!existsSync(kept)) {
    const work = join(place, `${name}.${process.pid}`);
    mkdirSync(work, { recursive: true });
    await make(join(work, name));
    try {
      renameSync(join(work, name), kept);
    } catch (error) {
      // Another test file was faster.
      if (!existsSync(kept)) throw error;
    }
    rmSync(work, { recursive: true, force: true });
  }
  cpSync(kept, folder, { recursive: true });
}
