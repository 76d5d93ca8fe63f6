import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { noCheckpoint } from './checkpoint.ts';
import { type IterationInputs, inputsDiffer, recordedInputs } from './iteration-inputs.ts';
import type { IterationsFolder } from './iterations-folder.ts';
import { removeUnknownFolders } from './prune.ts';
import {
  type Journal,
  journalFile,
  type PublishedIteration,
  readJournal,
  writeHistory,
  writeJournal,
} from './records.ts';

/**
 * Begins an iteration, or resumes the unfinished one if its inputs are the same. Undefined if none is unfinished and the iteration that
 * is served was made from the same inputs: there is nothing to do.
 *
 * @param restart discards an unfinished iteration first; then also an iteration that is kept and not served is made anew.
 * @throws TrawlError BUILD_DIFFERS if an iteration with other inputs is unfinished; USAGE if one with these inputs is kept and not
 * served, because somebody went back; CONFIG_INVALID if its folder exists already; errors of the checkpoint and the corpus. Nothing is
 * discarded then.
 */
export async function claimIteration(
  folder: IterationsFolder,
  wanted: IterationInputs,
  { restart, signal }: { readonly restart: boolean; readonly signal: AbortSignal },
): Promise<Journal | undefined> {
  const unfinished = readJournal(folder.root);
  const begun = restart ? undefined : unfinished;
  if (unfinished !== undefined && folder.current().number === unfinished.number && restart) throw isServed(folder);
  const kept = folder.history.iterations.filter((iteration) => iteration.kept);
  const imported = [
    ...(begun?.model == null ? [] : [begun.inputs]),
    ...(begun === undefined && !restart ? kept.flatMap(({ inputs }) => inputs ?? []) : []),
  ];
  const inputs = await recordedInputs(wanted, imported, signal).catch((error: unknown) => {
    throw begun === undefined ? error : lostCheckpoint(error, folder, begun);
  });
  if (restart) await discardIteration(folder);
  if (begun === undefined) return begin(folder, inputs, { kept, restart });
  const differences = inputsDiffer(begun.inputs, inputs);
  if (differences.length === 0) {
    // The files may have been moved. A later run knows the checkpoint by its path once it is gone.
    const moved: Journal = { ...begun, inputs };
    if (!isSameJson(moved, begun)) await writeJournal(folder.root, moved);
    return moved;
  }
  throw new TrawlError(
    'BUILD_DIFFERS',
    `Iteration ${begun.number} of ${folder.root} is unfinished and has other inputs: ${differences.join('; ')}. Give the same to ` +
      'resume it, or discard it: --restart begins anew with these, `trawl iterate --discard` only removes it.',
    { details: { number: begun.number, differences } },
  );
}

async function begin(
  folder: IterationsFolder,
  inputs: Journal['inputs'],
  { kept, restart }: { readonly kept: readonly PublishedIteration[]; readonly restart: boolean },
): Promise<Journal | undefined> {
  const current = folder.current();
  const isSame = (iteration: PublishedIteration): boolean =>
    iteration.inputs !== null && inputsDiffer(iteration.inputs, inputs).length === 0;
  // First the served one: `--restart` may have made it anew from the inputs of another one that is kept.
  if (isSame(current)) return undefined;
  const same = kept.findLast(isSame);
  if (same !== undefined && !restart) throw notServed(folder, same.number, current.number);
  // It was mistaken for the folder of an iteration whose model is made.
  if (!existsSync(inputs.checkpoint)) throw noCheckpoint(inputs.checkpoint);
  const { next } = folder.history;
  const own = folder.folderOf(next);
  if (existsSync(own)) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `${own} exists, but no iteration ${next} was begun: its files would be taken for finished steps. Move it away.`,
    );
  }
  const journal: Journal = {
    format: 'trawl-iteration',
    version: 1,
    number: next,
    base: current.number,
    inputs,
    model: null,
    index: null,
    measures: null,
  };
  await writeJournal(folder.root, journal);
  return journal;
}

/** Says of an error whose reason is a checkpoint that is gone what was lost with it. */
function lostCheckpoint(error: unknown, { root }: IterationsFolder, { number, model, inputs }: Journal): unknown {
  if (!(error instanceof TrawlError) || error.code !== 'MODEL_NOT_FOUND') return error;
  const wayOut =
    model === null
      ? `Its model was not made yet, so ${inputs.checkpoint} is needed: restore it, or discard the iteration by --restart with another ` +
        `checkpoint or by trawl iterate --discard --root ${root}.`
      : `Its model was made of ${inputs.checkpoint}: give that path, which may be gone.`;
  return new TrawlError(error.code, `${error.message} Iteration ${number} of ${root} is unfinished. ${wayOut}`, {
    details: { ...error.details, number, checkpoint: inputs.checkpoint },
    cause: error,
  });
}

function notServed({ root }: IterationsFolder, same: number, current: number): TrawlError {
  return usageError(
    `Iteration ${same} was made from the same inputs, and iteration ${current} is served in its place. Serve it again: trawl iterate ` +
      `--back --to ${same} --root ${root}. --restart makes it anew.`,
  );
}

/**
 * Removes the unfinished iteration with its files. The caller holds the lock of the iteration.
 *
 * @returns its number; undefined if there is none.
 * @throws TrawlError USAGE if it is served already: only its last step is missing, so it is to be completed.
 */
export async function discardIteration(folder: IterationsFolder): Promise<number | undefined> {
  const lock = await folder.lockPublishing();
  try {
    const { root, history } = folder;
    const journal = readJournal(root);
    if (journal !== undefined) {
      const { number } = journal;
      if (folder.current().number === number) throw isServed(folder);
      const iterations = history.iterations.filter((iteration) => iteration.number !== number);
      await writeHistory(root, { ...history, next: number + 1, iterations });
      await rm(journalFile(root), { force: true });
      await syncFolder(root);
    }
    await removeUnknownFolders(folder);
    return journal?.number;
  } finally {
    lock.release();
  }
}

function isServed(folder: IterationsFolder): TrawlError {
  return usageError(
    `Iteration ${folder.current().number} is served already. Run its command again to complete it, or go back first: trawl iterate ` +
      `--back --root ${folder.root}.`,
  );
}
