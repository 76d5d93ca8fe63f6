import { existsSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { queryOf } from '../../evaluation/query-form.ts';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import { EncoderPools } from '../../src/encoder/pool/encoder-pools.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { narrowedRetriever } from '../../src/search/layers/passing-retriever.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { DEFAULT_SERVER_CONFIG } from '../../src/server/server-config.ts';
import { openIndex } from '../../src/stores/open-index.ts';
import { triageModel } from '../../training/triage/triage-model.ts';
import { openTriedModel, type TriedModel } from '../../training/triage/tried-model.ts';
import { modelOverrides, shareWeights } from '../model/model-options.ts';
import { requiredOption } from '../options/checks.ts';
import { checkFilter, filterOption } from '../options/filter-option.ts';
import { parseCutoffs } from '../options/numbers.ts';
import { machineOptions } from '../options/retriever-options.ts';
import { viewOption } from '../options/view-options.ts';
import { triageProgress } from '../output/progress/step-progress.ts';
import { defineCommand, EXIT } from '../program/command.ts';
import { parseServedIndexes } from '../serve/served-indexes.ts';
import { gateOf, TRIAGE_OPTIONS } from '../triage/triage-options.ts';
import { triageText } from '../triage/triage-report.ts';

export const triageCommand = defineCommand({
  name: 'triage',
  summary: 'try a new model on a part of an index before all of it is embedded',
  description:
    'Embeds with a new model only a pool of passages: those that the encoder of the index, and other generations of it, retrieve for ' +
    'held-out questions, the relevant ones, and a random sample of the rest. From that it estimates recall@k in the whole index, with a ' +
    'bound that recall cannot exceed, and compares it with the recall of the present encoder. To show how far the estimate can be ' +
    'trusted, it makes the same estimate for the present encoder as if that were new, and gives its error. docs/iteration.md has the ' +
    'method, and its measured errors.\n\n' +
    'With --min-recall or --max-drop the exit code is 3 if the model is refused. The options of the new model are the same as for ' +
    '`trawl index`. The same command resumes a run that was stopped; equal inputs, options and seed give the same figures, but for times.\n\n' +
    'With --json: {"source", "index", "model", "questions", "passages", "records", "settings", "recall", "gate", "threshold", "verdict", "times"}.',
  positionals: {
    usage: '<index> <model>',
    help: {
      index: 'The present index directory.',
      model:
        'The new model: a name in models/, the path of a model folder, or the folder of a checkpoint (safetensors), which is imported first.',
    },
  },
  resumable: true,
  options: TRIAGE_OPTIONS,
  examples: [
    'trawl triage indexes/wiki18 ./checkpoint-4000 --queries dev.jsonl --max-drop 0.01',
    'trawl triage indexes/wiki18 ./checkpoint-4000 --queries dev.jsonl --index indexes/wiki18-first --records calls.jsonl --sample 100000',
    'trawl triage indexes/sample token-average-256 --dimension 64 --queries corpus/sample/questions.jsonl --depth 5 --sample 50 --min-recall 0.5',
  ],
  async run({ options, positionals, signal, out, note }) {
    const [folder, model] = positionals as [string, string];
    const queries = requiredOption('queries', options.queries, 'the file of questions, such as --queries dev.jsonl');
    const cutoffs = parseCutoffs(options.cutoffs, DEFAULT_SERVER_CONFIG.maxK);
    const gate = gateOf(options, cutoffs);
    const filter = filterOption(options.filter);
    const view = viewOption(options);
    const { questions, judgements, source } = await readQuestionSet(queries, { qrels: options.qrels });
    const work = resolve(options.work ?? `${resolve(folder)}.triage`);
    const retrieving = {
      ...machineOptions(options),
      encoderPools: new EncoderPools(),
      signal,
      onWarning: note,
    };
    const progress = triageProgress({ silent: options.quiet || options.json });
    const opened: OpenRetriever[] = [];
    let tried: TriedModel | undefined;
    try {
      const present = await openIndex(folder, {
        ...retrieving,
        model: options['index-model'],
        views: view === undefined ? [] : [view],
      });
      opened.push(present);
      checkFilter(filter, present.info);
      for (const { name, folder: other } of parseServedIndexes(options.index)) {
        opened.push(await openIndex(other, { ...retrieving, name }));
      }
      tried = await openTriedModel(model, {
        work,
        encoder: {
          overrides: modelOverrides({ ...options, 'query-template': undefined }),
          precision: options.precision,
          device: options.device,
          shareWeights: shareWeights(options['share-weights']),
          workers: options['encoder-threads'],
        },
        onImport: () => note(`importing the checkpoint ${model}`),
        onWait: () => note('another run imports or removes the model of this checkpoint: waiting for it'),
        signal,
      });
      const report = await triageModel({
        retriever: narrowedRetriever(present, { views: view === undefined ? [] : [view.name] }),
        passageTemplate: templateOf(folder, present.info.generation),
        others: opened.slice(1),
        records: options.records,
        alsoBm25: options['also-bm25'],
        encoder: tried.encoder,
        questions,
        judgements,
        inputOf: (question) => queryOf(question, options['query-form']),
        template: options['query-template'],
        scope: { filter },
        depth: options.depth,
        sample: options.sample,
        seed: options.seed,
        cutoffs,
        gate,
        work,
        onReport: (found) => {
          progress.stop();
          out(options.json ? JSON.stringify({ source, ...found }) : triageText(found, source));
        },
        keepVectors: options['keep-vectors'],
        searchThreads: options['search-threads'],
        checkpointMs: 1000 * options['checkpoint-seconds'],
        onProgress: progress.update,
        onWarning: note,
        signal,
      });
      if (!options['keep-vectors']) {
        await tried.removeImported();
        noteLeft(work, note);
      }
      return report.verdict === 'passed' || report.verdict === 'none' ? EXIT.ok : EXIT.problems;
    } finally {
      progress.stop();
      await closeAll(tried, ...opened);
    }
  },
});

/** Names what other runs have in the work folder: what a run with another seed, index or model left is never removed by this one. */
function noteLeft(work: string, note: (message: string) => void): void {
  if (!existsSync(work)) return;
  const others = readdirSync(work).filter((name) => !name.endsWith('.lock'));
  if (others.length === 0) return;
  note(
    `${work} has files of other trials, stopped, kept or running: ${others.join(', ')}. Remove those that nobody will resume.`,
  );
}

/** The template of the passages' texts. @throws TrawlError INDEX_CHECKSUM_MISMATCH if the index was replaced meanwhile. */
function templateOf(folder: string, opened: string): string {
  const { generation, corpus } = readIndexManifest(resolve(folder));
  if (generation === opened) return corpus.passageTemplate;
  throw new TrawlError(
    'INDEX_CHECKSUM_MISMATCH',
    `${folder} was replaced by another generation while it was opened. Run the command again.`,
  );
}
