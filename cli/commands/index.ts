import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CORPUS_FORMATS } from '../../corpus/corpus-format.ts';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { DEFAULT_PASSAGE_TEMPLATE, parseTemplate } from '../../corpus/passage-template.ts';
import { TSV_ID_TYPES } from '../../corpus/read-tsv.ts';
import { TSV_LAYOUTS } from '../../corpus/tsv-layout.ts';
import { buildIndex } from '../../indexer/build-index.ts';
import type { BuildOptions } from '../../indexer/build-options.ts';
import { buildShardJob } from '../../indexer/build-shard-job.ts';
import { currentIndex } from '../../indexer/is-current.ts';
import { planBuild } from '../../indexer/plan-build.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import { INDEX_MANIFEST_FILE } from '../../src/manifest/index-manifest.ts';
import { type Kernel, loadKernel } from '../../src/vector-index/kernel.ts';
import { BUILD_OPTIONS, parseShard } from '../build-options.ts';
import { planReport } from '../build-plan.ts';
import { buildProgress } from '../build-progress.ts';
import { jsonFacts, jsonJobSummary, jsonSummary, textJobSummary, textSummary } from '../build-summary.ts';
import { defineCommand, EXIT } from '../command.ts';
import {
  asUsage,
  DEVICE_OPTION,
  folderOfPath,
  modelOverrides,
  OVERRIDE_OPTIONS,
  PRECISION_OPTION,
  SHARE_WEIGHTS_OPTION,
  shareWeights,
} from '../model-options.ts';

export const indexCommand = defineCommand({
  name: 'index',
  summary: 'embed a corpus and write an index directory',
  description:
    'Reads passages (JSONL, TSV, Parquet; gzip, zstd), stores them, embeds them with a model and writes a directory that ' +
    '`trawl serve` and `trawl search` open: a FAISS-compatible vectors.faiss, the passages in SQLite, and manifests that ' +
    'say what it was made with. Directories are read file by file in the byte order of their paths.\n\n' +
    'Everything is written to OUT.partial and takes the place of OUT when it is complete; a build that fails or is stopped ' +
    'leaves OUT as it was. What was done stays in OUT.partial, and the same command goes on there, whether the build was ' +
    'stopped, killed or ran out of disk. SIGTERM ends it after the batch in hand with exit code 75, Ctrl-C with 130.\n\n' +
    'With --json: {"built", "folder", "rows", "dimension", "metric", "generation", "model", "corpus"}, and after a build ' +
    '"shards", "tokens", "resumedRows", "skippedExamples", "passagesWithoutId", "duplicates", "stageMs"; on stderr ' +
    '{"event": "progress", "stage", "passages", "share", …} at the start of each stage and every ten seconds.',
  positionals: {
    usage: '<corpus...>',
    help: { 'corpus...': 'Files and directories, read in the order given.' },
    min: 1,
    max: 1000,
  },
  options: {
    out: { kind: 'string', value: 'DIR', help: 'The index directory to make. Required.' },
    model: {
      kind: 'string',
      value: 'NAME|DIR',
      default: 'token-average-256',
      help: 'The encoder: a name in models/ or the path of a model folder. The default is the small encoder that comes along; for results take E5 or BGE.',
    },
    overwrite: { kind: 'flag', help: 'Replace the index at OUT; it stays in place until the new one is complete.' },
    'if-changed': {
      kind: 'flag',
      help: 'Do nothing when the index at OUT was made from the same files with the same model and options; otherwise replace it.',
    },
    'passage-template': {
      kind: 'string',
      value: 'TEMPLATE',
      default: DEFAULT_PASSAGE_TEMPLATE,
      help: 'The text to embed, from the columns of a row: \'{title} {text}\'. {contents} is the column contents, or "title", newline, text where there is none.',
    },
    format: { kind: 'choice', choices: CORPUS_FORMATS, help: 'Kind of the files, where their names do not tell.' },
    'tsv-layout': {
      kind: 'choice',
      choices: TSV_LAYOUTS,
      default: 'auto',
      help: 'Order of the columns of TSV files: by header, DPR (id, text, title) or R1-Searcher (id, contents).',
    },
    'tsv-id-type': {
      kind: 'choice',
      choices: TSV_ID_TYPES,
      default: 'auto',
      help: 'Type of the ids of TSV files in replies. auto: integers for R1-Searcher files, strings for others.',
    },
    'skip-bad-lines': {
      kind: 'flag',
      help: 'Leave out lines that cannot be used, and count them, instead of stopping at the first.',
    },
    'unique-ids': {
      kind: 'flag',
      help: 'Stop when two passages have the same id. Without it they are counted and reported.',
    },
    ...OVERRIDE_OPTIONS,
    precision: {
      ...PRECISION_OPTION,
      help: "Which graph of the model: float32, int8 (faster on the CPU, nearly as good), float16 (for CUDA). Default: the model's own; float16 on CUDA.",
    },
    device: DEVICE_OPTION,
    'share-weights': SHARE_WEIGHTS_OPTION,
    workers: {
      kind: 'integer',
      min: 1,
      max: 1024,
      help: 'Encoder threads on the CPU. Default: the cores this process may use.',
    },
    ...BUILD_OPTIONS,
  },
  examples: [
    'trawl index corpus/sample/passages.jsonl --out indexes/sample',
    'trawl index wiki-18.jsonl.gz --model models/e5-base-v2 --out indexes/wiki18',
    'trawl index wiki-18.jsonl.gz --model models/e5-base-v2 --out indexes/wiki18 --shard 3/8',
  ],
  resumable: true,
  async run({ options, positionals, given, signal, out, note }) {
    const folder = required(options.out);
    const corpusOptions: CorpusOptions = {
      format: options.format,
      tsvLayout: options['tsv-layout'],
      tsvIdType: options['tsv-id-type'],
      skipBadLines: options['skip-bad-lines'],
    };
    parseTemplate(options['passage-template']);
    const shard = parseShard(options.shard);
    if (shard !== undefined && given.has('shard-rows')) {
      throw new TrawlError('USAGE', '--shard says how many shards there are; leave out --shard-rows.');
    }
    const encoder = await asUsage(
      openEncoder(options.model, {
        workers: options.workers,
        device: options.device,
        shareWeights: shareWeights(options['share-weights']),
        precision: options.precision,
        overrides: modelOverrides(options),
      }),
    );
    const progress = buildProgress({ silent: options.quiet, json: options.json });
    try {
      if (options['if-changed'] && existsSync(join(folder, INDEX_MANIFEST_FILE))) {
        const current = await currentIndex(folder, {
          corpus: positionals,
          corpusOptions,
          uniqueIds: options['unique-ids'],
          model: encoder.identity,
          passageTemplate: options['passage-template'],
        });
        if (current !== undefined) {
          if (options.json) out(JSON.stringify({ built: false, folder: resolve(folder), ...jsonFacts(current) }));
          else note(`${folder} is current; nothing to do.`);
          return EXIT.ok;
        }
      }
      const build: BuildOptions = {
        corpus: positionals,
        corpusOptions,
        encoder,
        modelFolder: folderOfPath(options.model),
        kernel: engine(note),
        out: folder,
        overwrite: options.overwrite || options['if-changed'],
        restart: options.restart,
        passageTemplate: options['passage-template'],
        uniqueIds: options['unique-ids'],
        shardRows: options['shard-rows'],
        checkpointMs: options['checkpoint-seconds'] * 1000,
        onProgress: progress.update,
        onNote: note,
        signal,
      };
      if (options.plan) {
        const plan = await planBuild(build, shard);
        progress.stop();
        out(options.json ? JSON.stringify(plan) : planReport(plan));
        return plan.problems.length === 0 ? EXIT.ok : EXIT.problems;
      }
      if (shard !== undefined) {
        const summary = await buildShardJob({ ...build, shard });
        progress.stop();
        if (options.json) out(JSON.stringify(jsonJobSummary(summary)));
        else for (const line of textJobSummary(summary)) note(line);
        return EXIT.ok;
      }
      const summary = await (options['if-changed'] ? buildChanged(build) : buildIndex(build));
      progress.stop();
      if (options.json) out(JSON.stringify(jsonSummary(summary)));
      else for (const line of textSummary(summary)) note(line);
      return EXIT.ok;
    } finally {
      progress.stop();
      await encoder.close();
    }
  },
});

function required(out: string | undefined): string {
  if (out !== undefined && out !== '') return out;
  throw new TrawlError('USAGE', 'Name the directory to make: --out DIR, for example --out indexes/wiki18.');
}

/** Who asks for what is current has no use for the half of something else. */
async function buildChanged(build: BuildOptions): ReturnType<typeof buildIndex> {
  try {
    return await buildIndex(build);
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code !== 'BUILD_DIFFERS') throw error;
    return buildIndex({ ...build, restart: true });
  }
}

/** The engine that makes the codes; without one an index is complete but slow to search. */
function engine(note: (text: string) => void): Kernel | undefined {
  const loaded = loadKernel();
  if (loaded.ok) return loaded.kernel;
  note(
    `The native engine is not there (${loaded.reason}): the index gets no search codes; \`trawl optimize\` makes them later.`,
  );
  return undefined;
}
