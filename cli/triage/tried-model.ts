import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { checkpointFiles } from '../../hub/checkpoint-files.ts';
import { importModel } from '../../model-import/import-model.ts';
import { locateModelFolder } from '../../src/embedding/model/model-location.ts';
import { TRAWL_MODEL_FILE } from '../../src/embedding/model/trawl-model-file.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import { isServerUrl } from '../../src/model-server/server-url.ts';
import { sha256OfFile } from '../../src/system/file-checksum.ts';
import { removeIfEmpty } from '../../triage/pool-vectors.ts';
import { asUsage, modelOverrides, shareWeights } from '../model/model-options.ts';
import type { TriageValues } from './triage-options.ts';

export interface TriedModel {
  readonly encoder: TextEncoder;
  close(): Promise<void>;
  /** Removes the folder into which a checkpoint was imported. */
  removeImported(): Promise<void>;
}

/**
 * Opens the model that is tried: a model by its name or folder, or a checkpoint in safetensors, which is imported into the work folder
 * first. The name of that folder depends on the checkpoint's files, so that a resumed run finds it.
 *
 * @throws TrawlError as `importModel` and `openEncoder`; USAGE for settings that the model cannot have.
 */
export async function openTriedModel(
  nameOrFolder: string,
  options: TriageValues,
  { work, onImport, signal }: { readonly work: string; onImport(): void; readonly signal: AbortSignal },
): Promise<TriedModel> {
  if (isServerUrl(nameOrFolder)) {
    throw new TrawlError('USAGE', `${nameOrFolder} is a URL; trawl triage tries a checkpoint or a model folder.`);
  }
  const folder = locateModelFolder(nameOrFolder);
  const imported = isCheckpoint(folder)
    ? join(work, `model-${await checkpointHash(folder, options, signal)}`)
    : undefined;
  if (imported !== undefined && !existsSync(imported)) {
    onImport();
    await importModel(folder, {
      out: imported,
      name: basename(folder),
      precisions: [options.precision ?? 'float32'],
      signal,
    });
  }
  const encoder = await asUsage(
    openEncoder(imported ?? nameOrFolder, {
      overrides: modelOverrides({ ...options, 'query-template': undefined }),
      precision: options.precision,
      device: options.device,
      shareWeights: shareWeights(options['share-weights']),
      workers: options['encoder-threads'],
    }),
  );
  return {
    encoder,
    close: () => encoder.close(),
    removeImported: async () => {
      if (imported === undefined) return;
      await rm(imported, { recursive: true, force: true });
      await removeIfEmpty(work);
    },
  };
}

/** Whether a folder has weights to import and is no model folder yet. */
function isCheckpoint(folder: string): boolean {
  const weights = ['model.safetensors', 'model.safetensors.index.json', '0_Transformer/model.safetensors'];
  return !existsSync(join(folder, TRAWL_MODEL_FILE)) && weights.some((name) => existsSync(join(folder, name)));
}

/** A hash of the precision and of the files that an import reads. */
async function checkpointHash(
  folder: string,
  { precision = 'float32' }: TriageValues,
  signal: AbortSignal,
): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .sort();
  const hash = createHash('sha256').update(precision);
  const listed = paths.map((path) => ({ path, bytes: 0, hash: { algorithm: 'sha256', value: '' } as const }));
  for (const { path } of checkpointFiles(listed))
    hash.update(`${path} ${await sha256OfFile(join(folder, path), signal)}\n`);
  return hash.digest('hex').slice(0, 16);
}
