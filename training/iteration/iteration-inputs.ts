import { existsSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { usageError } from '../../src/base/errors.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { checkpointFiles } from './checkpoint.ts';
import type { InputFile, Journal } from './records.ts';

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
 * @param imported inputs of iterations whose model is made: their checkpoints are not read again, and trainers remove old ones. What is
 * gone of one of these counts as it was.
 * @throws TrawlError MODEL_NOT_FOUND for another checkpoint that is gone; USAGE for a corpus that is not a file; errors of the corpus.
 */
export async function recordedInputs(
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

/** Whether files are the recorded ones, or what is left of them. */
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
export function inputsDiffer(begun: RecordedInputs, wanted: RecordedInputs): string[] {
  return [
    ...checkpointDiffers(begun, wanted),
    ...corpusDiffers(begun.corpus, wanted.corpus),
    ...[...new Set([...Object.keys(begun.settings), ...Object.keys(wanted.settings)])]
      .filter((name) => !isSameJson(begun.settings[name], wanted.settings[name]))
      .map((name) => `${name}: ${shown(begun.settings[name])}, now ${shown(wanted.settings[name])}`),
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

function shown(value: unknown): string {
  return value === undefined || value === null ? 'not given' : JSON.stringify(value);
}
