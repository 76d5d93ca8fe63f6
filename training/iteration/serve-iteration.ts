import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import type { IterationsFolder } from './iterations-folder.ts';
import { type PublishedIteration, writeHistory } from './records.ts';
import type { ServedIndex } from './served-index.ts';

interface ServeOptions {
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

/**
 * Serves an earlier iteration again, or any other that is kept. Works while an iteration is built. A server that does not answer is left
 * out, so that a bad index can be left all the same; if one refuses the reload, everything stays as it was.
 *
 * @param to number of the iteration. Default: the one that was served before the current one.
 * @returns the iterations that were served before and are served now.
 * @throws TrawlError USAGE if there is no such iteration; RELOAD_FAILED if a server refuses, or did not answer; CANCELLED.
 */
export async function goBack(
  folder: IterationsFolder,
  to: number | undefined,
  servers: readonly ServedIndex[],
  signal?: AbortSignal,
): Promise<{ readonly from: PublishedIteration | null; readonly to: PublishedIteration }> {
  const lock = await folder.lockPublishing();
  try {
    const target = folder.iteration(to ?? previousOf(folder));
    // With a number the command also repairs a link that points elsewhere.
    const from = to === undefined ? folder.current() : currentOr(folder, target);
    await swap({ folder, to: target, from, servers, signal });
    return { from: from.number === target.number ? null : from, to: target };
  } finally {
    lock.release();
  }
}

function previousOf(folder: IterationsFolder): number {
  const { number, base } = folder.current();
  if (base !== null) return base;
  throw usageError(`Iteration ${number} is the first of ${folder.root}: there is nothing to go back to.`);
}

async function swap(options: ServeOptions): Promise<void> {
  const { folder, to, from, servers, signal } = options;
  const answering: ServedIndex[] = [];
  const silent: string[] = [];
  for (const server of servers) {
    try {
      await server.facts(signal);
      answering.push(server);
    } catch (error) {
      throwIfCancelled(signal);
      silent.push((error as Error).message);
    }
  }
  // First the record: a killed run is repeated when the link may lead to `to` already.
  if (from.number !== to.number) await writeHistory(folder.root, { ...folder.history, left: from.number });
  const repeat = `trawl iterate --back --to ${to.number} --root ${folder.root}`;
  try {
    await serveIteration({ ...options, servers: answering });
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code !== 'RELOAD_FAILED' || from.number === to.number) throw error;
    throw new TrawlError(
      error.code,
      `${error.message} Iteration ${from.number} is served as before. To leave it all the same, change only the link, then restart the ` +
        `servers: ${repeat}, without --server.`,
      { details: error.details, cause: error },
    );
  }
  if (silent.length === 0) return;
  throw new TrawlError(
    'RELOAD_FAILED',
    `Iteration ${to.number} is served now, but not by all servers: ${silent.join(' ')} Restart them with ${folder.link}, or repeat the ` +
      `command when they answer: ${repeat} --server URL.`,
    { details: { number: to.number, answering: answering.map(({ url }) => url) } },
  );
}

function currentOr(folder: IterationsFolder, other: PublishedIteration): PublishedIteration {
  try {
    return folder.current();
  } catch {
    return other;
  }
}
