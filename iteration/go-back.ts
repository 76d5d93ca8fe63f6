import { TrawlError } from '../src/errors.ts';
import type { IterationsFolder } from './iterations-folder.ts';
import type { PublishedIteration } from './records.ts';
import { serveIteration } from './serve-iteration.ts';
import type { ServedIndex } from './served-index.ts';

/**
 * Serves an earlier iteration again, or any other that is kept. Works while an iteration is built.
 *
 * @param to number of the iteration. Default: the one that was served before the current one.
 * @returns the iterations that were served before and are served now.
 * @throws TrawlError USAGE if there is no such iteration; RELOAD_FAILED if a server does not follow.
 */
export async function goBack(
  folder: IterationsFolder,
  to: number | undefined,
  servers: readonly ServedIndex[],
): Promise<{ readonly from: PublishedIteration | null; readonly to: PublishedIteration }> {
  const lock = await folder.lockPublishing();
  try {
    if (to !== undefined) {
      const target = folder.iteration(to);
      // With a number the command also repairs a link that points elsewhere.
      const from = currentOr(folder, target);
      await serveIteration({ folder, to: target, from, servers });
      return { from: from === target ? null : from, to: target };
    }
    const from = folder.current();
    if (from.base === null) {
      throw new TrawlError(
        'USAGE',
        `Iteration ${from.number} is the first of ${folder.root}: there is nothing to go back to.`,
      );
    }
    const target = folder.iteration(from.base);
    await serveIteration({ folder, to: target, from, servers });
    return { from, to: target };
  } finally {
    lock.release();
  }
}

function currentOr(folder: IterationsFolder, other: PublishedIteration): PublishedIteration {
  try {
    return folder.current();
  } catch {
    return other;
  }
}
