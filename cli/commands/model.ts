import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { addModel } from '../../indexer/model-import/add-model.ts';
import { asTrawlError, usageError } from '../../src/base/errors.ts';
import { formatBytes, formatTable } from '../../src/base/format.ts';
import { PRECISIONS, type Precision } from '../../src/encoder/identity/model-identity.ts';
import { readModelFolder, verifyModelFolder } from '../../src/encoder/model/model-folder.ts';
import { listModels, locateModelFolder } from '../../src/encoder/model/model-location.ts';
import { STATED_POOLINGS } from '../../src/encoder/model/transformers-folder.ts';
import { readTrawlModelFile, TRAWL_MODEL_FILE } from '../../src/encoder/model/trawl-model-file.ts';
import { factsOf, factsText, type ModelFacts, sourceOf } from '../model/model-facts.ts';
import { actionOf } from '../options/checks.ts';
import * as option from '../options/option.ts';
import { modelProgress } from '../output/progress/model-progress.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';

const ACTIONS = ['add', 'list', 'show', 'verify', 'remove'] as const;
type Action = (typeof ACTIONS)[number];

const options = {
  name: option.text('NAME', "The model's name. Default: the last part of the source."),
  out: option.text('DIR', 'The folder to write. Default: models/NAME in the current folder.'),
  precision: option.text(
    'P,P,…',
    `Precisions of the model, the default precision first: ${PRECISIONS.join(', ')}. Default: those that suit CPUs.`,
  ),
  pooling: option.choice(
    STATED_POOLINGS,
    "The pooling of an encoder whose checkpoint states none: mean, cls (the first token) or last. Also imports the encoder under the head of a late-interaction model (ColBERT). Default: the pooling of the model's family, by its name, else mean, with a note.",
  ),
  force: option.flag('Replace a model of the same name. The old model stays usable until the new one is complete.'),
  'keep-source': option.flag('Keep the downloaded checkpoint (in .download beside the model) for further imports.'),
} as const;

type Context = CommandContext<typeof options>;

export const modelCommand = defineCommand({
  name: 'model',
  summary: 'add an encoder from the Hugging Face hub or a checkpoint; list, show, verify, remove',
  description:
    '`trawl model add` imports the checkpoint of an encoder or a cross-encoder (safetensors or ONNX: BERT, Qwen3-Embedding, ' +
    'ModernBERT, T5 and others, see docs/models.md) into a model folder. The source is a folder or a ' +
    'repository on the Hugging Face hub, organisation/name[@revision], where a revision is a branch, a tag or a commit. Only ' +
    'the files that are needed are downloaded, and each is checked against its size and checksum. The same command ' +
    'resumes a download that was stopped.\n\n' +
    'HF_TOKEN (or the file written by `hf auth login`), HF_ENDPOINT, HF_HOME, HF_TOKEN_PATH, HF_HUB_OFFLINE and ' +
    "HF_HUB_DISABLE_IMPLICIT_TOKEN work as for Python's huggingface_hub.\n\n" +
    '`trawl model verify` compares every file with its checksum. The exit code is 3 if a file differs.\n\n' +
    'With --json: add, show and list print {"name", "folder", "kind", "architecture", "dimension", "pooling", "poolingFrom", "normalize", ' +
    '"similarity", "prefixes", "maxTokens", "precisions", "bytes", "source"} (add also "transferredBytes"; list an array); ' +
    'verify {"name", "folder", "problems"}; remove {"name", "folder"}.',
  positionals: {
    usage: '<action> [source|model]',
    help: {
      action: 'add, list, show, verify or remove.',
      source: 'For add: a folder (beginning with ./ or /, or existing) or organisation/name[@revision].',
      model: 'For show, verify and remove: a name in models/ or the path of a model folder.',
    },
    words: ACTIONS,
  },
  options,
  examples: [
    'trawl model add intfloat/e5-base-v2',
    'trawl model add BAAI/bge-base-en-v1.5@main --name bge --precision float32,int8',
    'trawl model add ./my-checkpoint --name mine',
    'trawl model add lightonai/GTE-ModernColBERT-v1 --pooling mean',
    'trawl model list',
    'trawl model verify e5-base-v2',
  ],
  async run(context) {
    const [first, subject] = context.positionals;
    const action = actionOf('model', ACTIONS, first);
    checkArguments(action, subject, context.given);
    if (action === 'list') return list(context);
    return { add, show, verify, remove }[action](subject!, context);
  },
});

function checkArguments(action: Action, subject: string | undefined, given: ReadonlySet<string>): void {
  const misplaced = Object.keys(options).find((option) => given.has(option));
  if (action !== 'add' && misplaced !== undefined) {
    throw usageError(`--${misplaced} is an option of trawl model add, not of trawl model ${action}.`);
  }
  if (action === 'list' && subject !== undefined) {
    throw usageError('trawl model list takes no further argument.');
  }
  if (action !== 'list' && subject === undefined) {
    const missing = action === 'add' ? 'a folder or a hub id, such as intfloat/e5-base-v2' : 'a model';
    throw usageError(`trawl model ${action} needs ${missing}. See \`trawl model --help\`.`);
  }
}

async function add(source: string, { options, signal, out, note }: Context): Promise<number> {
  const progress = modelProgress({ silent: options.quiet || options.json });
  try {
    const added = await addModel({
      source,
      name: options.name,
      out: options.out,
      precisions: options.precision === undefined ? undefined : parsePrecisions(options.precision),
      pooling: options.pooling,
      force: options.force,
      keepSource: options['keep-source'],
      signal,
      progress,
    });
    progress.stop();
    const facts = await factsOf(added.folder);
    if (options.json) {
      out(JSON.stringify({ ...facts, transferredBytes: added.transferredBytes }));
      return EXIT.ok;
    }
    out(factsText(facts));
    for (const remark of added.remarks) note(`  ${remark}`);
    if (added.keptSource !== undefined) note(`  checkpoint    kept in ${added.keptSource}`);
    const name = modelNameFor(facts);
    note(
      facts.kind === 'encoder'
        ? `Next: trawl index CORPUS --model ${name} --out indexes/NAME`
        : `Next: trawl serve indexes/NAME --rerank ${name}`,
    );
    return EXIT.ok;
  } finally {
    progress.stop();
  }
}

function parsePrecisions(text: string): Precision[] {
  return [...new Set(text.split(',').map((part) => part.trim()))].map((part) => {
    const precision = PRECISIONS.find((known) => known === part);
    if (precision !== undefined) return precision;
    throw usageError(`--precision is ${JSON.stringify(part)}; expected some of ${PRECISIONS.join(', ')}.`);
  });
}

async function list({ options, out }: Context): Promise<number> {
  const models = await listedModels();
  if (options.json) out(JSON.stringify(models));
  else if (models.length > 0) for (const line of formatTable(models.map(modelRow), { allLeft: true })) out(line);
  return EXIT.ok;
}

async function show(model: string, { options, out }: Context): Promise<number> {
  const facts = await factsOf(locateModelFolder(model));
  out(options.json ? JSON.stringify(facts) : factsText(facts));
  return EXIT.ok;
}

async function verify(model: string, { options, out }: Context): Promise<number> {
  const folder = locateModelFolder(model);
  let name = model;
  let files = 0;
  const problems: string[] = [];
  try {
    const read = await readModelFolder(folder, {}, { kind: 'any', checksums: false });
    files = await verifyModelFolder(read);
    name = read.identity.name;
  } catch (error) {
    const { code, message } = asTrawlError(error);
    if (code !== 'MODEL_INVALID') throw error;
    problems.push(message);
  }
  if (options.json) out(JSON.stringify({ name, folder, problems }));
  else out(problems.length > 0 ? problems.join('\n') : `${folder}: ${files} files are intact`);
  return problems.length > 0 ? EXIT.problems : EXIT.ok;
}

/** @throws TrawlError USAGE for a folder that `trawl model add` did not make. */
async function remove(model: string, { options, out, note }: Context): Promise<number> {
  const folder = locateModelFolder(model);
  // The description alone, so that a model can be deleted whose other files are damaged or missing.
  const described = existsSync(join(folder, TRAWL_MODEL_FILE)) ? await readTrawlModelFile(folder) : undefined;
  if (described === undefined || sourceOf(described) === null) {
    throw usageError(
      `${folder} was not made by trawl model add, so it is not deleted. If you no longer need it, delete the folder yourself.`,
    );
  }
  await rm(folder, { recursive: true });
  if (options.json) out(JSON.stringify({ name: described.name, folder }));
  else note(`${folder} removed`);
  return EXIT.ok;
}

type ListedModel = ModelFacts | { readonly name: string; readonly problem: string };

/** Every model in models/, or why it cannot be used. */
async function listedModels(): Promise<ListedModel[]> {
  const models: ListedModel[] = [];
  for (const name of listModels()) {
    try {
      models.push(await factsOf(locateModelFolder(name)));
    } catch (error) {
      models.push({ name, problem: asTrawlError(error).message });
    }
  }
  return models;
}

function modelRow(model: ListedModel): string[] {
  const name = modelNameFor(model);
  if ('problem' in model) return [name, `cannot be used: ${model.problem}`];
  const { kind, architecture, dimension, precisions, bytes } = model;
  const what = kind === 'cross-encoder' ? kind : `${dimension} dimensions`;
  return [name, `${architecture}, ${what}, ${precisions.join(' + ')}, ${formatBytes(bytes)}`];
}

/** The value to use for `--model`: the folder's name if a look-up finds it, else its path. */
function modelNameFor(model: ListedModel): string {
  if ('problem' in model) return model.name;
  const folderName = model.folder.split(sep).at(-1)!;
  try {
    if (locateModelFolder(folderName) === model.folder) return folderName;
  } catch {
    // Not in models/.
  }
  const path = relative(process.cwd(), model.folder);
  return path.includes(sep) ? path : `.${sep}${path}`;
}
