import { rm } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import { readModelFolder, verifyModelFolder } from '../../src/embedding/model-folder.ts';
import { listModels, locateModelFolder } from '../../src/embedding/model-location.ts';
import { asTrawlError, TrawlError } from '../../src/errors.ts';
import { PRECISIONS, type Precision } from '../../src/manifest/model-identity.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatBytes } from '../format.ts';
import { addModel } from '../model-add.ts';
import { factsOf, factsText, type ModelFacts } from '../model-facts.ts';
import { modelProgress } from '../model-progress.ts';

const ACTIONS = ['add', 'list', 'show', 'verify', 'remove'] as const;
type Action = (typeof ACTIONS)[number];

export const modelCommand = defineCommand({
  name: 'model',
  summary: 'add an encoder from a checkpoint or the Hugging Face hub; list, show, verify, remove',
  description:
    '`trawl model add` makes a model folder of a BERT-like checkpoint (safetensors or ONNX): of a folder, or of a repository ' +
    'on the Hugging Face hub, organisation/name with or without @revision (a branch, a tag, a commit). Of a repository only ' +
    'what is needed is downloaded, each file checked against its size and checksum. A download that was stopped is continued ' +
    'by the same command.\n\n' +
    'HF_TOKEN (or the file that `hf auth login` writes), HF_ENDPOINT, HF_HOME, HF_TOKEN_PATH, HF_HUB_OFFLINE and ' +
    "HF_HUB_DISABLE_IMPLICIT_TOKEN mean what they mean to Python's huggingface_hub.\n\n" +
    '`verify` reads every file and compares it with its checksum; exit code 3 when one differs.\n\n' +
    'With --json: add, show and list give {"name", "folder", "kind", "architecture", "dimension", "pooling", "normalize", ' +
    '"similarity", "prefixes", "maxTokens", "precisions", "bytes", "source"} (add also "transferredBytes", list an array); ' +
    'verify {"name", "folder", "problems"}; remove {"name", "folder"}.',
  positionals: {
    usage: '<action> [source|model]',
    help: {
      action: 'add, list, show, verify or remove.',
      source: 'For add: a folder (with ./ or / in front, or one that is there), or organisation/name[@revision].',
      model: 'For show, verify and remove: a name in models/ or the path of a model folder.',
    },
    min: 1,
    max: 2,
  },
  options: {
    name: { kind: 'string', value: 'NAME', help: "The model's name. Default: the last part of the source." },
    out: { kind: 'string', value: 'DIR', help: 'The folder to make. Default: models/NAME in the current folder.' },
    precision: {
      kind: 'string',
      value: 'P,P,…',
      help: `Graphs to make, the first one the default: ${PRECISIONS.join(', ')}. Default: those that suit CPUs.`,
    },
    force: { kind: 'flag', help: 'Replace a model of that name; it stays in place until the new one is complete.' },
    'keep-source': {
      kind: 'flag',
      help: 'Keep the downloaded checkpoint (in .download beside the model) for another import.',
    },
  },
  examples: [
    'trawl model add intfloat/e5-base-v2',
    'trawl model add BAAI/bge-base-en-v1.5@main --name bge --precision float32,int8',
    'trawl model add ./my-checkpoint --name mine',
    'trawl model list',
    'trawl model verify e5-base-v2',
  ],
  async run({ options, positionals, given, signal, out, note }) {
    const action = parseAction(positionals[0]!);
    const subject = positionals[1];
    const misplaced = ['name', 'out', 'precision', 'force', 'keep-source'].find((option) => given.has(option));
    if (action !== 'add' && misplaced !== undefined) {
      throw new TrawlError('USAGE', `--${misplaced} belongs to trawl model add, not to trawl model ${action}.`);
    }
    if (action === 'list') {
      if (subject !== undefined) throw new TrawlError('USAGE', 'trawl model list takes no further argument.');
      return list(options.json, out);
    }
    if (subject === undefined) {
      const what = action === 'add' ? 'a folder or an id of the hub, such as intfloat/e5-base-v2' : 'a model';
      throw new TrawlError('USAGE', `trawl model ${action} needs ${what}. See \`trawl model --help\`.`);
    }
    switch (action) {
      case 'add': {
        const progress = modelProgress({ silent: options.quiet || options.json });
        try {
          const added = await addModel({
            source: subject,
            name: options.name,
            out: options.out,
            precisions: options.precision === undefined ? undefined : parsePrecisions(options.precision),
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
          if (added.keptSource !== undefined) note(`  checkpoint    kept in ${added.keptSource}`);
          if (facts.kind === 'encoder') note(`Next: trawl index CORPUS --model ${nameFor(facts)} --out indexes/NAME`);
          return EXIT.ok;
        } finally {
          progress.stop();
        }
      }
      case 'show': {
        const facts = await factsOf(locateModelFolder(subject));
        out(options.json ? JSON.stringify(facts) : factsText(facts));
        return EXIT.ok;
      }
      case 'verify': {
        const { name, folder, problems, files } = await verify(subject);
        if (options.json) out(JSON.stringify({ name, folder, problems }));
        else out(problems.length > 0 ? problems.join('\n') : `${folder}: ${files} files are as they were written`);
        return problems.length > 0 ? EXIT.problems : EXIT.ok;
      }
      case 'remove': {
        const { name, folder } = await remove(subject);
        if (options.json) out(JSON.stringify({ name, folder }));
        else note(`${folder} is removed`);
        return EXIT.ok;
      }
    }
  },
});

function parseAction(text: string): Action {
  const action = ACTIONS.find((known) => known === text);
  if (action !== undefined) return action;
  throw new TrawlError('USAGE', `There is no trawl model ${text}; there are ${ACTIONS.join(', ')}.`);
}

function parsePrecisions(text: string): Precision[] {
  return [...new Set(text.split(',').map((part) => part.trim()))].map((part) => {
    const precision = PRECISIONS.find((known) => known === part);
    if (precision !== undefined) return precision;
    throw new TrawlError('USAGE', `--precision names ${JSON.stringify(part)}; there are ${PRECISIONS.join(', ')}.`);
  });
}

async function list(json: boolean, out: (text: string) => void): Promise<number> {
  const rows: (ModelFacts | { readonly name: string; readonly problem: string })[] = [];
  for (const name of listModels()) {
    try {
      rows.push(await factsOf(locateModelFolder(name)));
    } catch (error) {
      rows.push({ name, problem: asTrawlError(error).message });
    }
  }
  if (json) {
    out(JSON.stringify(rows));
    return EXIT.ok;
  }
  const width = Math.max(0, ...rows.map((row) => nameFor(row).length));
  for (const row of rows) {
    const facts =
      'problem' in row
        ? `cannot be used: ${row.problem}`
        : `${row.architecture}, ${row.dimension} dimensions, ${row.precisions.join(' + ')}, ${formatBytes(row.bytes)}`;
    out(`${nameFor(row).padEnd(width)}  ${facts}`);
  }
  return EXIT.ok;
}

/** What `--model` takes: the folder's name where it is found by it, else its path. */
function nameFor(model: ModelFacts | { readonly name: string; readonly problem: string }): string {
  if ('problem' in model) return model.name;
  const folderName = model.folder.split(sep).at(-1)!;
  try {
    if (locateModelFolder(folderName) === model.folder) return folderName;
  } catch {
    // Not in a collection.
  }
  const path = relative(process.cwd(), model.folder);
  return path.includes(sep) ? path : `.${sep}${path}`;
}

async function verify(subject: string) {
  const folder = locateModelFolder(subject);
  try {
    const model = await readAnyKind(folder);
    const files = await verifyModelFolder(model);
    return { name: model.identity.name, folder, problems: [] as string[], files };
  } catch (error) {
    const { code, message } = asTrawlError(error);
    if (code !== 'MODEL_INVALID') throw error;
    return { name: subject, folder, problems: [message], files: 0 };
  }
}

async function readAnyKind(folder: string) {
  const { kind } = await factsOf(folder);
  return readModelFolder(folder, {}, { kind });
}

async function remove(subject: string): Promise<{ name: string; folder: string }> {
  const folder = locateModelFolder(subject);
  const facts = await factsOf(folder);
  if (facts.source === null) {
    throw new TrawlError(
      'USAGE',
      `${folder} was not made by trawl model add, so it is not removed. Remove the folder yourself where that is meant.`,
    );
  }
  await rm(folder, { recursive: true });
  return { name: facts.name, folder };
}
