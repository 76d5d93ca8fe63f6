import { existsSync, readdirSync, statSync } from 'node:fs';
import { cp, mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { readModelFolder, verifyModelFolder } from '../../src/encoder/model/model-folder.ts';
import type { StatedPooling } from '../../src/encoder/model/transformers-folder.ts';
import { TRAWL_MODEL_FILE } from '../../src/encoder/model/trawl-model-file.ts';
import type { InputFile } from './records.ts';

/** What an import reads: weights, graphs, settings and tokenizer; not the state of an optimizer. */
const READ_FILES = /\.(safetensors|json|txt|onnx|onnx_data|data)$/;

/** Whether the folder is a model folder already, which is copied and not imported. */
export function isModelFolder(checkpoint: string): boolean {
  return existsSync(join(checkpoint, TRAWL_MODEL_FILE));
}

/**
 * Whether the checkpoint itself states pooling, normalisation and prefixes. Checkpoints of sentence-transformers and model folders do;
 * checkpoints of tevatron and plain Transformers do not.
 */
export function hasOwnSettings(checkpoint: string): boolean {
  return isModelFolder(checkpoint) || existsSync(join(checkpoint, 'modules.json'));
}

/**
 * The files of a checkpoint, in the folder and one level below, with their checksums.
 *
 * @throws TrawlError MODEL_NOT_FOUND.
 */
export async function checkpointFiles(checkpoint: string, signal: AbortSignal): Promise<InputFile[]> {
  if (!isFolder(checkpoint)) throw noCheckpoint(checkpoint);
  const paths = readdirSync(checkpoint).flatMap((name) =>
    isFolder(join(checkpoint, name)) ? readdirSync(join(checkpoint, name)).map((inner) => `${name}/${inner}`) : [name],
  );
  const files: InputFile[] = [];
  for (const path of paths.filter((name) => READ_FILES.test(name)).sort()) {
    const stats = statSync(join(checkpoint, path), { throwIfNoEntry: false });
    if (stats === undefined || !stats.isFile()) continue;
    files.push({ path, bytes: stats.size, sha256: await sha256OfFile(join(checkpoint, path), signal) });
  }
  return files;
}

export function noCheckpoint(checkpoint: string): TrawlError {
  return new TrawlError(
    'MODEL_NOT_FOUND',
    existsSync(checkpoint)
      ? `${checkpoint} is not a folder. A checkpoint of the hub is added first: trawl model add ORGANISATION/NAME.`
      : `There is no checkpoint ${checkpoint}. It is the folder that the trainer wrote; one of the hub is added first: trawl model add ` +
          'ORGANISATION/NAME.',
  );
}

interface ModelStep {
  readonly checkpoint: string;
  readonly files: readonly InputFile[];
  readonly out: string;
  readonly precision: Precision | undefined;
  readonly pooling: StatedPooling | undefined;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: { readonly stage: string; readonly done: number; readonly total: number }) => void;
}

/**
 * Makes the model folder of an iteration, which is complete when it exists.
 *
 * @throws TrawlError of the import; MODEL_INVALID if the checkpoint changed while it was read, as a trainer does that still writes it.
 */
export async function makeModel(step: ModelStep): Promise<void> {
  const { checkpoint, files, out, precision, pooling, signal, onProgress } = step;
  if (existsSync(out)) return;
  const part = `${out}.unchecked`;
  await rm(part, { recursive: true, force: true });
  await mkdir(dirname(out), { recursive: true });
  if (isModelFolder(checkpoint)) {
    await copyFolder(checkpoint, part);
    await verifyModelFolder(await readModelFolder(part, {}, { precision }));
  } else {
    await importModel(checkpoint, {
      out: part,
      name: basename(checkpoint),
      precisions: precision === undefined ? undefined : [precision],
      pooling,
      signal,
      onProgress,
    });
  }
  if (JSON.stringify(await checkpointFiles(checkpoint, signal)) !== JSON.stringify(files)) {
    await rm(part, { recursive: true, force: true });
    throw new TrawlError(
      'MODEL_INVALID',
      `${checkpoint} changed while it was read. Wait until the trainer has written it, and run the command again with --restart.`,
    );
  }
  await rename(part, out);
  await syncFolder(dirname(out));
}

/** Copies a folder, with its files on the disk when this resolves. */
async function copyFolder(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, dereference: true });
  for (const name of readdirSync(to, { recursive: true, encoding: 'utf8' })) {
    const file = await open(join(to, name), 'r');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }
  await syncFolder(to);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
