import { TrawlError } from '../src/errors.ts';
import type { IterationsFolder } from './iterations-folder.ts';
import type { PublishedIteration } from './records.ts';
import type { ServedIndex } from './served-index.ts';

export interface ServeOptions {
  readonly folder: IterationsFolder;
  readonly to: PublishedIteration;
  /** What is served now; it is served again if a server fails. */
  readonly from: PublishedIteration;
  readonly servers: readonly ServedIndex[];
  readonly signal?: AbortSignal | undefined;
}

/**
 * Points `current` to an iteration and has every server answer with it. If one does not, `current` points to `from` again, and the
 * servers that had changed go back. A stopped call leaves all as a killed one does: the same command completes it. The caller holds the
 * lock of publishing.
 *
 * @throws TrawlError of the server that failed; CANCELLED.
 */
export async function serveIteration({ folder, to, from, servers, signal }: ServeOptions): Promise<void> {
  await folder.pointTo(to);
  const changed: ServedIndex[] = [];
  try {
    for (const server of servers) {
      changed.push(server);
      await server.swapTo(to.generation, signal);
    }
  } catch (error) {
    if (to.number === from.number || (error instanceof TrawlError && error.code === 'CANCELLED')) throw error;
    await folder.pointTo(from);
    // The failed one too: it may have changed all the same. The first error says what is wrong.
    for (const server of changed) await server.swapTo(from.generation).catch(() => undefined);
    throw error;
  }
}
