import { existsSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { listCorpusFiles } from '../corpus/list-corpus-files.ts';
import type { CorpusOptions } from '../corpus/open-corpus.ts';
import { TrawlError } from '../src/errors.ts';
import { syncFolder } from '../src/system/durable-file.ts';
import { sha256OfFile } from '../src/system/file-checksum.ts';
import { checkpointFiles } from './checkpoint.ts';
import type { IterationsFolder } from './iterations-folder.ts';
import { removeUnknownFolders } from './prune.ts';
import { type InputFile, type Journal, journalFile, readJournal, writeHistory, writeJournal } from './records.ts';

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
 * @throws TrawlError BUILD_DIFFERS if an iteration with other inputs is unfinished; USAGE if one with these inputs is kept and not
 * served, because somebody went back; CONFIG_INVALID if its folder exists already; errors of the checkpoint and the corpus.
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
    const same = folder.history.iterations.find((each) => each.kept && isDeepStrictEqual(each.inputs, inputs));
    if (same?.number === current.number) return undefined;
    if (same !== undefined && !restart) throw notServed(folder, same.number, current.number);
    const own = folder.folderOf(folder.history.next);
    if (existsSync(own)) {
      throw new TrawlError(
        'CONFIG_INVALID',
        `${own} exists, but no iteration ${folder.history.next} was begun: its files would be taken for finished steps. Move it away.`,
      );
    }
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

function notServed({ root }: IterationsFolder, same: number, current: number): TrawlError {
  return new TrawlError(
    'USAGE',
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
    corpus: await corpusFiles(corpus, corpusFormat, signal),
    settings: { ...settings },
  };
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
      throw new TrawlError(
        'USAGE',
        `${path} is no file. A corpus that can be read only once cannot be resumed: write it to a file.`,
      );
    }
    files.push({ path: resolve(path), bytes: sizeBytes, sha256: await sha256OfFile(path, signal) });
  }
  return files;
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
  const sumsOf = (files: readonly InputFile[]): Map<string, string> =>
    new Map(files.map(({ path, sha256 }) => [path, sha256]));
  const [old, now] = [sumsOf(begun.checkpointFiles), sumsOf(wanted.checkpointFiles)];
  const changed = [...new Set([...old.keys(), ...now.keys()])].find((path) => old.get(path) !== now.get(path));
  return [`checkpoint ${begun.checkpoint}: ${changed} changed`];
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
