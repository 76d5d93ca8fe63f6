import { existsSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { differences } from '../../src/base/system/output-report.ts';
import { checkpointFiles, noCheckpoint } from './checkpoint.ts';
import { type IterationsFolder, removeUnknownFolders } from './iterations-folder.ts';
import {
  type InputFile,
  type Journal,
  type PublishedIteration,
  readJournal,
  removeJournal,
  writeHistory,
  writeJournal,
} from './records.ts';

/**
 * Begins an iteration, or resumes the unfinished one if its inputs are the same. Undefined if there is nothing to do: none is unfinished,
 * and the served one was made from these inputs.
 *
 * @param restart discards an unfinished iteration first, and makes an iteration anew that is kept but not served.
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
  const isUnfinishedServed = unfinished !== undefined && folder.current().number === unfinished.number;
  if (restart) {
    if (isUnfinishedServed) throw isServed(folder);
    const inputs = await recordedInputs(wanted, [], signal);
    await discardIteration(folder);
    return begin(folder, inputs, []);
  }
  if (unfinished !== undefined) return resume(folder, unfinished, wanted, signal);
  const kept = folder.history.iterations.filter((iteration) => iteration.kept);
  const imported = kept.flatMap(({ inputs }) => inputs ?? []);
  return begin(folder, await recordedInputs(wanted, imported, signal), kept);
}

async function resume(
  folder: IterationsFolder,
  unfinished: Journal,
  wanted: IterationInputs,
  signal: AbortSignal,
): Promise<Journal> {
  const imported = unfinished.model === null ? [] : [unfinished.inputs];
  const inputs = await recordedInputs(wanted, imported, signal).catch((error: unknown) => {
    throw lostCheckpoint(error, folder, unfinished);
  });
  const different = inputsDiffer(unfinished.inputs, inputs);
  if (different.length > 0) {
    throw new TrawlError(
      'BUILD_DIFFERS',
      `Iteration ${unfinished.number} of ${folder.root} is unfinished and has other inputs: ${different.join('; ')}. Give the same to ` +
        'resume it, or discard it: --restart begins anew with these, `trawl iterate --discard` only removes it.',
      { details: { number: unfinished.number, differences: different } },
    );
  }
  // The files may have been moved. Once the checkpoint is gone, a later run knows it by its new path.
  const moved: Journal = { ...unfinished, inputs };
  if (!isSameJson(moved, unfinished)) await writeJournal(folder.root, moved);
  return moved;
}

/** @param kept iterations that are not made anew from the same inputs. */
async function begin(
  folder: IterationsFolder,
  inputs: RecordedInputs,
  kept: readonly PublishedIteration[],
): Promise<Journal | undefined> {
  const current = folder.current();
  const isSame = (iteration: PublishedIteration): boolean =>
    iteration.inputs !== null && inputsDiffer(iteration.inputs, inputs).length === 0;
  // First the served one: `--restart` may have made it anew from the inputs of another one that is kept.
  if (isSame(current)) return undefined;
  const same = kept.findLast(isSame);
  if (same !== undefined) {
    throw usageError(
      `Iteration ${same.number} was made from the same inputs, and iteration ${current.number} is served in its place. Serve it again: ` +
        `trawl iterate --back --to ${same.number} --root ${folder.root}. --restart makes it anew.`,
    );
  }
  // The checkpoint of a kept iteration may be gone, but the model of a new one has to be made.
  if (!existsSync(inputs.checkpoint)) throw noCheckpoint(inputs.checkpoint);
  const { next } = folder.history;
  const own = folder.folderOf(next);
  if (existsSync(own)) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `${own} exists, but no iteration ${next} was begun: its files would be taken for finished steps. Move it away.`,
    );
  }
  const begun = { number: next, base: current.number, inputs, model: null, index: null, measures: null };
  const journal: Journal = { format: 'trawl-iteration', version: 1, ...begun };
  await writeJournal(folder.root, journal);
  return journal;
}

/** The error of a checkpoint that is gone, with the way out for the unfinished iteration. Returns any other error unchanged. */
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
      await removeJournal(root);
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

export interface IterationInputs {
  /** Absolute. */
  readonly checkpoint: string;
  readonly corpus: readonly string[];
  readonly corpusFormat: CorpusOptions['format'];
  /** Options that change the index, as JSON. */
  readonly settings: Readonly<Record<string, unknown>>;
}

type RecordedInputs = Journal['inputs'];

/**
 * The inputs with their checksums, as the journal has them.
 *
 * @param imported inputs of iterations whose model is made. Trainers remove old checkpoints, so files that are gone from one of these
 * count as they were recorded.
 * @throws TrawlError MODEL_NOT_FOUND for another checkpoint that is gone; USAGE for a corpus that is not a file; errors of the corpus.
 */
async function recordedInputs(
  { checkpoint, corpus, corpusFormat, settings }: IterationInputs,
  imported: readonly RecordedInputs[],
  signal: AbortSignal,
): Promise<RecordedInputs> {
  const same = imported.find((inputs) => inputs.checkpoint === checkpoint);
  const found = same !== undefined && !existsSync(checkpoint) ? [] : await checkpointFiles(checkpoint, signal);
  return {
    checkpoint,
    checkpointFiles: same !== undefined && isRest(found, same.checkpointFiles) ? same.checkpointFiles : found,
    corpus: await corpusFiles(corpus, corpusFormat, signal),
    settings: { ...settings },
  };
}

function isRest(found: readonly InputFile[], recorded: readonly InputFile[]): boolean {
  return found.every((file) => recorded.some((each) => isSameJson(each, file)));
}

/** With their checksums: an iteration of another corpus must not count as this one, even if the sizes are the same. */
async function corpusFiles(
  paths: readonly string[],
  format: CorpusOptions['format'],
  signal: AbortSignal,
): Promise<InputFile[]> {
  const files: InputFile[] = [];
  for (const { path, sizeBytes } of listCorpusFiles(paths, format)) {
    if (!statSync(path).isFile()) {
      throw usageError(
        `${path} is not a file. A corpus that can be read only once cannot be resumed: write it to a file.`,
      );
    }
    files.push({ path: resolve(path), bytes: sizeBytes, sha256: await sha256OfFile(path, signal) });
  }
  return files;
}

/** What differs, in words; empty if both give the same index. Files may have been moved, but not renamed: names decide the format. */
function inputsDiffer(begun: RecordedInputs, wanted: RecordedInputs): string[] {
  return [
    ...checkpointDiffers(begun, wanted),
    ...corpusDiffers(begun.corpus, wanted.corpus),
    ...(isSameJson(begun.settings, wanted.settings) ? [] : differences(begun.settings, wanted.settings)),
  ];
}

function checkpointDiffers(begun: RecordedInputs, wanted: RecordedInputs): string[] {
  if (isSameJson(begun.checkpointFiles, wanted.checkpointFiles)) return [];
  if (begun.checkpoint !== wanted.checkpoint) return [`checkpoint: ${begun.checkpoint}, now ${wanted.checkpoint}`];
  const sumsOf = (files: readonly InputFile[]): Map<string, string> =>
    new Map(files.map(({ path, sha256 }) => [path, sha256]));
  const [old, now] = [sumsOf(begun.checkpointFiles), sumsOf(wanted.checkpointFiles)];
  const changed = [...new Set([...old.keys(), ...now.keys()])].find((path) => old.get(path) !== now.get(path))!;
  return [`checkpoint ${begun.checkpoint}: ${changed} ${now.has(changed) ? 'changed' : 'is gone'}`];
}

function corpusDiffers(begun: RecordedInputs['corpus'], wanted: RecordedInputs['corpus']): string[] {
  const names = (files: RecordedInputs['corpus']): string[] => files.map(({ path }) => basename(path));
  if (!isSameJson(names(begun), names(wanted))) {
    const paths = (files: RecordedInputs['corpus']): string => files.map(({ path }) => path).join(', ');
    return [`corpus: ${paths(begun)}, now ${paths(wanted)}`];
  }
  return begun.flatMap(({ bytes, sha256 }, i) => {
    const now = wanted[i]!;
    return now.bytes === bytes && now.sha256 === sha256 ? [] : [`${now.path} changed`];
  });
}
