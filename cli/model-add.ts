import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type ImportedModel, importModel, type ModelSource } from '../checkpoint/import-model.ts';
import { checkpointFiles, weightBytes } from '../hub/checkpoint-files.ts';
import { downloadRepository } from '../hub/download-repository.ts';
import { readTrawlModelFile, TRAWL_MODEL_FILE } from '../src/embedding/trawl-model-file.ts';
import { asTrawlError, TrawlError } from '../src/errors.ts';
import type { Precision } from '../src/manifest/model-identity.ts';
import { syncFolder } from '../src/manifest/write-json.ts';
import type { ModelProgress } from './model-progress.ts';
import { type ModelSourceArgument, parseModelSource } from './model-source.ts';

export interface AddOptions {
  readonly source: string;
  readonly name: string | undefined;
  readonly out: string | undefined;
  readonly precisions: readonly Precision[] | undefined;
  readonly force: boolean;
  readonly keepSource: boolean;
  readonly signal: AbortSignal;
  readonly progress: ModelProgress;
}

export interface AddedModel extends ImportedModel {
  readonly source: ModelSource;
  /** Where the downloaded checkpoint is kept; undefined where it is not. */
  readonly keptSource: string | undefined;
  readonly transferredBytes: number;
}

/** Downloads a checkpoint where it is on the hub, and makes a model folder of it. */
export async function addModel(options: AddOptions): Promise<AddedModel> {
  const { force, signal, progress } = options;
  const source = parseModelSource(options.source);
  const name = checkedName(options.name ?? (options.out === undefined ? source.name : basename(resolve(options.out))));
  const out = resolve(options.out ?? join('models', name));
  // Not beside `out` itself: every folder with a config.json in models/ is a model.
  const work = join(dirname(out), '.download');
  const set = { next: join(work, `${basename(out)}.next`), replaced: join(work, `${basename(out)}.replaced`) };
  await recover(out, set.replaced);
  await checkFree(out, source, force);

  const fetched = source.kind === 'hub' ? await fetchSource(source, work, options) : undefined;
  const made = force && existsSync(out) ? set.next : out;
  await rm(set.next, { recursive: true, force: true });
  const from: ModelSource =
    source.kind === 'hub'
      ? { kind: 'hub', id: source.id, revision: fetched!.commit }
      : { kind: 'folder', id: basename(source.folder) };
  await mkdir(dirname(made), { recursive: true });
  const imported = await importModel(source.kind === 'hub' ? fetched!.folder : source.folder, {
    out: made,
    name,
    ...(options.precisions === undefined ? {} : { precisions: options.precisions }),
    source: from,
    signal,
    onProgress: progress.step,
  });
  if (made !== out) await replace(out, set);
  if (fetched !== undefined && !options.keepSource) await rm(fetched.folder, { recursive: true, force: true });
  return {
    folder: out,
    description: imported.description,
    source: from,
    keptSource: fetched !== undefined && options.keepSource ? fetched.folder : undefined,
    transferredBytes: fetched?.transferredBytes ?? 0,
  };
}

function fetchSource(source: ModelSourceArgument & { kind: 'hub' }, work: string, { signal, progress }: AddOptions) {
  return downloadRepository({
    repository: { type: 'model', name: source.id },
    revision: source.revision,
    into: join(work, source.id.replace('/', '--')),
    select: checkpointFiles,
    prune: true,
    // The model that is made of it is about as large.
    reserveBytes: weightBytes,
    signal,
    onProgress: progress.download,
    onNotice: progress.note,
  });
}

/** A name is a folder's name and has to be found again by `--model NAME`. */
function checkedName(name: string): string {
  if (/^[A-Za-z0-9_][\w.-]*$/.test(name) && name.length <= 128) return name;
  throw new TrawlError(
    'USAGE',
    `${JSON.stringify(name)} cannot be the name of a model: letters, digits, dots, hyphens and underscores, not beginning ` +
      'with a dot or hyphen. Choose one with --name.',
  );
}

async function checkFree(out: string, source: ModelSourceArgument, force: boolean): Promise<void> {
  if (source.kind === 'folder' && source.folder === out) {
    throw new TrawlError(
      'MODEL_EXISTS',
      `${out} is the checkpoint itself. Give the model another name with --name, or a folder with --out.`,
    );
  }
  if (!existsSync(out)) return;
  if (!force) {
    throw new TrawlError(
      'MODEL_EXISTS',
      `${out} is there already. Choose another name with --name, or replace it with --force.`,
    );
  }
  const stranger = await strangerIn(out);
  if (stranger === null) return;
  throw new TrawlError(
    'MODEL_EXISTS',
    `${out} was not made by this command and is not replaced: ${stranger}. Choose another name with --name.`,
  );
}

/** What speaks against a folder being a model and nothing else; null where nothing does. Replacing it deletes it. */
async function strangerIn(folder: string): Promise<string | null> {
  if (!existsSync(join(folder, TRAWL_MODEL_FILE))) return `it has no ${TRAWL_MODEL_FILE}`;
  try {
    const { files } = await readTrawlModelFile(folder);
    const own = new Set([TRAWL_MODEL_FILE, ...files.map(({ path }) => path.split('/')[0]!)]);
    const other = (await readdir(folder)).find((name) => !own.has(name));
    return other === undefined ? null : `${other} is none of its model's files`;
  } catch (error) {
    return asTrawlError(error).message;
  }
}

/** The old model stays usable until the new one is complete; who has it open keeps reading it. */
async function replace(out: string, { next, replaced }: { next: string; replaced: string }): Promise<void> {
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

/** A process that died between the two renames left the old model aside: back with it. */
async function recover(out: string, replaced: string): Promise<void> {
  if (!existsSync(out) && existsSync(join(replaced, TRAWL_MODEL_FILE))) await rename(replaced, out);
}
