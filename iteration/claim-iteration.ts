import { existsSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { listCorpusFiles } from '../corpus/list-corpus-files.ts';
import type { CorpusOptions } from '../corpus/open-corpus.ts';
import { TrawlError } from '../src/errors.ts';
import { syncFolder } from '../src/system/durable-file.ts';
import { checkpointFiles } from './checkpoint.ts';
import type { IterationsFolder } from './iterations-folder.ts';
import { removeUnknownFolders } from './prune.ts';
import { type Journal, journalFile, readJournal, writeHistory, writeJournal } from './records.ts';

export interface IterationInputs {
  /** Absolute. */
  readonly checkpoint: string;
  readonly corpus: readonly string[];
  readonly corpusFormat: CorpusOptions['format'];
  /** Options that change the index, as JSON. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/**
 * Begins an iteration, or resumes the unfinished one if its inputs are the same. Undefined if none is unfinished and the iteration that
 * is served was made from the same inputs: there is nothing to do.
 *
 * @param restart discards an unfinished iteration first.
 * @throws TrawlError BUILD_DIFFERS if an iteration with other inputs is unfinished; errors of the checkpoint and the corpus.
 */
export async function claimIteration(
  folder: IterationsFolder,
  wanted: IterationInputs,
  { restart, signal }: { readonly restart: boolean; readonly signal: AbortSignal },
): Promise<Journal | undefined> {
  if (restart) await discardIteration(folder);
  const begun = readJournal(folder.root);
  const inputs = await inputsOf(wanted, begun, signal);
  if (begun === undefined) {
    const current = folder.current();
    if (isDeepStrictEqual(current.inputs, inputs)) return undefined;
    const journal: Journal = {
      format: 'trawl-iteration',
      version: 1,
      number: folder.history.next,
      base: current.number,
      inputs,
      model: null,
      index: null,
      measures: null,
    };
    await writeJournal(folder.root, journal);
    return journal;
  }
  const differences = inputsDiffer(begun.inputs, inputs);
  if (differences.length === 0) return begun;
  throw new TrawlError(
    'BUILD_DIFFERS',
    `Iteration ${begun.number} of ${folder.root} is unfinished and has other inputs: ${differences.join('; ')}. Give the same to ` +
      'resume it, or discard it: --restart begins anew with these, `trawl iterate --discard` only removes it.',
    { details: { number: begun.number, differences } },
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
      if (folder.current().number === number) {
        throw new TrawlError(
          'USAGE',
          `Iteration ${number} is served already. Run its command again to complete it, or go back first: trawl iterate --back --root ${root}.`,
        );
      }
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

async function inputsOf(
  { checkpoint, corpus, corpusFormat, settings }: IterationInputs,
  begun: Journal | undefined,
  signal: AbortSignal,
): Promise<Journal['inputs']> {
  // Trainers remove old checkpoints. Once the model is made, the checkpoint is not read again.
  const isGone = begun?.model != null && begun.inputs.checkpoint === checkpoint && !existsSync(checkpoint);
  return {
    checkpoint,
    checkpointFiles: isGone ? begun.inputs.checkpointFiles : await checkpointFiles(checkpoint, signal),
    corpus: listCorpusFiles(corpus, corpusFormat).map(({ path, sizeBytes }) => ({
      path: resolve(path),
      bytes: sizeBytes,
      modifiedMs: statSync(path).mtimeMs,
    })),
    settings: { ...settings },
  };
}

function inputsDiffer(begun: Journal['inputs'], wanted: Journal['inputs']): string[] {
  return [
    ...checkpointDiffers(begun, wanted),
    ...corpusDiffers(begun.corpus, wanted.corpus),
    ...[...new Set([...Object.keys(begun.settings), ...Object.keys(wanted.settings)])]
      .filter((name) => !isDeepStrictEqual(begun.settings[name], wanted.settings[name]))
      .map((name) => `${name}: ${shown(begun.settings[name])}, now ${shown(wanted.settings[name])}`),
  ];
}

function checkpointDiffers(begun: Journal['inputs'], wanted: Journal['inputs']): string[] {
  if (isDeepStrictEqual(begun.checkpointFiles, wanted.checkpointFiles)) return [];
  if (begun.checkpoint !== wanted.checkpoint) return [`checkpoint: ${begun.checkpoint}, now ${wanted.checkpoint}`];
  const sums = new Map(wanted.checkpointFiles.map(({ path, sha256 }) => [path, sha256]));
  const changed = begun.checkpointFiles.find(({ path, sha256 }) => sums.get(path) !== sha256);
  return [`checkpoint ${begun.checkpoint}: ${changed?.path ?? 'its files'} changed`];
}

function corpusDiffers(begun: Journal['inputs']['corpus'], wanted: Journal['inputs']['corpus']): string[] {
  if (isDeepStrictEqual(begun, wanted)) return [];
  const paths = (files: Journal['inputs']['corpus']): string => files.map(({ path }) => path).join(', ');
  if (paths(begun) !== paths(wanted)) return [`corpus: ${paths(begun)}, now ${paths(wanted)}`];
  return begun.flatMap((file, i) => (isDeepStrictEqual(file, wanted[i]) ? [] : [`${file.path} changed`]));
}

function shown(value: unknown): string {
  return value === undefined || value === null ? 'not given' : JSON.stringify(value);
}
