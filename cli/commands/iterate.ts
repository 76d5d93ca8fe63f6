import { resolve } from 'node:path';
import { recordedReading } from '../../indexer/update/last-reading.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { discardIteration } from '../../training/iteration/claim-iteration.ts';
import { type IterationSettings, iterationSteps } from '../../training/iteration/iteration-steps.ts';
import { IterationsFolder, pruneIterations } from '../../training/iteration/iterations-folder.ts';
import { type IterationMeasurement, prepareMeasurement } from '../../training/iteration/measure-iteration.ts';
import { readJournal } from '../../training/iteration/records.ts';
import { runIteration } from '../../training/iteration/run-iteration.ts';
import { goBack } from '../../training/iteration/serve-iteration.ts';
import { ServedIndex } from '../../training/iteration/served-index.ts';
import { buildProgress } from '../building/build-progress.ts';
import { codesEngine } from '../building/run-build.ts';
import { ITERATE_OPTIONS, type IterateOptions, iterateAction } from '../iterate/iterate-options.ts';
import { statusLines, summaryJson, summaryLines } from '../iterate/iterate-report.ts';
import { givenOverrides, shareWeights } from '../model/model-options.ts';
import { readApiKey } from '../options/api-key.ts';
import { gatesOption, shareOption } from '../options/numbers.ts';
import { machineOptions } from '../options/retriever-options.ts';
import { modelProgress } from '../output/progress/model-progress.ts';
import { triageProgress } from '../output/progress/step-progress.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';

type Context = CommandContext<typeof ITERATE_OPTIONS>;

export const iterateCommand = defineCommand({
  name: 'iterate',
  summary: 'serve a newly trained encoder: import, index, measure, swap; go back',
  description:
    'Takes a new checkpoint of the retriever and makes it the served index: imports the model, embeds the corpus into a new ' +
    'index beside the old one, measures both on held-out questions, compares their answers, and, unless a limit refuses it, ' +
    'points ROOT/current to the new index, reloads the servers, and removes old iterations. Killed at any moment, the same ' +
    'command resumes. docs/iteration.md has the whole loop.\n\n' +
    'Template, columns, inverted indexes and reading options are taken over from the index before. A checkpoint of sentence-transformers ' +
    '(with modules.json) and a model folder have their own pooling, normalisation, prefixes and token limits, but for what options ' +
    'of the index before replaced; any other checkpoint gets the settings of the index before. Options set them for the new index.\n\n' +
    'With --triage the model is first tried on a part of the served index, and refused if its estimated recall is below the limits, ' +
    'so that a bad checkpoint costs minutes.\n\n' +
    'A refused index is kept: the same command with the option that accepts it publishes it. --until stops earlier, for example ' +
    'to build the shards in jobs (docs/iteration.md). Exit code 3: refused.\n\n' +
    'With --json: {"number", "state", "index", "generation", "model", "base", "changes", "modelOptions", "sameCorpus", "trial", "measures", "refusals", ' +
    '"servers", "removed"}; --back: {"from", "to", "generation", "index"}; --status: {"root", "current", "iterations", ' +
    '"unfinished", "servers"}; --prune: {"removed"}; --discard: {"discarded"}.',
  positionals: {
    usage: '[checkpoint]',
    help: { checkpoint: 'The folder that the trainer wrote (safetensors or ONNX), or a model folder.' },
  },
  options: ITERATE_OPTIONS,
  examples: [
    'trawl iterate ./checkpoint-930 --root loop --from indexes/wiki18 --corpus wiki-18.jsonl.gz --eval heldout.jsonl',
    'trawl iterate ./checkpoint-1860 --root loop --corpus wiki-18.jsonl.gz --eval heldout.jsonl --min-recall 0.7 --server http://127.0.0.1:8000',
    'trawl iterate ./checkpoint-1860 --root loop --corpus wiki-18.jsonl.gz --eval heldout.jsonl --triage --triage-max-drop 0.02',
    'trawl iterate --status --root loop',
    'trawl iterate --back --root loop --server http://127.0.0.1:8000',
  ],
  resumable: true,
  async run(context) {
    const { options, positionals, given } = context;
    const action = iterateAction(options, positionals, given);
    const servers = serversOf(options);
    if (action === 'run') return run(context, servers);
    const folder = IterationsFolder.open(options.root!);
    if (action === 'back') return back(context, folder, servers);
    if (action === 'status') return status(context, folder, servers);
    if (action === 'prune') return prune(context, folder);
    return discard(context, folder);
  },
});

async function run(context: Context, servers: readonly ServedIndex[]): Promise<number> {
  const { options, positionals, signal, out, note } = context;
  const checkpoint = resolve(positionals[0]!);
  const gates = gatesOption(options);
  const trialGates = {
    minRecall: shareOption(options, 'triage-min-recall') ?? gates.minRecall,
    maxDrop: shareOption(options, 'triage-max-drop') ?? gates.maxRecallDrop,
  };
  const measurement = await prepareMeasurement({
    questions: options.eval!,
    qrels: options.qrels,
    form: options['query-form'],
    recallK: options['recall-k'],
    records: options.records,
    changedK: options['changed-k'],
    retrieving: machineOptions(options),
    note,
    signal,
  });
  const { precision = null, 'shard-rows': shardRows } = options;
  const folder = await IterationsFolder.begin(options.root!, options.from);
  const base = folder.indexOf(folder.iteration(folder.current().number));
  const summary = await runIteration({
    folder,
    inputs: {
      checkpoint,
      corpus: options.corpus,
      corpusFormat: recordedReading(base, readIndexManifest(base)).format,
      // What changes the index.
      settings: { precision, shardRows, ...givenOverrides(options) },
    },
    work: iterationSteps(stepSettings(context, checkpoint, measurement)),
    gates,
    trialGates,
    servers,
    keep: options.keep,
    restart: options.restart,
    until: options.until,
    onStep: (step, number) => note(`iteration ${number}: ${STEPS[step]}`),
    signal,
  });
  if (options.json) out(summaryJson(summary));
  else for (const line of summaryLines(summary, options.root!)) out(line);
  return summary.state === 'refused' ? EXIT.problems : EXIT.ok;
}

const STEPS = {
  model: 'importing the model',
  triage: 'trying the model on a part of the served index',
  index: 'building the index',
  measures: 'measuring',
  publish: 'publishing',
} as const;

function stepSettings(context: Context, checkpoint: string, measurement: IterationMeasurement): IterationSettings {
  const { options, signal, note } = context;
  const { quiet, json } = options;
  return {
    checkpoint,
    measurement,
    precision: options.precision,
    overrides: givenOverrides(options),
    encoder: {
      workers: options['encoder-threads'],
      device: options.device,
      shareWeights: shareWeights(options['share-weights']),
    },
    corpus: options.corpus,
    building: {
      kernel: codesEngine(note),
      shardRows: options['shard-rows'],
      checkpointMs: 1000 * options['checkpoint-seconds'],
    },
    triage: options.triage
      ? {
          depth: options['triage-depth'],
          sample: options['triage-sample'],
          alsoBm25: options['triage-also-bm25'],
          searching: machineOptions(options),
        }
      : undefined,
    show: {
      model: () => {
        const { step, stop } = modelProgress({ silent: quiet || json });
        return { update: step, stop };
      },
      triage: () => triageProgress({ silent: quiet || json }),
      index: () => buildProgress({ silent: quiet, json }),
    },
    note,
    signal,
  };
}

async function back({ options, out, signal }: Context, folder: IterationsFolder, servers: readonly ServedIndex[]) {
  const { from, to } = await goBack(folder, options.to, servers, signal);
  const index = folder.indexOf(to);
  if (options.json) {
    out(JSON.stringify({ from: from?.number ?? null, to: to.number, generation: to.generation, index }));
    return EXIT.ok;
  }
  out(
    `iteration ${to.number} is served${from === null ? '' : ` in place of ${from.number}`}: ${index}, generation ${to.generation}`,
  );
  if (servers.length === 0)
    out(`${folder.link} points to it. Reload the servers: kill -HUP, or POST /admin/indexes/NAME/reload.`);
  return EXIT.ok;
}

async function status({ options, out, signal }: Context, folder: IterationsFolder, servers: readonly ServedIndex[]) {
  const { iterations } = folder;
  const current = currentNumber(folder);
  const unfinished = readJournal(folder.root);
  const served = await Promise.all(servers.map((server) => answerOf(server, signal)));
  if (options.json) {
    const { root } = folder;
    out(JSON.stringify({ root, current, iterations, unfinished: unfinished ?? null, servers: served }));
    return EXIT.ok;
  }
  for (const line of statusLines(iterations, current, unfinished)) out(line);
  if (current === null)
    out(`${folder.link} points to none of them: trawl iterate --back --to NUMBER --root ${options.root}`);
  for (const { url, generation, error } of served) {
    const number = iterations.find((iteration) => iteration.generation === generation)?.number;
    const known = number === undefined ? '' : `, iteration ${number}`;
    out(generation === null ? `${url}: ${error}` : `${url} answers with generation ${generation.slice(0, 12)}${known}`);
  }
  return EXIT.ok;
}

/** A server that is down must not hide the others. */
async function answerOf(server: ServedIndex, signal: AbortSignal) {
  try {
    const { generation } = await server.facts(signal);
    return { url: server.url, generation, error: null };
  } catch (error) {
    throwIfCancelled(signal);
    return { url: server.url, generation: null, error: (error as Error).message };
  }
}

function currentNumber(folder: IterationsFolder): number | null {
  try {
    return folder.current().number;
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'CONFIG_INVALID') return null;
    throw error;
  }
}

async function prune({ options, out }: Context, folder: IterationsFolder): Promise<number> {
  const lock = await folder.lockPublishing();
  try {
    const removed = await pruneIterations(folder, options.keep);
    if (options.json) out(JSON.stringify({ removed }));
    else out(removed.length === 0 ? 'nothing to remove' : `removed: iterations ${removed.join(', ')}`);
    return EXIT.ok;
  } finally {
    lock.release();
  }
}

async function discard({ options, out }: Context, folder: IterationsFolder): Promise<number> {
  const lock = folder.lockIteration();
  try {
    const discarded = (await discardIteration(folder)) ?? null;
    if (options.json) out(JSON.stringify({ discarded }));
    else out(discarded === null ? 'no iteration is unfinished' : `iteration ${discarded} is discarded`);
    return EXIT.ok;
  } finally {
    lock.release();
  }
}

function serversOf(options: IterateOptions): ServedIndex[] {
  const apiKey = readApiKey(options['key-file']);
  return options.server.map((url) => new ServedIndex(url, { apiKey, folder: options['server-folder'] }));
}
