import { TrawlError } from '../../src/base/errors.ts';
import type { IterationsFolder } from './iterations-folder.ts';
import type { PublishedIteration } from './records.ts';
import type { ServedIndex } from './served-index.ts';

export interface ServeOptions {
  readonly folder: IterationsFolder;
  readonly to: PublishedIteration;
  /** What is served now; it is served again if a server fails. */
  readonly from: PublishedIteration;
  readonly servers: readonly ServedIndex[];
  readonly signal?: AbortSignal;
}

/**
 * Points `current` to an iteration and has every server answer with it. If one does not, `current` points to `from` again, and every
 * server that was asked is reloaded again: a reload whose reply was lost may go on, and would lead it away from the link. A stopped call
 * leaves all as a killed one does: the same command completes it. The caller holds the lock of publishing.
 *
 * @throws TrawlError of the server that failed, with those that could not be taken back; CANCELLED.
 */
export async function serveIteration({ folder, to, from, servers, signal }: ServeOptions): Promise<void> {
  await folder.pointTo(to);
  const asked: ServedIndex[] = [];
  try {
    for (const server of servers) {
      asked.push(server);
      await server.swapTo(to.generation, signal);
    }
  } catch (error) {
    if (to.number === from.number || (error instanceof TrawlError && error.code === 'CANCELLED')) throw error;
    await folder.pointTo(from);
    const left: string[] = [];
    for (const server of asked) {
      await server.takeBackTo(from.generation, signal).catch((reason: Error) => left.push(reason.message));
    }
    if (left.length === 0 || !(error instanceof TrawlError)) throw error;
    throw new TrawlError(
      error.code,
      `${error.message} ${folder.link} points to iteration ${from.number} again, but what a server answers with is not known: ` +
        `${left.join(' ')} Reload or restart it.`,
      { details: { ...error.details, notTakenBack: left }, cause: error },
    );
  }
}
