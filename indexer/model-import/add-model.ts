import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { asTrawlError, TrawlError } from '../../src/base/errors.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import type { StatedPooling } from '../../src/encoder/model/transformers-folder.ts';
import { readTrawlModelFile, TRAWL_MODEL_FILE } from '../../src/encoder/model/trawl-model-file.ts';
import { checkpointFiles, describingFiles, weightBytes } from '../hub/checkpoint-files.ts';
import { type DownloadedRepository, type DownloadProgress, downloadRepository } from '../hub/download-repository.ts';
import { checkBeforeWeights, type ImportedModel, importModel, type ModelSource } from './import-model.ts';
import { withModelLock } from './model-lock.ts';
import { type ModelSourceArgument, parseModelSource } from './model-source.ts';

export interface AddOptions {
  readonly source: string;
  readonly name: string | undefined;
  readonly out: string | undefined;
  readonly precisions: readonly Precision[] | undefined;
  readonly pooling: StatedPooling | undefined;
  readonly force: boolean;
  readonly keepSource: boolean;
  readonly signal: AbortSignal;
  /** Shows the download, the stages of the import, and what the user should know. */
  readonly progress: {
    readonly download: (progress: DownloadProgress) => void;
    readonly step: (progress: { readonly stage: string; readonly done: number; readonly total: number }) => void;
    readonly note: (text: string) => void;
  };
}

export interface AddedModel extends ImportedModel {
  readonly source: ModelSource;
  /** Folder of the downloaded checkpoint; undefined unless it was kept. */
  readonly keptSource: string | undefined;
  readonly transferredBytes: number;
}

/**
 * Imports a checkpoint into a model folder, and downloads the checkpoint first if it is on the hub. Throws MODEL_LOCKED while another
 * process adds the same model or downloads the same checkpoint.
 */
export async function addModel(options: AddOptions): Promise<AddedModel> {
  const source = parseModelSource(options.source);
  const name = checkedName(options.name ?? (options.out === undefined ? source.name : basename(resolve(options.out))));
  const out = resolve(options.out ?? join('models', name));
  // In a subfolder, because a folder with a config.json directly in models/ would count as a model.
  const work = join(dirname(out), '.download');
  const held = (folder: string) => ({
    message: `Another \`trawl model add\` is working on ${folder}. Wait until it has finished, or stop it.`,
    folder,
  });
  return withModelLock(join(work, `${basename(out)}.model.lock`), held(out), async () => {
    if (source.type === 'folder') return addLocked(options, source, name, out, work);
    const folder = sourceFolder(work, source.id);
    return withModelLock(`${folder}.source.lock`, held(folder), () => addLocked(options, source, name, out, work));
  });
}

async function addLocked(
  options: AddOptions,
  source: ModelSourceArgument,
  name: string,
  out: string,
  work: string,
): Promise<AddedModel> {
  const { force, keepSource, signal, progress, precisions, pooling } = options;
  const next = join(work, `${basename(out)}.next`);
  const replaced = join(work, `${basename(out)}.replaced`);
  // A process died between the two renames of `replace`.
  if (!existsSync(out) && existsSync(join(replaced, TRAWL_MODEL_FILE))) await rename(replaced, out);
  await checkFree(out, source, force);

  const fetched = source.type === 'hub' ? await fetchSource(source, work, options) : undefined;
  const made = force && existsSync(out) ? next : out;
  await rm(next, { recursive: true, force: true });
  const from: ModelSource =
    source.type === 'hub'
      ? { kind: 'hub', id: source.id, revision: fetched!.commit }
      : { kind: 'folder', id: source.id, revision: source.revision };
  await mkdir(dirname(made), { recursive: true });
  const { description, remarks } = await importModel(source.type === 'hub' ? fetched!.folder : source.folder, {
    out: made,
    name,
    precisions,
    pooling,
    source: from,
    signal,
    onProgress: progress.step,
  });
  if (made !== out) await replace(out, next, replaced);
  if (fetched !== undefined && !keepSource) await rm(fetched.folder, { recursive: true, force: true });
  return {
    folder: out,
    description,
    remarks,
    source: from,
    keptSource: keepSource ? fetched?.folder : undefined,
    transferredBytes: fetched?.transferredBytes ?? 0,
  };
}

function sourceFolder(work: string, id: string): string {
  return join(work, id.replace('/', '--'));
}

/** Downloads the configs first, so that a model that cannot be imported is refused before its weights are downloaded. */
async function fetchSource(
  source: ModelSourceArgument & { type: 'hub' },
  work: string,
  { precisions, pooling, signal, progress }: AddOptions,
): Promise<DownloadedRepository> {
  const common = {
    repository: { type: 'model', name: source.id },
    into: sourceFolder(work, source.id),
    signal,
    onNotice: progress.note,
  } as const;
  const formats = { safetensors: false, graph: false };
  const described = await downloadRepository({
    ...common,
    revision: source.revision,
    select: (files) => {
      formats.safetensors = checkpointFiles(files).some(({ path }) => path.endsWith('.safetensors'));
      formats.graph = checkpointFiles(files, { graphFirst: true }).some(({ path }) => path.endsWith('.onnx'));
      return describingFiles(files);
    },
  });
  const graphFirst = await checkBeforeWeights(described.folder, [source.id], { precisions, pooling }, formats);
  const whole = await downloadRepository({
    ...common,
    revision: described.commit,
    select: (files) => checkpointFiles(files, { graphFirst }),
    prune: true,
    // Room for the model, which is about as large as the checkpoint.
    reserveBytes: weightBytes,
    onProgress: progress.download,
  });
  return { ...whole, transferredBytes: described.transferredBytes + whole.transferredBytes };
}

/** Checks a model name, which becomes the name of a folder that `--model NAME` must find. */
function checkedName(name: string): string {
  if (/^[A-Za-z0-9_][\w.-]*$/.test(name) && name.length <= 128) return name;
  throw new TrawlError(
    'USAGE',
    `${JSON.stringify(name)} cannot be the name of a model: expected letters, digits, dots, hyphens and underscores, without a ` +
      'dot or hyphen at the beginning. Choose another name with --name.',
  );
}

async function checkFree(out: string, source: ModelSourceArgument, force: boolean): Promise<void> {
  if (source.type === 'folder' && source.folder === out) {
    throw new TrawlError(
      'MODEL_EXISTS',
      `${out} is the checkpoint itself. Choose another name with --name, or another folder with --out.`,
    );
  }
  if (!existsSync(out)) return;
  if (!force) {
    throw new TrawlError(
      'MODEL_EXISTS',
      `${out} already exists. Choose another name with --name, or replace it with --force.`,
    );
  }
  const reason = await reasonToKeep(out);
  if (reason === null) return;
  throw new TrawlError(
    'MODEL_EXISTS',
    `${out} was not made by this command, so it is not replaced: ${reason}. Choose another name with --name.`,
  );
}

/** Why a folder must not be replaced: it is not a model folder, or has other files. Null if it has only a model. */
async function reasonToKeep(folder: string): Promise<string | null> {
  if (!existsSync(join(folder, TRAWL_MODEL_FILE))) return `it has no ${TRAWL_MODEL_FILE}`;
  try {
    const { files } = await readTrawlModelFile(folder);
    const own = new Set([TRAWL_MODEL_FILE, ...files.map(({ path }) => path.split('/')[0]!)]);
    const other = (await readdir(folder)).find((name) => !own.has(name));
    return other === undefined ? null : `${other} is not one of its model's files`;
  } catch (error) {
    return asTrawlError(error).message;
  }
}

/** Replaces a model that may be in use; processes that have the old model open keep reading it. */
async function replace(out: string, next: string, replaced: string): Promise<void> {
  await rm(replaced, { recursive: true, force: true });
  await rename(out, replaced);
  try {
    await rename(next, out);
  } catch (error) {
    await rename(replaced, out);
    throw error;
  }
  await syncFolder(dirname(out));
  await rm(replaced, { recursive: true, force: true });
}
