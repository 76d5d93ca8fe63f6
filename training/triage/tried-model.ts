import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { checkpointFiles } from '../../indexer/hub/checkpoint-files.ts';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { asUsage, usageError } from '../../src/base/errors.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { FileLock, type LockMode } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { locateModelFolder } from '../../src/encoder/model/model-location.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import { TRAWL_MODEL_FILE } from '../../src/encoder/model/trawl-model-file.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import { type OpenEncoderOptions, openEncoder } from '../../src/encoder/open-encoder.ts';
import { poolingOfImport } from '../iteration/model-settings.ts';
import { removeIfEmpty } from './pool-vectors.ts';

export type TriedModel = Awaited<ReturnType<typeof openTriedModel>>;

export interface TriedModelOptions {
  readonly work: string;
  /** How the model runs. The overrides' pooling also applies to an import whose checkpoint states none. */
  readonly encoder: Pick<OpenEncoderOptions, 'precision' | 'device' | 'shareWeights' | 'workers'> & {
    readonly overrides: ModelOverrides;
  };
  onImport(): void;
  /** Another run imports or removes the same model, and this one waits. */
  onWait(): void;
  readonly signal: AbortSignal;
}

const WAIT_MS = 200;

/**
 * Opens the model that is tried: a model by its name or folder, or a checkpoint in safetensors, which is imported into the work folder
 * first. The name of that folder depends on the checkpoint's files, so that a resumed run finds it. Runs that try the same checkpoint share
 * it: one imports it while the others wait.
 *
 * @throws TrawlError as `importModel` and `openEncoder`; USAGE for settings that the model cannot have.
 */
export async function openTriedModel(
  nameOrFolder: string,
  { work, encoder: settings, onImport, onWait, signal }: TriedModelOptions,
) {
  if (isServerUrl(nameOrFolder)) {
    throw usageError(`${nameOrFolder} is a URL; trawl triage tries a checkpoint or a model folder.`);
  }
  const folder = locateModelFolder(nameOrFolder);
  const precision = settings.precision ?? 'float32';
  const importing = isCheckpoint(folder);
  const pooling = importing
    ? await poolingOfImport(folder, { given: settings.overrides.pooling, base: null })
    : undefined;
  const imported = importing
    ? join(work, `model-${await checkpointHash(folder, `${precision} ${pooling ?? ''}`, signal)}`)
    : undefined;
  const importInto = async (out: string): Promise<void> => {
    onImport();
    await importModel(folder, { out, name: basename(folder), precisions: [precision], pooling, signal });
  };
  const use = imported === undefined ? undefined : await useOf(imported, importInto, { onWait, signal });
  const encoder = await asUsage(openEncoder(imported ?? nameOrFolder, settings)).catch((error: unknown) => {
    use?.release();
    throw error;
  });
  return {
    encoder,
    close: async () => {
      await encoder.close();
      use?.release();
    },
    /** Removes the folder into which a checkpoint was imported, unless another run has it open: then that run removes it. */
    removeImported: async () => {
      use?.release();
      if (imported !== undefined) await removeUnused(imported);
    },
  };
}

/**
 * A shared lock on an imported model, which exists then: this run or another one has made it. Nobody waits for an exclusive lock: a run
 * that has the model open would hold it up to its end.
 */
async function useOf(
  imported: string,
  importInto: (out: string) => Promise<void>,
  { onWait, signal }: Pick<TriedModelOptions, 'onWait' | 'signal'>,
): Promise<FileLock> {
  for (let hasWaited = false; ; ) {
    throwIfCancelled(signal);
    const use = await acquired(imported, 'shared');
    if (use !== undefined && existsSync(imported)) return use;
    use?.release();
    const making = use === undefined ? undefined : await acquired(imported, 'exclusive');
    if (making === undefined) {
      if (!hasWaited) onWait();
      hasWaited = true;
      await setTimeout(WAIT_MS);
      continue;
    }
    try {
      if (!existsSync(imported)) await importInto(imported);
    } catch (error) {
      await removeLock(imported, making);
      throw error;
    }
    making.release();
  }
}

/** A lock on the use of an imported model; undefined while another run has it. The import itself locks another file. */
async function acquired(imported: string, mode: LockMode): Promise<FileLock | undefined> {
  try {
    await mkdir(dirname(imported), { recursive: true });
    return FileLock.acquire(lockOf(imported), mode);
  } catch (error) {
    throw writeFailure(error, dirname(imported));
  }
}

async function removeUnused(imported: string): Promise<void> {
  const lock = await acquired(imported, 'exclusive');
  if (lock === undefined) return;
  // Renamed first: a kill in the middle leaves no half of a model under the name that the next run looks for.
  const removed = `${imported}.removed`;
  await rm(removed, { recursive: true, force: true });
  if (existsSync(imported)) await rename(imported, removed);
  await rm(removed, { recursive: true, force: true });
  await removeLock(imported, lock);
}

/** Releases an exclusive lock and removes its file, and the work folder, unless something is in it. */
async function removeLock(imported: string, lock: FileLock): Promise<void> {
  await rm(lockOf(imported), { force: true });
  lock.release();
  await removeIfEmpty(dirname(imported));
}

function lockOf(imported: string): string {
  return `${imported}.use.lock`;
}

/** Whether a folder has weights to import and is not a model folder yet. */
function isCheckpoint(folder: string): boolean {
  const weights = ['model.safetensors', 'model.safetensors.index.json', '0_Transformer/model.safetensors'];
  return !existsSync(join(folder, TRAWL_MODEL_FILE)) && weights.some((name) => existsSync(join(folder, name)));
}

/**
 * A hash of the settings of an import and of the files that it reads.
 *
 * @throws TrawlError MODEL_INVALID for a folder that is not a checkpoint.
 */
async function checkpointHash(folder: string, settings: string, signal: AbortSignal): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const listed = entries.flatMap((entry) => {
    const path = relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/');
    return entry.isDirectory() ? [] : [{ path, bytes: 0, hash: { algorithm: 'sha256', value: '' } as const }];
  });
  const paths = checkpointFiles(listed).map(({ path }) => path);
  const hash = createHash('sha256').update(settings);
  for (const path of paths.sort()) hash.update(`${path} ${await sha256OfFile(join(folder, path), signal)}\n`);
  return hash.digest('hex').slice(0, 16);
}
